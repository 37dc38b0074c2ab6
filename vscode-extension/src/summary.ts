/** The summary of a conversion, as a page whose lines link to the new files. */

import * as vscode from "vscode";
import { DiagnosticSeverity, DocumentDiagnosticRequest, LanguageClient } from "vscode-languageclient/node";

import { notebookOf, placed } from "./documents";
import { PROVE, RUN } from "./commands";
import { EXPLAIN, Note, OPEN_LINE } from "./protocol";

const VIEW = "trainshift.summary";
/** The number of polls for remaining warnings, since the server may still be checking the new texts. */
const MOST_TURNS = 20;
const PAUSE_MS = 250;

/** The result of a conversion: the requested document, the outcome in words, and notes on places. */
export interface Outcome {
  readonly name: string;
  readonly document: vscode.Uri;
  readonly text: string;
  readonly isOneOfSeveral: boolean;
  readonly sections: readonly Section[];
}

export interface Section {
  readonly heading: string;
  readonly lead: string;
  /** Places are in the new texts. */
  readonly notes: readonly Note[];
}

/** The page of the last conversion, which can be reopened. */
export class Summary implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private last: Outcome | undefined;

  dispose(): void {
    this.panel?.dispose();
  }

  /** Show the summary of a conversion, by default the last one. */
  show(outcome = this.last): void {
    if (outcome === undefined) {
      void vscode.window.showInformationMessage("Trainshift: nothing was converted in this session.");
      return;
    }
    this.last = outcome;
    const panel = (this.panel ??= this.made());
    panel.title = `Summary of ${outcome.name}`;
    panel.webview.html = html(outcome);
    panel.reveal();
  }

  /** The results of conversions, for later requests. */
  keep(outcome: Outcome): void {
    this.last = outcome;
  }

  private made(): vscode.WebviewPanel {
    const options = { enableCommandUris: [OPEN_LINE, EXPLAIN, PROVE, RUN], enableFindWidget: true };
    const panel = vscode.window.createWebviewPanel(VIEW, "Summary", vscode.ViewColumn.Active, options);
    panel.onDidDispose(() => (this.panel = undefined));
    return panel;
  }
}

/** Notes on old texts, moved to their places in the texts after an edit. */
export function moved(notes: readonly Note[], edit: vscode.WorkspaceEdit): Note[] {
  const edits = new Map(edit.entries().map(([uri, each]) => [uri.toString(), each]));
  return notes.map((note) => {
    const own = note.uri === undefined ? [] : (edits.get(vscode.Uri.parse(note.uri).toString()) ?? []);
    const at = new vscode.Position(note.line - 1, (note.column ?? 1) - 1);
    const before = own.filter(({ range }) => range.end.isBeforeOrEqual(at));
    const added = before.map(({ range, newText }) => {
      return (newText.match(/\r\n|\r|\n/g) ?? []).length - (range.end.line - range.start.line);
    });
    return { ...note, line: note.line + added.reduce((sum, each) => sum + each, 0) };
  });
}

/** The remaining warnings and errors of documents. */
export async function warningsIn(client: LanguageClient, documents: readonly vscode.Uri[]): Promise<Note[]> {
  const found = await Promise.all(documents.map((uri) => warningsOf(client, uri.toString())));
  return found.flat();
}

// What a finding says of a conversion that is yet to come.
const TO_COME = / The conversion handles it\.$/;

async function warningsOf(client: LanguageClient, uri: string): Promise<Note[]> {
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    try {
      const report = await client.sendRequest(DocumentDiagnosticRequest.type, { textDocument: { uri } });
      const items = report.kind === "full" ? report.items : [];
      return items
        .filter(({ severity = DiagnosticSeverity.Hint }) => severity <= DiagnosticSeverity.Warning)
        .map(({ code, range, message }) => {
          const { line, character } = range.start;
          return {
            rule: String(code),
            uri,
            line: line + 1,
            column: character + 1,
            text: (typeof message === "string" ? message : message.value).replace(TO_COME, ""),
          };
        });
    } catch {
      // The server is processing a newer version.
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
  return [];
}

function html(outcome: Outcome): string {
  const { name, document, text, isOneOfSeveral } = outcome;
  const sections = outcome.sections.filter(({ notes }) => notes.length > 0);
  const body = sections.map(({ heading, lead, notes }) => {
    const items = notes.map((note) => item(note, isOneOfSeveral)).join("\n");
    return `<h2>${plain(heading)}</h2>\n${lead && `<p>${plain(lead)}</p>\n`}<ul>\n${items}\n</ul>`;
  });
  const run = link("Run With Horovod…", RUN, [document.toString()], "button");
  const prove = link("Prove With Two Ranks…", PROVE, [document.toString()], "button");
  const next = notebookOf(document) === undefined ? `<p>${run} ${prove}</p>` : "";
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { padding: 0 2em 2em; line-height: 1.6; }
h1, h2 { border-bottom: 1px solid var(--vscode-widget-border, #8884); padding-bottom: 0.2em; }
a { color: var(--vscode-textLink-foreground); text-decoration: none; }
a:hover { text-decoration: underline; }
.button { background: var(--vscode-button-background); color: var(--vscode-button-foreground);
  display: inline-block; padding: 0.3em 1em; border-radius: 2px; }
.button:hover { background: var(--vscode-button-hoverBackground); text-decoration: none; }
</style>
</head>
<body>
<h1>${plain(name)}</h1>
<p>${plain(text)}</p>
${next}
${body.join("\n")}
</body>
</html>`;
}

function item({ rule, uri, line, text }: Note, isOneOfSeveral: boolean): string {
  const place = placed(uri, line, isOneOfSeveral);
  const where = uri === undefined ? plain(place) : link(place, OPEN_LINE, [uri, line]);
  return `<li>${link(rule, EXPLAIN, [rule])}, ${where}: ${plain(text)}</li>`;
}

function link(text: string, command: string, parameters: readonly unknown[], style = ""): string {
  const query = encodeURIComponent(JSON.stringify(parameters));
  return `<a${style && ` class="${style}"`} href="command:${command}?${query}">${plain(text)}</a>`;
}

/** A text escaped for HTML. */
function plain(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
