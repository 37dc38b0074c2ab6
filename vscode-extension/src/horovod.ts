/** "Run With Horovod…": the active script, on several processes, in a terminal. */

import { dirname } from "node:path";

import * as vscode from "vscode";

import { Converter, plan } from "./conversion";
import { nameOf } from "./documents";
import { equipped, LAUNCHER } from "./equipment";
import { Interpreters } from "./interpreter";
import { OutlineRequest } from "./protocol";
import { Server } from "./server";
import { askForLaunch, Command, Purpose, RUN_WITH_HOROVOD } from "./launch";
import { runInTerminal } from "./terminal";

/**
 * Ask for the number of processes and run the script at `uri`, else the active one, if everything is
 * installed.
 */
export async function runWithHorovod(
  server: Server,
  interpreters: Interpreters,
  converter: Converter,
  context: vscode.ExtensionContext,
  uri?: unknown,
): Promise<void> {
  const document = await scriptToRun(server, uri);
  if (document === undefined) {
    return;
  }
  const equipment = await equipped(document.uri, interpreters, context.extensionUri, true);
  if (equipment === undefined || !(await isReady(server, converter, document))) {
    return;
  }
  const { interpreter, launcher } = equipment;
  const given = await preparedLaunch(document, context.workspaceState, RUN_WITH_HOROVOD);
  if (given === undefined) {
    return;
  }
  const command = [
    launcher,
    ...given.options,
    ...interpreter.command,
    given.script,
    ...given.parameters,
  ] as const;
  await runInTerminal(`${LAUNCHER} ${nameOf(document.uri)}`, [command], given.cwd);
}

/**
 * The script at `uri`, else the active one; for a module, the file that starts its program.  If it cannot
 * be run, explains why and returns nothing.
 */
export async function scriptToRun(server: Server, uri: unknown): Promise<vscode.TextDocument | undefined> {
  // Key bindings and links in pages do not check whether a command is enabled.
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Trainshift: nothing is run in a workspace that is not trusted.");
    return undefined;
  }
  const document =
    typeof uri === "string"
      ? await vscode.workspace.openTextDocument(vscode.Uri.parse(uri))
      : vscode.window.activeTextEditor?.document;
  if (document?.languageId !== "python" || document.uri.scheme !== "file") {
    void vscode.window.showInformationMessage(
      "Trainshift: open the Python script to run, and save it first.",
    );
    return undefined;
  }
  if (process.platform === "win32") {
    void vscode.window.showInformationMessage(
      "Trainshift: Horovod runs on Linux and macOS; on Windows, use WSL.",
    );
    return undefined;
  }
  const textDocument = { uri: document.uri.toString() };
  const outline = await server.running?.sendRequest(OutlineRequest, { textDocument }).catch(() => undefined);
  return outline?.partOf ? vscode.workspace.openTextDocument(vscode.Uri.parse(outline.partOf.uri)) : document;
}

/** Ask how to launch a script and save it; returns its path, and the folder to start in. */
export async function preparedLaunch(
  document: vscode.TextDocument,
  state: vscode.Memento,
  purpose: Purpose,
): Promise<(Command & { script: string; cwd: string }) | undefined> {
  const given = await askForLaunch(document.uri, state, purpose);
  if (given === undefined || !(await document.save()) || !(await savedModules())) {
    return undefined;
  }
  const script = document.uri.fsPath;
  const cwd = vscode.workspace.getWorkspaceFolder(document.uri)?.uri.fsPath ?? dirname(script);
  return { ...given, script, cwd };
}

/** Save the files that the script may import; a conversion leaves them unsaved. */
async function savedModules(): Promise<boolean> {
  const unsaved = vscode.workspace.textDocuments.filter(
    (document) => document.isDirty && document.languageId === "python" && document.uri.scheme === "file",
  );
  return (await Promise.all(unsaved.map((document) => document.save()))).every(Boolean);
}

/** Each process would train a script that is not distributed by itself: offer to convert it first. */
async function isReady(
  server: Server,
  converter: Converter,
  document: vscode.TextDocument,
): Promise<boolean> {
  const client = server.running;
  const conversion = client && (await plan(client, document.uri).catch(() => undefined));
  if (!conversion?.edit) {
    return true;
  }
  const choice = await vscode.window.showWarningMessage(
    `${nameOf(document.uri)} is not distributed yet: each process would train a model of its own.`,
    { modal: true },
    "Make Distributed",
    "Run Anyway",
  );
  if (choice === "Make Distributed") {
    await converter.makeDistributed(document.uri);
  }
  return choice === "Run Anyway";
}
