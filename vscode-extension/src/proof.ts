/** "Prove With Two Ranks…": a few steps of the script in front on real ranks, and a page about what was seen. */

import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

import * as vscode from "vscode";

import { nameOf } from "./documents";
import { preparedLaunch, pythonOf, scriptToRun } from "./horovod";
import { Interpreters } from "./interpreter";
import { PROVE_WITH_RANKS } from "./launch";
import { EXPLAIN, OPEN_LINE } from "./protocol";
import { Server } from "./server";
import { runInTerminal } from "./terminal";

const VIEW = "trainshift.proof";
const PAGE = "proof.html";

/** Ask how, run the script at `uri`, else the one in front, and show the page about it. */
export async function prove(
  server: Server,
  interpreters: Interpreters,
  context: vscode.ExtensionContext,
  uri?: unknown,
): Promise<void> {
  const document = await scriptToRun(uri);
  const tool = server.interpreter;
  if (document === undefined || tool === undefined) {
    return;
  }
  const python = await pythonOf(await interpreters.forScript(document.uri), context.extensionUri);
  if (python === undefined) {
    return;
  }
  const given = await preparedLaunch(document, context.workspaceState, PROVE_WITH_RANKS);
  if (given === undefined) {
    return;
  }
  const folder = context.globalStorageUri.fsPath;
  const page = join(folder, PAGE);
  await mkdir(folder, { recursive: true });
  await rm(page, { force: true });
  const options = ["--yes", "--python", python.executable, "--html", page, ...given.options];
  const parameters = given.parameters.length > 0 ? ["--", ...given.parameters] : [];
  await runInTerminal(
    `prove ${nameOf(document.uri)}`,
    [[...tool.command, "-m", "trainshift", "prove", ...options, given.script, ...parameters]],
    given.cwd,
  );
  const text = await readFile(page, "utf8").catch(() => undefined);
  if (text !== undefined) {
    show(`Proof of ${nameOf(document.uri)}`, text, dirname(given.script));
  }
}

/** Show a page; the places and codes that it names become links. */
function show(title: string, page: string, folder: string): void {
  const options = { enableCommandUris: [EXPLAIN, OPEN_LINE], enableFindWidget: true };
  const panel = vscode.window.createWebviewPanel(VIEW, title, vscode.ViewColumn.Active, options);
  panel.webview.html = page
    .replaceAll(/<code data-path="([^"]*)" data-line="(\d+)">/g, (tag, path: string, line: string) => {
      const place = vscode.Uri.file(join(folder, path)).toString();
      return `<a href="${command(OPEN_LINE, [place, Number(line)])}">${tag}`;
    })
    .replaceAll(/<code data-code="(\w+)">/g, (tag, code: string) => {
      return `<a href="${command(EXPLAIN, [code])}">${tag}`;
    })
    .replaceAll(/(<a href="command:[^>]*><code [^>]*>[^<]*<\/code>)/g, "$1</a>");
}

function command(id: string, given: readonly unknown[]): string {
  return `command:${id}?${encodeURIComponent(JSON.stringify(given))}`;
}
