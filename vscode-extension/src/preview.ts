/** What a conversion would do, before anything is changed: a diff, and a list of the changes by rule. */

import * as vscode from "vscode";

import { cellNumber, nameOf, placed } from "./documents";
import { Conversion, Note, Rule } from "./protocol";
import { counted } from "./words";

const VIEW = "trainshift.preview";
const CONTEXT = "trainshift.isPreviewing";
const SCHEME = "trainshift-preview";
/** What the titles of all diffs end with. */
const TITLE = " ↔ made distributed";

export const APPLY = "trainshift.applyPreview";
export const DISCARD = "trainshift.discardPreview";
export const REVEAL = "trainshift.revealChange";

/** A line of the list: a rule with its places, or a place. */
interface Row {
  readonly item: vscode.TreeItem;
  readonly rows: readonly Row[];
}

/** A document, and the two sides that show what it would become. */
interface Pair {
  readonly document: vscode.Uri;
  readonly before: vscode.Uri;
  readonly after: vscode.Uri;
  readonly texts: readonly [uri: vscode.Uri, text: string][];
}

interface Shown {
  readonly title: string;
  readonly pairs: readonly Pair[];
  readonly texts: ReadonlyMap<string, string>;
  readonly decide: (isApplied: boolean) => void;
}

/** Shows one conversion at a time, until the person has decided. */
export class Preview
  implements vscode.TextDocumentContentProvider, vscode.TreeDataProvider<Row>, vscode.Disposable
{
  private readonly rowsChanged = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<Row>;
  private readonly disposables: vscode.Disposable[];
  private rows: readonly Row[] = [];
  private shown: Shown | undefined;
  private number = 0;
  private turn = 0;
  private last: Promise<boolean> = Promise.resolve(false);

  readonly onDidChangeTreeData = this.rowsChanged.event;

  constructor() {
    this.view = vscode.window.createTreeView(VIEW, { treeDataProvider: this, showCollapseAll: true });
    // Of a diff of an earlier session the right side is lost.
    void vscode.window.tabGroups.close(tabsOf(TITLE));
    this.disposables = [
      this.rowsChanged,
      this.view,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        const title = this.shown?.title;
        if (title !== undefined && closed.some((tab) => isDiff(tab, title))) {
          // A tab that is moved is closed in one place and opened in another.
          setTimeout(() => title === this.shown?.title && tabsOf(title).length === 0 && this.decide(false));
        }
      }),
    ];
  }

  dispose(): void {
    this.shown?.decide(false);
    this.disposables.forEach((each) => void each.dispose());
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.shown?.texts.get(uri.toString()) ?? "";
  }

  getTreeItem(row: Row): vscode.TreeItem {
    return row.item;
  }

  getChildren(row?: Row): Row[] {
    return [...(row?.rows ?? this.rows)];
  }

  /** Whether the person wants a conversion of what is called `name`; closing the diff says no. */
  ask(
    name: string,
    edit: vscode.WorkspaceEdit,
    conversion: Conversion,
    rules: readonly Rule[],
  ): Promise<boolean> {
    this.shown?.decide(false);
    const turn = ++this.turn;
    const mine = this.last.then(() => this.run(turn, name, edit, conversion, rules));
    this.last = mine.catch(() => false);
    return mine;
  }

  /** Show a line of a document, counted from 0, on the left side of the diff. */
  reveal(uri: string, line: number): void {
    const pair = this.shown?.pairs.find(({ document }) => document.toString() === uri);
    const range = new vscode.Range(line, 0, line, 0);
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() === pair?.before.toString()) {
        editor.selection = new vscode.Selection(range.start, range.start);
        editor.revealRange(range, vscode.TextEditorRevealType.InCenter);
      }
    }
  }

  /** The person has decided. */
  decide(isApplied: boolean): void {
    this.shown?.decide(isApplied);
  }

  private async run(
    turn: number,
    name: string,
    edit: vscode.WorkspaceEdit,
    conversion: Conversion,
    rules: readonly Rule[],
  ): Promise<boolean> {
    const pairs = await Promise.all(edit.entries().map(([uri, edits]) => this.pair(uri, edits)));
    if (turn !== this.turn) {
      return false;
    }
    const texts = new Map(pairs.flatMap((pair) => pair.texts).map(([uri, text]) => [uri.toString(), text]));
    const title = `${name}${TITLE}`;
    const decided = new Promise<boolean>((decide) => (this.shown = { title, pairs, texts, decide }));
    this.rows = [
      actionRow(`Apply ${counted(conversion.changes.length, "Change")}`, "check", APPLY, turn),
      actionRow("Discard", "discard", DISCARD, turn),
      ...rowsOf(conversion, rules, conversion.program !== ""),
    ];
    this.rowsChanged.fire();
    this.view.description = name;
    this.view.message = introduction(conversion, pairs);
    await vscode.commands.executeCommand("setContext", CONTEXT, true);
    try {
      await vscode.commands.executeCommand(`${VIEW}.focus`);
      // VS Code gives no answer where another editor takes the place of the diff before it is there.
      await Promise.race([decided, showDiff(title, pairs).then(() => this.tidy(title))]);
      return await decided;
    } finally {
      this.shown = undefined;
      if (this.view.visible) {
        // Else the panel would go on to show another view, which nobody has asked for.
        await vscode.commands.executeCommand("workbench.action.closePanel");
      }
      await vscode.commands.executeCommand("setContext", CONTEXT, false);
      await this.tidy(title);
    }
  }

  /** Close the diff of a conversion that is decided, also one that comes late. */
  private async tidy(title: string): Promise<void> {
    if (this.shown?.title !== title) {
      await vscode.window.tabGroups.close(tabsOf(title), true);
    }
  }

  private async pair(uri: vscode.Uri, edits: readonly vscode.TextEdit[]): Promise<Pair> {
    const document = await vscode.workspace.openTextDocument(uri);
    const text = edited(document, edits);
    const cell = cellNumber(uri.toString());
    const query = String(++this.number);
    if (cell === undefined) {
      // In a list of several files a side of another path would be shown as a file that was renamed.
      const path = uri.scheme === "file" ? uri.path : `/${nameOf(uri)}`;
      const after = vscode.Uri.from({ scheme: SCHEME, path, query });
      return { document: uri, before: uri, after, texts: [[after, text]] };
    }
    // Sides of different paths would be shown as a file that was renamed.
    const side = { scheme: SCHEME, path: `/${nameOf(uri)}/Cell ${cell}.py` };
    const before = vscode.Uri.from({ ...side, query: `${query}-before` });
    const after = vscode.Uri.from({ ...side, query });
    const texts: Pair["texts"] = [
      [before, document.getText()],
      [after, text],
    ];
    return { document: uri, before, after, texts };
  }
}

