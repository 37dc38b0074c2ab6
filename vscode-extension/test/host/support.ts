import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import * as vscode from "vscode";
import { EXTENSION, PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import { until } from "../harness/until";

export const execute = promisify(execFile);

/** User settings that name the interpreter of the tests. */
export const INTERPRETER = { "trainshift.interpreter": [PYTHON] };

/** A program that runs the tests' interpreter under a different path. */
export const OTHER_PYTHON = `#!/bin/sh\nexec '${PYTHON}' "$@"\n`;

/** A PATH on which `python3` is `bin/python3` of the workspace. */
export const OWN_PATH = { PATH: "<workspace>/bin:/usr/bin:/bin" };

/** Folders of extensions that imitate the Python extensions. */
export const FAKES = ["environments", "python"].map((name) =>
  join(EXTENSION, "test", "host", "extensions", name),
);

/** A script with one warning, TF03 on line 3, which has a fix. */
export const ALIAS = `import tensorflow as tf

Adam = tf.keras.optimizers.Adam
optimizer = Adam(1e-3)
`;

/** The files that make Python believe that the folder `packages` has a package installed. */
export function distribution(name: string, version: string): Record<string, string> {
  const metadata = `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`;
  return {
    [`packages/${name}-${version}.dist-info/METADATA`]: metadata,
    [`packages/${name}/__init__.py`]: "",
  };
}

/** Tests that need only files and a server. */
export interface Part {
  files: Record<string, string>;
  tests: () => void;
}

/** The folder of the current tests' files, in the workspace. */
let folderOfPart = "";

/**
 * Parts that can share one VS Code: the files of each are in a folder with its name, and each starts
 * without an open editor.
 */
export function joined(name: string, parts: Record<string, Part>): HostSuite {
  const workspace = Object.entries(parts).flatMap(([part, { files }]) =>
    Object.entries(files).map(([file, text]) => [`${part}/${file}`, text]),
  );
  return {
    name,
    workspace: Object.fromEntries(workspace) as Record<string, string>,
    settings: INTERPRETER,
    tests() {
      for (const [part, { tests }] of Object.entries(parts)) {
        describe(part, () => {
          before(() => {
            folderOfPart = part;
          });
          after(async () => {
            folderOfPart = "";
            await vscode.workspace.saveAll();
            await vscode.commands.executeCommand("workbench.action.closeAllEditors");
          });
          tests();
        });
      }
    },
  };
}

/** The path of a file of the workspace. */
export function path(name = ""): string {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(folder);
  return join(folder.uri.fsPath, folderOfPart, name);
}

export function uri(name: string): vscode.Uri {
  return vscode.Uri.file(path(name));
}

/** Show a file of the workspace. */
export async function show(name: string): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uri(name));
  await vscode.window.showTextDocument(document, { preview: false });
  return document;
}

/** Wait until `get` returns the expected value; otherwise reports the actual one. */
export async function comesTo<T>(what: string, get: () => T | Promise<T>, wanted: T): Promise<void> {
  let last: T | undefined;
  const holds = async (): Promise<boolean> => isDeepStrictEqual((last = await get()), wanted);
  await until(what, holds).catch(() => assert.deepEqual(last, wanted, what));
}

/** Trainshift's diagnostics of a document, including hints. */
export function findings(document: vscode.TextDocument): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(document.uri).filter((each) => each.source === "trainshift");
}

export function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === "object" ? code.value : code);
}

/** The codes of Trainshift's diagnostics of a document, each once, in order; without hints. */
export function codes(document: vscode.TextDocument): string[] {
  const found = findings(document).map(codeOf);
  return [...new Set(found.filter((code) => !code.startsWith("HV")))].sort();
}

/** The hints at statements that could be made distributed. */
export function hints(document: vscode.TextDocument): vscode.Diagnostic[] {
  return findings(document).filter((each) => codeOf(each).startsWith("HV"));
}

export function lenses(document: vscode.TextDocument): Thenable<vscode.CodeLens[]> {
  return vscode.commands.executeCommand("vscode.executeCodeLensProvider", document.uri, 100);
}

/** Replace a text that a document contains once. */
export async function replace(document: vscode.TextDocument, before: string, after: string): Promise<void> {
  const start = document.getText().indexOf(before);
  assert.ok(start >= 0, `${before} is not in the document`);
  const range = new vscode.Range(document.positionAt(start), document.positionAt(start + before.length));
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, range, after);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

/** The position after a text that a document contains. */
export function placeOf(document: vscode.TextDocument, text: string): vscode.Position {
  const start = document.getText().indexOf(text);
  assert.ok(start >= 0, `${text} is not in the document`);
  return document.positionAt(start);
}

