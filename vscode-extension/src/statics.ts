/** "Expand to Static Graph Code" and "Make Static": a Paddle function or the whole file, with the preview. */

import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";

import { isCurrent } from "./conversion";
import { isLookedAt, nameOf, notebookOf, reveal } from "./documents";
import { MADE_STATIC, GRAPH_CODE, Preview, Proposal } from "./preview";
import { EXPAND_STATIC, MAKE_STATIC, StaticResult } from "./protocol";
import { Server } from "./server";
import { asSentence } from "./words";

/** The name of a command in messages, and the ending of its diff's title. */
const WORDS = {
  [EXPAND_STATIC]: { done: "expanded", ending: GRAPH_CODE },
  [MAKE_STATIC]: { done: "made static", ending: MADE_STATIC },
};

/** Run it for the function at the cursor, or for the whole file if there is none, or say why not. */
export async function rewriteStatic(
  server: Server,
  preview: Preview,
  command: typeof EXPAND_STATIC | typeof MAKE_STATIC,
): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const { done, ending } = WORDS[command];
  if (editor === undefined || !isLookedAt(editor.document)) {
    say(`put the cursor in a Python function that uses PaddlePaddle to have it ${done}.`);
    return;
  }
  const client = await server.ready();
  if (client === undefined) {
    return;
  }
  const { document, selection } = editor;
  const position = client.code2ProtocolConverter.asPosition(selection.active);
  const name = nameOf(notebookOf(document.uri)?.uri ?? document.uri);
  const ask = (wish: object): Promise<StaticResult> => result(client, command, document, wish);
  try {
    const first = await ask({ position });
    if (!first.edit) {
      await refuse(first, done);
      return;
    }
    const proposed = async (found: StaticResult): Promise<Proposal | undefined> =>
      found.edit
        ? { conversion: found, edit: await client.protocol2CodeConverter.asWorkspaceEdit(found.edit) }
        : undefined;
    const renew = async () => proposed(await ask(first.function ? { function: first.function } : {}));
    const proposal = await (isCurrent(first) ? proposed(first) : renew());
    const chosen = proposal && (await preview.ask(name, proposal, first.rules, renew, ending));
    if (chosen === undefined) {
      return;
    }
    if (!isCurrent(chosen.conversion)) {
      say(`${name} has changed since; nothing was ${done}. Run the command again.`);
    } else if (!(await vscode.workspace.applyEdit(chosen.edit))) {
      say(`${name} is not changed: VS Code has refused the edit.`);
    } else {
      const { withheld, doubts } = chosen.conversion;
      const left = [...withheld, ...doubts].map(({ line, text }) => ` Line ${line}: ${asSentence(text)}`);
      say(`${first.function || name} is ${done}.${left[0] ?? ""}`);
    }
  } catch (error) {
    say(`nothing was ${done}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The result of a request; nothing is changed. */
function result(
  client: LanguageClient,
  command: string,
  document: vscode.TextDocument,
  wish: object,
): Promise<StaticResult> {
  return client.sendRequest(ExecuteCommandRequest.type, {
    command,
    arguments: [{ uri: document.uri.toString(), apply: false, ...wish }],
  }) as Promise<StaticResult>;
}

/** Say why nothing is changed, and show the place. */
async function refuse({ reason, withheld }: StaticResult, done: string): Promise<void> {
  const [first] = withheld;
  const place = first?.uri === undefined ? undefined : `Go to Line ${first.line}`;
  const text = `Trainshift: Not ${done}. ${asSentence(reason)}`;
  const choice = await vscode.window.showWarningMessage(text, ...(place ? [place] : []));
  if (first?.uri !== undefined && choice === place) {
    await reveal(vscode.Uri.parse(first.uri), first.line, first.column);
  }
}

function say(text: string): void {
  void vscode.window.showInformationMessage(`Trainshift: ${text}`);
}
