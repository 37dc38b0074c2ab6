/** The training loops of the document in front, in the status bar, and what there is to know of them. */

import * as vscode from "vscode";

import { MAKE_DISTRIBUTED, Outline, OutlineRequest } from "./protocol";
import { SELECTOR, Server } from "./server";
import { counted } from "./words";

const PAUSE_MS = 300;

/** The item in the status bar, such as "GradientTape · 1 loop". */
export class LoopStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "trainshift.loops",
    vscode.StatusBarAlignment.Right,
    101,
  );
  private readonly disposables: vscode.Disposable[] = [this.item];
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;

  constructor(private readonly server: Server) {
    this.item.name = "Trainshift Training Loops";
    this.item.command = "trainshift.showLoops";
    const soon = () => this.soon();
    this.disposables.push(
      server.onDidChangeState(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === vscode.window.activeTextEditor?.document) {
          this.soon();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("trainshift")) {
          this.soon();
        }
      }),
    );
    this.soon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((each) => void each.dispose());
  }

  /** Show the loops in a list, from which one can go to each, or convert the file. */
  async choose(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const outline = editor && (await this.outline(editor.document));
    if (editor === undefined || !outline) {
      void vscode.window.showInformationMessage(
        "Trainshift: open a Python script to see its training loops.",
      );
      return;
    }
    const loops = outline.loops.map((loop) => ({
      label: `$(sync) ${loop.name} loop`,
      description: `line ${loop.range.start.line + 1}`,
      detail: lineOf(loop.uri, loop.range.start.line),
      act: () => reveal(loop.uri, loop.range.start.line),
    }));
    const [icon, detail] = judged(outline);
    const whole = {
      label: outline.status === "convertible" ? `${icon} Make Distributed` : `${icon} ${detail}`,
      description: outline.status === "convertible" ? counted(outline.changes, "change") : "",
      detail:
        outline.status === "convertible" ? "Shows the changes before anything is changed" : outline.reason,
      act: () => vscode.commands.executeCommand(MAKE_DISTRIBUTED, { uri: editor.document.uri.toString() }),
    };
    const problems = {
      label: `$(warning) ${counted(outline.warnings, "warning")}`,
      description: "",
      detail: "Places that break a restriction; shown in Problems",
      act: () => vscode.commands.executeCommand("workbench.actions.view.problems"),
    };
    const items = [...loops, whole, ...(outline.warnings > 0 ? [problems] : [])];
    const title = outline.loops.length > 0 ? summary(outline) : "No training loop was found";
    const chosen = await vscode.window.showQuickPick(items, { title, matchOnDetail: true });
    await chosen?.act();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.show(), PAUSE_MS);
  }

  private async show(): Promise<void> {
    const number = ++this.asked;
    const document = vscode.window.activeTextEditor?.document;
    const outline = document && (await this.outline(document));
    if (number !== this.asked) {
      return;
    }
    if (!outline || outline.loops.length === 0) {
      this.item.hide();
      return;
    }
    const [icon, judgement] = judged(outline);
    this.item.text = `${icon} ${summary(outline)}`;
    const warnings = outline.warnings > 0 ? `, ${counted(outline.warnings, "warning")}` : "";
    this.item.tooltip = `Trainshift: ${judgement}${warnings}`;
    this.item.accessibilityInformation = { label: `${summary(outline)}: ${judgement}${warnings}` };
    this.item.show();
  }

  private async outline(document: vscode.TextDocument): Promise<Outline | null | undefined> {
    const client = this.server.running;
    if (client === undefined || vscode.languages.match(SELECTOR, document) === 0) {
      return undefined;
    }
    try {
      return await client.sendRequest(OutlineRequest, { textDocument: { uri: document.uri.toString() } });
    } catch {
      return undefined; // The version has passed, and the next one is asked about.
    }
  }
}

/** "GradientTape · 1 loop"; the names of several kinds are listed. */
function summary(outline: Outline): string {
  const names = [...new Set(outline.loops.map((loop) => loop.name))].join(", ");
  return `${names} · ${counted(outline.loops.length, "loop")}`;
}

function judged(outline: Outline): [icon: string, text: string] {
  switch (outline.status) {
    case "convertible":
      return ["$(sync)", `${counted(outline.changes, "change")} would make this file distributed`];
    case "already distributed":
      return ["$(check)", "this file is distributed"];
    default:
      return ["$(circle-slash)", `cannot be made distributed: ${outline.reason}`];
  }
}

function lineOf(uri: string, line: number): string {
  const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri);
  return document && line < document.lineCount ? document.lineAt(line).text.trim() : "";
}

async function reveal(uri: string, line: number): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  const selection = new vscode.Range(line, 0, line, 0);
  await vscode.window.showTextDocument(document, { selection });
}
