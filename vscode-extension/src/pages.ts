/** Documents that only exist in the editor, Markdown, shown as a preview; and the pages of the codes. */

import * as vscode from "vscode";

import { RulesRequest } from "./protocol";
import { Server } from "./server";

const SCHEME = "trainshift";

/** Summaries of conversions and the like; each name has one text, the last that was shown. */
export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  readonly onDidChange = this.changed.event;

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "This page is of an earlier session; ask for it again.\n";
  }

  /** Show a Markdown text under a title. */
  async show(title: string, markdown: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title.replaceAll(/[\\/]/g, "-")}.md` });
    this.texts.set(uri.path, markdown);
    this.changed.fire(uri);
    await preview(uri);
  }
}

/** A Markdown document as a person reads it; as its text where VS Code's Markdown extension is turned off. */
async function preview(uri: vscode.Uri): Promise<void> {
  try {
    await vscode.commands.executeCommand("vscode.openWith", uri, "vscode.markdown.preview.editor");
  } catch {
    await vscode.window.showTextDocument(uri, { preview: true });
  }
}

/** "Explain Rule…": show the page of a code, or let the person choose one. */
export async function explain(server: Server, code?: unknown): Promise<void> {
  const client = await server.ready();
  if (client === undefined) {
    return;
  }
  const rules = await client.sendRequest(RulesRequest, {});
  const items = rules.map((rule) => ({ label: rule.code, description: rule.name, detail: rule.title, rule }));
  const chosen =
    typeof code === "string"
      ? items.find((item) => item.label === code.toUpperCase())
      : await vscode.window.showQuickPick(items, {
          title: "Explain Rule",
          placeHolder: "A code, or a word of what the rule is about",
          matchOnDescription: true,
          matchOnDetail: true,
        });
  if (chosen !== undefined) {
    await preview(vscode.Uri.parse(chosen.rule.url));
  } else if (code !== undefined) {
    void vscode.window.showWarningMessage(`Trainshift: there is no rule of that name.`);
  }
}
