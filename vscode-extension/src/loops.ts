/** The training loops of the active document in the status bar, and their details. */

import * as vscode from "vscode";
import { LSPErrorCodes, ResponseError } from "vscode-languageclient/node";

import { inFront, placed, reveal } from "./documents";
import { kerasOf } from "./keras";
import { CHOOSE_KERAS } from "./commands";
import { MAKE_DISTRIBUTED, Outline, OutlineRequest, SHOW_WARNINGS } from "./protocol";
import { Scripts } from "./scripts";
import { Server } from "./server";
import { counted } from "./words";

const PAUSE_MS = 300;
const PASSED: readonly number[] = [
  LSPErrorCodes.ContentModified,
  LSPErrorCodes.ServerCancelled,
  LSPErrorCodes.RequestCancelled,
];

/** The item in the status bar, such as "GradientTape · 1 loop". */
export class LoopStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "trainshift.loops",
    vscode.StatusBarAlignment.Right,
    101,
  );
  private readonly disposables: vscode.Disposable[] = [this.item];
  private timer: NodeJS.Timeout | undefined;
  private asking: vscode.CancellationTokenSource | undefined;

  constructor(
    private readonly server: Server,
    private readonly scripts: Scripts,
  ) {
    this.item.name = "Trainshift Training Loops";
    this.item.command = "trainshift.showLoops";
    const soon = () => this.soon();
    this.disposables.push(
      server.onDidChangeState(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.window.onDidChangeActiveNotebookEditor(soon),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === inFront()) {
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

  /** Show the loops in a list that leads to each, or converts the file. */
  async choose(): Promise<void> {
    const document = inFront();
    if (document === undefined) {
      const text = "Trainshift: open a Python script or a notebook to see its training loops.";
      void vscode.window.showInformationMessage(text);
      return;
    }
    const outline = (await this.server.ready()) && (await this.outline(document, undefined));
    if (!outline) {
      return;
    }
    const items = [
      ...outline.loops.map(loopItem),
      ...(outline.partOf ? [startItem(outline.partOf)] : []),
      wholeItem(outline, document.uri),
      ...(outline.keras ? [kerasItem(outline)] : []),
      ...(outline.warnings > 0 ? [warningsItem(outline)] : []),
    ];
    const title = headline(outline) || "No training loop was found";
    const chosen = await vscode.window.showQuickPick(items, { title, matchOnDetail: true });
    await chosen?.act();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.show(), PAUSE_MS);
  }

  private async show(): Promise<void> {
    this.asking?.cancel();
    const asking = (this.asking = new vscode.CancellationTokenSource());
    const document = inFront();
    try {
      const outline = document && (await this.outline(document, asking.token));
      if (asking === this.asking) {
        this.display(outline);
        if (outline) {
          this.scripts.note(document.uri, outline.usesTensorflow);
        }
      }
    } catch (error) {
      // If the version is outdated, the shown item stays until the next one is known.
      if (asking === this.asking && error instanceof ResponseError && PASSED.includes(error.code)) {
        this.soon();
      }
    }
  }

  private display(outline: Outline | null | undefined): void {
    if (!outline || (outline.loops.length === 0 && outline.partOf === null)) {
      this.item.hide();
      return;
    }
    const [icon, judgement] = judged(outline);
    const warnings = outline.warnings > 0 ? `, ${counted(outline.warnings, "warning")}` : "";
    const told = `${judgement}${warnings}${outline.keras && `; ${outline.keras}`}`;
    this.item.text = `${icon} ${headline(outline)}`;
    this.item.tooltip = `Trainshift: ${told}`;
    this.item.accessibilityInformation = { label: `${headline(outline)}: ${told}` };
    this.item.show();
  }

  private async outline(
    { uri }: vscode.TextDocument,
    token: vscode.CancellationToken | undefined,
  ): Promise<Outline | null | undefined> {
    return this.server.running?.sendRequest(OutlineRequest, { textDocument: { uri: uri.toString() } }, token);
  }
}

/** A line of the list, and its action. */
interface Item extends vscode.QuickPickItem {
  readonly act: () => unknown;
}

function loopItem({ name, uri, range }: Outline["loops"][number]): Item {
  const { line } = range.start;
  return {
    label: `$(sync) ${name} loop`,
    description: placed(uri, line + 1),
    detail: lineOf(uri, line),
    act: () => reveal(vscode.Uri.parse(uri), line + 1),
  };
}

function wholeItem(outline: Outline, uri: vscode.Uri): Item {
  const [icon, text] = judged(outline);
  const act = () => vscode.commands.executeCommand(MAKE_DISTRIBUTED, { uri: uri.toString() });
  return outline.status === "convertible"
    ? {
        label: `${icon} Make Distributed`,
        description: counted(outline.changes, "change"),
        detail: "Shows the changes before anything is changed",
        act,
      }
    : { label: `${icon} ${text}`, act };
}

function kerasItem(outline: Outline): Item {
  return {
    label: `$(versions) ${kerasOf(outline)}`,
    detail: "Target of the conversion; change the Keras version for this workspace",
    act: () => vscode.commands.executeCommand(CHOOSE_KERAS),
  };
}

function warningsItem({ warnings }: Outline): Item {
  return {
    label: `$(warning) ${counted(warnings, "warning")}`,
    detail: "Places that break a restriction; shown in Problems",
    act: () => vscode.commands.executeCommand(SHOW_WARNINGS),
  };
}

function startItem({ name, uri, files }: NonNullable<Outline["partOf"]>): Item {
  return {
    label: `$(file) Open ${name}`,
    description: counted(files, "file"),
    detail: "Starts the program that this file is a part of",
    act: () => reveal(vscode.Uri.parse(uri), 1),
  };
}

/** "GradientTape · 1 loop", of a module "… · part of main.py · 2 files"; the names of several kinds are listed. */
function headline({ loops, partOf }: Outline): string {
  const names = [...new Set(loops.map((loop) => loop.name))].join(", ");
  const own = loops.length > 0 ? [names, counted(loops.length, "loop")] : [];
  const whole = partOf === null ? [] : [`part of ${partOf.name}`, counted(partOf.files, "file")];
  return [...own, ...whole].join(" · ");
}

function judged(outline: Outline): [icon: string, text: string] {
  switch (outline.status) {
    case "convertible":
      return [
        "$(sync)",
        `${counted(outline.changes, "change")} would make ${outline.program || "this file"} distributed`,
      ];
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
