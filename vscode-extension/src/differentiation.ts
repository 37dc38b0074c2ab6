/**
 * "Differentiate Function…": the function at the cursor, in a mode and by parameters that the user chooses.
 */

import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";

import { isCurrent } from "./conversion";
import { isLookedAt, reveal } from "./documents";
import { Derivative, DIFFERENTIATE } from "./protocol";
import { Server } from "./server";
import { asSentence } from "./words";

/** The request to the server, without the document and the option to apply nothing. */
interface Wish {
  readonly position: { line: number; character: number };
  readonly mode: string;
  readonly wrt?: readonly string[];
}

const MODES = [
  { label: "Reverse mode", detail: "The gradient: by all parameters at once.", mode: "reverse" },
  { label: "Forward mode", detail: "The derivative along one direction.", mode: "forward" },
];

/** Differentiate the function at the cursor, or say why that is impossible. */
export async function differentiate(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || !isLookedAt(editor.document)) {
    say("put the cursor in a Python function to differentiate it.");
    return;
  }
  const client = await server.ready();
  const chosen = client && (await vscode.window.showQuickPick(MODES, { placeHolder: "Differentiate in …" }));
  if (client === undefined || chosen === undefined) {
    return;
  }
  const { document, selection } = editor;
  const position = client.code2ProtocolConverter.asPosition(selection.active);
  const wish = { position, mode: chosen.mode };
  try {
    const usual = await derivative(client, document, wish);
    const wrt = await parameters(usual);
    const found =
      wrt === undefined || same(wrt, usual.wrt)
        ? usual
        : await derivative(client, document, { ...wish, wrt });
    if (wrt !== undefined) {
      await make(client, document, found);
    }
  } catch (error) {
    say(
      `the function could not be differentiated: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** The result of a request; nothing is changed. */
function derivative(client: LanguageClient, document: vscode.TextDocument, wish: Wish): Promise<Derivative> {
  return client.sendRequest(ExecuteCommandRequest.type, {
    command: DIFFERENTIATE,
    arguments: [{ uri: document.uri.toString(), apply: false, ...wish }],
  }) as Promise<Derivative>;
}

/** The parameters to differentiate by; undefined if the user cancels. */
async function parameters({
  function: name,
  wrt,
  leftOut,
}: Derivative): Promise<readonly string[] | undefined> {
  const items = [
    ...wrt.map((label) => ({ label, picked: true, description: "" })),
    ...leftOut.map(({ name: label, reason }) => ({ label, picked: false, description: reason })),
  ];
  if (items.length < 2) {
    return wrt;
  }
  const options = { canPickMany: true, placeHolder: `Differentiate ${name} by …` } as const;
  const chosen = await vscode.window.showQuickPick(items, options);
  return chosen && chosen.length > 0 ? chosen.map(({ label }) => label) : undefined;
}

/** Apply the edit and show the new function, or say why there is none and where. */
async function make(client: LanguageClient, document: vscode.TextDocument, found: Derivative): Promise<void> {
  const [refusal] = found.refusals;
  if (!found.edit) {
    const place = refusal && `Go to Line ${refusal.line}`;
    const text = asSentence(found.reason);
    const more = found.refusals.length > 1 ? ` (and ${found.refusals.length - 1} more)` : "";
    const choice = await vscode.window.showWarningMessage(
      `Trainshift: Not differentiated. ${text}${more}`,
      ...(place ? [place] : []),
    );
    if (refusal && choice === place) {
      await reveal(vscode.Uri.parse(refusal.uri), refusal.line, refusal.column);
    }
    return;
  }
  const edit = await client.protocol2CodeConverter.asWorkspaceEdit(found.edit);
  if (!isCurrent(found)) {
    say("the text has changed since; nothing was differentiated. Run the command again.");
  } else if (!(await vscode.workspace.applyEdit(edit))) {
    say("nothing was differentiated: VS Code has refused the edit.");
  } else {
    const start = document.getText().lastIndexOf(`def ${found.made}(`);
    await reveal(document.uri, document.positionAt(Math.max(start, 0)).line + 1);
  }
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
}

function say(text: string): void {
  void vscode.window.showInformationMessage(`Trainshift: ${text}`);
}
