/** "Make Distributed": the whole file, with a preview before it and a summary after it. */

import { basename } from "node:path";

import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";

import { Pages } from "./pages";
import { Preview } from "./preview";
import { Conversion, MAKE_DISTRIBUTED, Note, RulesRequest, STATEMENT_KIND } from "./protocol";
import { Server } from "./server";
import { counted } from "./words";

/** Converts documents as a whole, and says what came of it. */
export class Converter {
  constructor(
    private readonly server: Server,
    private readonly preview: Preview,
    private readonly pages: Pages,
  ) {}

  /** Convert a document: the one that is given by a URI or an object that holds one, else the one in front. */
  async makeDistributed(given?: unknown): Promise<void> {
    const uri = uriOf(given);
    if (uri === undefined) {
      void vscode.window.showInformationMessage(
        "Trainshift: open a Python script or a notebook to make it distributed.",
      );
      return;
    }
    const client = await this.server.ready();
    if (client === undefined) {
      return;
    }
    if (!isNotebook(uri)) {
      // The server knows what is open.
      await vscode.window.showTextDocument(uri, { preview: false });
    }
    const name = basename(uri.path);
    const conversion = await plan(client, uri);
    if (!conversion.edit) {
      await this.tell("warning", `${name} is not changed: ${conversion.reason}`, name, conversion);
      return;
    }
    const edit = await client.protocol2CodeConverter.asWorkspaceEdit(conversion.edit);
    const versions = versionsOf(edit);
    const rules = await client.sendRequest(RulesRequest, {});
    if (!(await this.preview.ask(name, edit, conversion, rules))) {
      return;
    }
    if (versionsOf(edit).join() !== versions.join()) {
      await this.tell("warning", `${name} has changed since; nothing was converted. Ask for it again.`, name);
    } else if (!(await vscode.workspace.applyEdit(edit))) {
      await this.tell("warning", `${name} is not changed: VS Code has refused the edit.`, name);
    } else {
      await this.tell("information", `${name} is distributed: ${outcome(conversion)}.`, name, conversion);
    }
  }

  private async tell(
    kind: "information" | "warning",
    text: string,
    name: string,
    conversion?: Conversion,
  ): Promise<void> {
    const show = kind === "warning" ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    const hasMore = conversion && conversion.changes.length + conversion.withheld.length > 0;
    const choice = await show(`Trainshift: ${text}`, ...(hasMore ? ["Show Summary"] : []));
    if (choice !== undefined && conversion) {
      await this.pages.show(`${name} made distributed`, summary(name, text, conversion));
    }
  }
}

/** Convert the statement at the cursor, as its quick fix would. */
export async function makeStatementDistributed(server: Server): Promise<void> {
  if ((await server.ready()) !== undefined) {
    // Says by itself that there is nothing to be done, or why not.
    await vscode.commands.executeCommand("editor.action.codeAction", {
      kind: STATEMENT_KIND,
      apply: "first",
    });
  }
}

/** What converting a document would come to; nothing is changed. */
export function plan(client: LanguageClient, uri: vscode.Uri): Promise<Conversion> {
  return client.sendRequest(ExecuteCommandRequest.type, {
    command: MAKE_DISTRIBUTED,
    arguments: [{ uri: uri.toString(), apply: false }],
  }) as Promise<Conversion>;
}

function uriOf(given: unknown): vscode.Uri | undefined {
  if (given instanceof vscode.Uri) {
    return given;
  }
  if (typeof given === "object" && given !== null && "uri" in given && typeof given.uri === "string") {
    return vscode.Uri.parse(given.uri);
  }
  return vscode.window.activeNotebookEditor?.notebook.uri ?? vscode.window.activeTextEditor?.document.uri;
}

function isNotebook(uri: vscode.Uri): boolean {
  return (
    uri.scheme === "vscode-notebook-cell" ||
    vscode.workspace.notebookDocuments.some((each) => each.uri.toString() === uri.toString())
  );
}

function outcome(conversion: Conversion): string {
  const { changes, withheld, decisions, doubts } = conversion;
  const parts = [
    counted(changes.length, "change"),
    decisions.length > 0 ? counted(decisions.length, "decision") : "",
    doubts.length > 0 ? counted(doubts.length, "assumption") : "",
    withheld.length > 0 ? `${counted(withheld.length, "place")} left alone` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** The versions of the documents that an edit changes. */
function versionsOf(edit: vscode.WorkspaceEdit): (number | undefined)[] {
  const open = vscode.workspace.textDocuments;
  return edit.entries().map(([uri]) => open.find((each) => each.uri.toString() === uri.toString())?.version);
}

/** What was done, why, and what was not. */
function summary(name: string, text: string, conversion: Conversion): string {
  const sections: [heading: string, lead: string, notes: readonly Note[]][] = [
    ["Left alone", "These may need your attention.", conversion.withheld],
    ["Decided", "Where you may want it otherwise.", conversion.decisions],
    ["Assumed", "Where the script does not show it.", conversion.doubts],
    ["Changed", "", conversion.changes],
  ];
  const shown = sections
    .filter(([, , notes]) => notes.length > 0)
    .map(([heading, lead, notes]) => [`## ${heading}`, lead, notes.map(item).join("\n")].join("\n\n"));
  return [`# ${name}`, text, ...shown, "Lines are those before the conversion."].join("\n\n") + "\n";
}

function item(note: Note): string {
  const text = note.text.replaceAll(/[\\`*_{}[\]<>#|]/g, "\\$&");
  return `- **${note.rule}** line ${note.line}: ${text}`;
}
