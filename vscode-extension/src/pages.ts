/** The pages of the codes. */

import * as vscode from "vscode";

import { RulesRequest } from "./protocol";
import { Server } from "./server";

/** Show a Markdown document rendered; as text if VS Code's Markdown extension is turned off. */
async function preview(uri: vscode.Uri): Promise<void> {
  try {
    await vscode.commands.executeCommand("vscode.openWith", uri, "vscode.markdown.preview.editor");
  } catch {
    await vscode.window.showTextDocument(uri, { preview: true });
  }
}

/** "Explain Rule…": show the page of a code, or let the user choose one. */
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
          placeHolder: "A code, or a word from the rule's description",
          matchOnDescription: true,
          matchOnDetail: true,
        });
  if (chosen !== undefined) {
    await preview(vscode.Uri.parse(chosen.rule.url));
  } else if (code !== undefined) {
    void vscode.window.showWarningMessage(`Trainshift: there is no rule of that name.`);
  }
}
