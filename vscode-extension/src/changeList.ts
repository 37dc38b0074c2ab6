/** The list of what a conversion would do, by rule, with boxes to leave changes out. */

import * as vscode from "vscode";

import { placed } from "./documents";
import { Conversion, Note, Rule } from "./protocol";
import { counted } from "./words";

const VIEW = "trainshift.preview";

export const APPLY = "trainshift.applyPreview";
export const DISCARD = "trainshift.discardPreview";
export const REVEAL = "trainshift.revealChange";

/** A line of the list: a rule with its places, or a place. */
interface Row {
  readonly item: vscode.TreeItem;
  readonly rows: readonly Row[];
  /** The change of this line, if it is about one. */
  readonly note?: Note;
}

/** The contents of the list: a conversion, the rules of its changes, and those that the user leaves out. */
export interface Listed {
  readonly conversion: Conversion;
  readonly rules: readonly Rule[];
  readonly leftOut: readonly Note[];
  /** Distinguishes one conversion from the next. */
  readonly turn: number;
}

/** The panel's view "Changes". */
export class ChangeList implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly chosen = new vscode.EventEmitter<readonly Note[]>();
  private readonly view: vscode.TreeView<Row>;
  private readonly disposables: vscode.Disposable[];
  private rows: readonly Row[] = [];
  private leftOut: readonly Note[] = [];

  readonly onDidChangeTreeData = this.changed.event;
  /** Reports the changes that the user leaves out now. */
  readonly onDidChoose = this.chosen.event;

  constructor() {
    const options = { treeDataProvider: this, showCollapseAll: true, manageCheckboxStateManually: true };
    this.view = vscode.window.createTreeView(VIEW, options);
    this.disposables = [
      this.changed,
      this.chosen,
      this.view,
      this.view.onDidChangeCheckboxState(({ items }) => this.choose(items)),
    ];
  }

  dispose(): void {
    this.disposables.forEach((each) => void each.dispose());
  }

  getTreeItem(row: Row): vscode.TreeItem {
    return row.item;
  }

  getChildren(row?: Row): Row[] {
    return [...(row?.rows ?? this.rows)];
  }

  /** List the changes of a conversion. */
  fill({ conversion, rules, leftOut, turn }: Listed): void {
    this.leftOut = leftOut;
    this.rows = [
      actionRow(`Apply ${counted(conversion.changes.length, "Change")}`, "check", APPLY, turn),
      actionRow("Discard", "discard", DISCARD, turn),
      ...rowsOf(conversion, rules, conversion.program !== "", leftOut),
    ];
    this.say(introduction(conversion));
    this.changed.fire();
  }

  /** Show a message above the list. */
  say(message: string): void {
    this.view.message = message;
  }

  /** Open the list, under the name of the converted file or program. */
  async open(name: string): Promise<void> {
    this.view.description = name;
    await vscode.commands.executeCommand(`${VIEW}.focus`);
  }

  /** Close the panel, which would otherwise show another view that was not requested. */
  async close(): Promise<void> {
    if (this.view.visible) {
      await vscode.commands.executeCommand("workbench.action.closePanel");
    }
  }

  /** The user has ticked or unticked changes. */
  private choose(items: readonly [Row, vscode.TreeItemCheckboxState][]): void {
    const left = new Set(this.leftOut);
    for (const [row, state] of items) {
      for (const each of left) {
        if (isSame(each, row.note)) left.delete(each);
      }
      if (row.note !== undefined && state === vscode.TreeItemCheckboxState.Unchecked) left.add(row.note);
    }
    this.chosen.fire([...left]);
  }
}

function isSame(one: Note, other: Note | undefined): boolean {
  return one.rule === other?.rule && one.uri === other.uri && one.line === other.line;
}

function rowsOf(
  conversion: Conversion,
  rules: readonly Rule[],
  areSeveral: boolean,
  leftOut: readonly Note[],
): Row[] {
  const titles = new Map(rules.map((rule) => [rule.code, rule]));
  const out = leftOut.filter((note) => !conversion.changes.some((each) => isSame(each, note)));
  const changes = [...conversion.changes, ...out].sort((one, other) => one.line - other.line);
  const codes = [...new Set(changes.map((note) => note.rule))].sort();
  const byRule = codes.map((code) => {
    const notes = changes.filter((note) => note.rule === code);
    const reasons = [...conversion.decisions, ...conversion.doubts].filter((note) => note.rule === code);
    return ruleRow(code, titles.get(code)?.title ?? "", [
      ...notes.map((note) => changeRow(note, areSeveral, out.includes(note))),
      ...reasons.map((note) => noteRow(note, "info", areSeveral)),
    ]);
  });
  const left = conversion.withheld.map((note) => noteRow(note, "warning", areSeveral));
  return [
    ...(left.length > 0 ? [headRow("Left alone", "these may need your attention", left)] : []),
    ...byRule,
  ];
}

/** A separate row for each conversion: the row clicked last time is not selected. */
function actionRow(label: string, icon: string, command: string, turn: number): Row {
  const item = new vscode.TreeItem(label);
  item.id = `${command} ${turn}`;
  item.iconPath = new vscode.ThemeIcon(icon);
  item.command = { title: label, command };
  return { item, rows: [] };
}

function ruleRow(code: string, title: string, rows: readonly Row[]): Row {
  const row = headRow(title, code, rows);
  row.item.contextValue = "rule";
  row.item.id = code;
  return row;
}

function headRow(label: string, description: string, rows: readonly Row[]): Row {
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  item.description = description;
  item.tooltip = `${label} (${description})`;
  return { item, rows };
}

/** The row of a change, with a check box if the others are valid without it. */
function changeRow(note: Note, isOneOfSeveral: boolean, isLeftOut: boolean): Row {
  const row = noteRow(note, "edit", isOneOfSeveral);
  if (note.optional) {
    const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
    row.item.checkboxState = isLeftOut ? Unchecked : Checked;
    delete row.item.iconPath;
  }
  return { ...row, note };
}

function noteRow(note: Note, icon: string, isOneOfSeveral: boolean): Row {
  const item = new vscode.TreeItem(note.text);
  item.description = placed(note.uri, note.line, isOneOfSeveral);
  item.tooltip = note.text;
  item.iconPath = new vscode.ThemeIcon(icon);
  item.command = { title: "Show", command: REVEAL, arguments: [note.uri, note.line - 1] };
  return { item, rows: [] };
}

function introduction({ changes, withheld, files }: Conversion): string {
  const left = withheld.length > 0 ? `, ${withheld.length} left alone` : "";
  const where = files > 1 ? ` in ${files} files` : "";
  return `${counted(changes.length, "change")}${where}${left}. Nothing is changed until you apply them.`;
}
