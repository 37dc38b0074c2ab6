/** "Prove With Two Ranks…": a few steps of the active script on real ranks, and a page with the result. */

import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

import * as vscode from "vscode";

import { nameOf } from "./documents";
import { equipped } from "./equipment";
import { preparedLaunch, scriptToRun } from "./horovod";
import { Interpreters } from "./interpreter";
import { PROVE_WITH_RANKS } from "./launch";
import { EXPLAIN, OPEN_LINE } from "./protocol";
import { Server } from "./server";
import { runInTerminal } from "./terminal";

const VIEW = "trainshift.proof";
const PAGE = "proof.html";
/** The exit statuses of `trainshift prove`, in words. */
const ENDINGS = {
  0: "Proven; the page has the details.",
  1: "Not proven; the page says what fails.",
  2: "It could not be run; the reason is above.",
};

/** Ask for options, run the script at `uri`, else the active one, and show its page. */
export async function prove(
  server: Server,
  interpreters: Interpreters,
  context: vscode.ExtensionContext,
  uri?: unknown,
): Promise<void> {
  const document = await scriptToRun(server, uri);
  const tool = document && (await server.ready()) && server.interpreter;
  if (document === undefined || tool === undefined) {
    return;
  }
  const equipment = await equipped(document.uri, interpreters, context.extensionUri, false);
  if (equipment === undefined) {
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
  const options = ["--yes", "--color", "always", "--python", equipment.found.executable, "--html", page];
  const parameters = given.parameters.length > 0 ? ["--", ...given.parameters] : [];
  const command = [...tool.command, "-m", "trainshift", "prove", ...options, ...given.options] as const;
  await runInTerminal(
    `prove ${nameOf(document.uri)}`,
    [[...command, given.script, ...parameters]],
    given.cwd,
    // It shows its progress on one line, as in any terminal.
    { TTY_COMPATIBLE: "1" },
    ENDINGS,
  );
  const text = await readFile(page, "utf8").catch(() => undefined);
  if (text !== undefined) {
    show(`Proof of ${nameOf(document.uri)}`, text);
  }
}

/** The page's colours, from the theme. */
const STYLE = `<style>
  body {
    --ink: var(--vscode-foreground); --soft: var(--vscode-descriptionForeground);
    --line: var(--vscode-panel-border, var(--vscode-contrastBorder, var(--soft)));
    --paper: var(--vscode-editorWidget-background); --back: var(--vscode-editor-background);
    --holds: var(--vscode-testing-iconPassed); --fails: var(--vscode-errorForeground);
    --unseen: var(--vscode-editorWarning-foreground);
    --s0: var(--vscode-charts-blue); --s1: var(--vscode-charts-orange); --s2: var(--vscode-charts-purple);
    --s3: var(--vscode-charts-green); --s4: var(--vscode-charts-red); --s5: var(--vscode-charts-yellow);
    --s6: var(--vscode-symbolIcon-classForeground, #b07d2b); --s7: var(--soft); --s8: var(--ink);
    font-family: var(--vscode-font-family);
  }
  .verdict { color: var(--back); }
  a { color: var(--vscode-textLink-foreground); }
</style>`;

/** Show a page; the places and codes that it names become links. */
function show(title: string, page: string): void {
  const options = { enableCommandUris: [EXPLAIN, OPEN_LINE], enableFindWidget: true };
  const panel = vscode.window.createWebviewPanel(VIEW, title, vscode.ViewColumn.Active, options);
  const folder = plain(/ data-folder="([^"]*)"/.exec(page)?.[1] ?? "");
  panel.webview.html = page
    .replaceAll(/<code data-path="([^"]*)" data-line="(\d+)">/g, (tag, path: string, line: string) => {
      const place = vscode.Uri.file(join(folder, plain(path))).toString();
      return `<a href="${command(OPEN_LINE, [place, Number(line)])}">${tag}`;
    })
    .replaceAll(/<code data-code="(\w+)">/g, (tag, code: string) => {
      return `<a href="${command(EXPLAIN, [code])}">${tag}`;
    })
    .replaceAll(/(<a href="command:[^>]*><code [^>]*>[^<]*<\/code>)/g, "$1</a>")
    .replace("</head>", `${STYLE}</head>`);
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" };

/** The value of an attribute of the page. */
function plain(text: string): string {
  return text.replaceAll(/&(lt|gt|quot|#x27|amp);/g, (_, name: string) => ENTITIES[name] ?? "");
}

function command(id: string, given: readonly unknown[]): string {
  return `command:${id}?${encodeURIComponent(JSON.stringify(given))}`;
}