/** The action whose title begins with this, with its edit, once it is offered for a range. */
export async function action(
  document: vscode.TextDocument,
  range: vscode.Range,
  title: string,
  kind?: string,
): Promise<vscode.CodeAction> {
  return until(`the action "${title}" is offered`, async () => {
    const offered = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      range,
      kind,
      100,
    );
    return offered.find((each) => each.title.startsWith(title));
  });
}

/** Make the edit of an action. */
export async function apply({ edit }: vscode.CodeAction): Promise<void> {
  assert.ok(edit);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

/** The output of the command line's check for a file of the workspace. */
export async function checked(name: string): Promise<unknown> {
  const { stdout } = await execute(PYTHON, [
    "-I",
    "-m",
    "trainshift",
    "check",
    "--format=json",
    "--strict",
    "--fail-on=never",
    path(name),
  ]);
  return JSON.parse(stdout);
}

/** The output of the command line's conversion of a file of the workspace. */
export async function converted(name: string, ...options: string[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "trainshift-convert-"));
  const out = join(folder, "out.py");
  try {
    await execute(PYTHON, [
      "-I",
      "-m",
      "trainshift",
      "convert",
      "--quiet",
      `--output=${out}`,
      ...options,
      path(name),
    ]);
    return await readFile(out);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The text of a document that holds these bytes. */
export function decoded(bytes: Buffer): string {
  return new TextDecoder().decode(bytes);
}

/** Change a workspace setting; undefined removes it. */
export async function configure(key: string, value: unknown): Promise<void> {
  await vscode.workspace
    .getConfiguration()
    .update(`trainshift.${key}`, value, vscode.ConfigurationTarget.Workspace);
}

/** The result of "Report Environment", by the names of its lines. */
export async function environment(): Promise<Record<string, string>> {
  await vscode.commands.executeCommand("trainshift.reportEnvironment");
  const text = vscode.window.activeTextEditor?.document.getText() ?? "";
  assert.match(text, /^# Trainshift environment/);
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  return Object.fromEntries(
    Array.from(text.matchAll(/^- ([\w ]+): (.*)$/gm), ([, name, value]) => [name, value]),
  );
}

/** Wait until a line of "Report Environment" matches; returns the whole report. */
export async function reports(line: string, wanted: RegExp): Promise<Record<string, string>> {
  let last: Record<string, string> = {};
  const holds = async (): Promise<boolean> => wanted.test((last = await environment())[line] ?? "");
  await until(`"${line}" is ${String(wanted)}`, holds).catch(() => assert.match(last[line] ?? "", wanted));
  return last;
}

/** The processes of the language server that this extension host has started. */
export async function servers(): Promise<number[]> {
  const numbers = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (number: string, file: string): Promise<string> =>
    readFile(join("/proc", number, file), "utf8").catch(() => "");
  const found = await Promise.all(
    numbers.map(async (number) => {
      const parent = /^PPid:\s*(\d+)$/m.exec(await read(number, "status"))?.[1];
      return Number(parent) === process.pid && (await read(number, "cmdline")).includes("trainshift.lsp");
    }),
  );
  return numbers.filter((_, index) => found[index]).map(Number);
}

/** A server with a different process, once it runs. */
export async function newServer(old?: number): Promise<number> {
  return until("another server runs", async () => (await servers()).find((each) => each !== old));
}

/** The tabs of a preview. */
export function previews(): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter((tab) => tab.label.includes("made distributed"));
}

/** Request a conversion and wait for its preview; `ended` resolves when the command has finished. */
export async function preview(name: string, ...parameters: unknown[]): Promise<{ ended: Thenable<unknown> }> {
  const ended = vscode.commands.executeCommand("trainshift.makeDistributed", ...parameters);
  const title = `${name} ↔ made distributed`;
  await until(`the preview of ${name} is open`, () => previews().some((tab) => tab.label.startsWith(title)));
  return { ended };
}

/** Decide on the preview and wait until it is closed. */
export async function decide(command: "applyPreview" | "discardPreview"): Promise<void> {
  await vscode.commands.executeCommand(`trainshift.${command}`);
  await comesTo("no preview is open", () => previews().length, 0);
}

/** Run a command that shows a message, and close the message. */
export async function told(command: string, ...parameters: unknown[]): Promise<void> {
  let isDone = false;
  const done = Promise.resolve(vscode.commands.executeCommand(command, ...parameters)).finally(() => {
    isDone = true;
  });
  await until(`${command} has ended`, async () => {
    await vscode.commands.executeCommand("notifications.clearAll");
    return isDone;
  });
  await done;
}