async function showDiff(title: string, pairs: readonly Pair[]): Promise<void> {
  const [first] = pairs;
  if (pairs.length === 1 && first !== undefined) {
    const { before, after } = first;
    await vscode.commands.executeCommand("vscode.diff", before, after, title, { preview: false });
  } else {
    const listed = pairs.map(({ document, before, after }) => [document, before, after]);
    await vscode.commands.executeCommand("vscode.changes", title, listed);
  }
}

/** The tabs of the diffs whose title ends so: that of several files has nothing else to know it by. */
function tabsOf(title: string): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter((tab) => isDiff(tab, title));
}

function isDiff({ label }: vscode.Tab, title: string): boolean {
  // VS Code adds the number of files.
  return label.replace(/ \(\d+ files?\)$/, "").endsWith(title);
}

/** A document's text with edits made, which do not overlap; of several at a place the first comes first. */
function edited(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): string {
  const text = document.getText();
  const placed = edits
    .map(({ range, newText }) => ({
      start: document.offsetAt(range.start),
      end: document.offsetAt(range.end),
      newText,
    }))
    .sort((one, other) => one.start - other.start || one.end - other.end);
  let done = 0;
  const parts: string[] = [];
  for (const { start, end, newText } of placed) {
    parts.push(text.slice(done, start), newText);
    done = end;
  }
  return [...parts, text.slice(done)].join("");
}

function rowsOf(conversion: Conversion, rules: readonly Rule[], areSeveral: boolean): Row[] {
  const titles = new Map(rules.map((rule) => [rule.code, rule]));
  const codes = [...new Set(conversion.changes.map((note) => note.rule))].sort();
  const byRule = codes.map((code) => {
    const notes = conversion.changes.filter((note) => note.rule === code);
    const reasons = [...conversion.decisions, ...conversion.doubts].filter((note) => note.rule === code);
    return ruleRow(code, titles.get(code)?.title ?? "", [
      ...notes.map((note) => noteRow(note, "edit", areSeveral)),
      ...reasons.map((note) => noteRow(note, "info", areSeveral)),
    ]);
  });
  const left = conversion.withheld.map((note) => noteRow(note, "warning", areSeveral));
  return [
    ...(left.length > 0 ? [headRow("Left alone", "these may need your attention", left)] : []),
    ...byRule,
  ];
}

/** A row of its own for each conversion: the one that was clicked last time is not chosen. */
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

function noteRow(note: Note, icon: string, isOneOfSeveral: boolean): Row {
  const item = new vscode.TreeItem(note.text);
  item.description = placed(note.uri, note.line, isOneOfSeveral);
  item.tooltip = note.text;
  item.iconPath = new vscode.ThemeIcon(icon);
  item.command = { title: "Show", command: REVEAL, arguments: [note.uri, note.line - 1] };
  return { item, rows: [] };
}

function introduction({ changes, withheld }: Conversion, pairs: readonly Pair[]): string {
  const left = withheld.length > 0 ? `, ${withheld.length} left alone` : "";
  const files = pairs.filter(({ document }) => cellNumber(document.toString()) === undefined);
  const where = files.length > 1 ? ` in ${files.length} files` : "";
  return `${counted(changes.length, "change")}${where}${left}. Nothing is changed until you apply them.`;
}
