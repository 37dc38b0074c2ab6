/** What a conversion would do, before anything is changed: a diff, and a list of the changes by rule. */

import * as vscode from "vscode";

import { cellNumber, nameOf, placed } from "./documents";
import { Conversion, Note, Rule } from "./protocol";
import { moved } from "./summary";
import { counted } from "./words";

const VIEW = "trainshift.preview";
const CONTEXT = "trainshift.isPreviewing";
const SCHEME = "trainshift-preview";
/** What the titles of diffs end with. */
const MADE_DISTRIBUTED = " ↔ made distributed";
export const GRAPH_CODE = " ↔ graph code, for reading";
export const MADE_STATIC = " ↔ made static";

export const APPLY = "trainshift.applyPreview";
export const DISCARD = "trainshift.discardPreview";
export const REVEAL = "trainshift.revealChange";

/** A line of the list: a rule with its places, or a place. */
interface Row {
  readonly item: vscode.TreeItem;
  readonly rows: readonly Row[];
  /** The change that it is about, where it is one. */
  readonly note?: Note;
}

/** A document, and the two sides that show what it would become. */
interface Pair {
  readonly document: vscode.Uri;
  readonly before: vscode.Uri;
  readonly after: vscode.Uri;
  readonly texts: readonly [uri: vscode.Uri, text: string][];
}

/** What a conversion would do, for the documents as they are. */
export interface Proposal {
  readonly edit: vscode.WorkspaceEdit;
  readonly conversion: Conversion;
}

/** Works out a proposal anew, without some changes that are optional; undefined where there is none. */
export type Renew = (leftOut: readonly Note[]) => Promise<Proposal | undefined>;

interface Shown {
  readonly title: string;
  readonly renew: Renew;
  readonly rules: readonly Rule[];
  readonly decide: (isApplied: boolean) => void;
  proposal: Proposal;
  pairs: readonly Pair[];
  texts: ReadonlyMap<string, string>;
  leftOut: readonly Note[];
}

const PAUSE_MS = 300;

/** Shows one conversion at a time, until the person has decided. */
export class Preview
  implements vscode.TextDocumentContentProvider, vscode.TreeDataProvider<Row>, vscode.Disposable
{
  private readonly rowsChanged = new vscode.EventEmitter<void>();
  private readonly textChanged = new vscode.EventEmitter<vscode.Uri>();
  private readonly view: vscode.TreeView<Row>;
  private readonly disposables: vscode.Disposable[];
  private rows: readonly Row[] = [];
  private shown: Shown | undefined;
  private number = 0;
  private turn = 0;
  private last: Promise<Proposal | undefined> = Promise.resolve(undefined);
  private timer: NodeJS.Timeout | undefined;
  private renewals = 0;

  readonly onDidChangeTreeData = this.rowsChanged.event;
  readonly onDidChange = this.textChanged.event;

  constructor() {
    const options = { treeDataProvider: this, showCollapseAll: true, manageCheckboxStateManually: true };
    this.view = vscode.window.createTreeView(VIEW, options);
    // Of a diff of an earlier session the right side is lost.
    void vscode.window.tabGroups.close([MADE_DISTRIBUTED, GRAPH_CODE, MADE_STATIC].flatMap(tabsOf));
    this.disposables = [
      this.rowsChanged,
      this.textChanged,
      this.view,
      this.view.onDidChangeCheckboxState(({ items }) => this.choose(items)),
      vscode.workspace.onDidChangeTextDocument((event) => this.edited(event)),
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
    clearTimeout(this.timer);
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

  /**
   * What the person wants of a conversion of what is called `name`, if anything; closing the diff says no.
   *
   * The title of the diff is the name with an `ending`.
   */
  ask(
    name: string,
    proposal: Proposal,
    rules: readonly Rule[],
    renew: Renew,
    ending = MADE_DISTRIBUTED,
  ): Promise<Proposal | undefined> {
    this.shown?.decide(false);
    const turn = ++this.turn;
    const mine = this.last.then(() => this.run(turn, name, ending, proposal, rules, renew));
    this.last = mine.catch(() => undefined);
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
    ending: string,
    proposal: Proposal,
    rules: readonly Rule[],
    renew: Renew,
  ): Promise<Proposal | undefined> {
    const pairs = await this.pairs(proposal);
    if (turn !== this.turn) {
      return undefined;
    }
    const title = `${name}${ending}`;
    let shown: Shown | undefined;
    const decided = new Promise<boolean>((decide) => {
      shown = { title, renew, rules, decide, proposal, pairs, texts: textsOf(pairs), leftOut: [] };
      this.fill(shown, turn);
    });
    this.view.description = name;
    await vscode.commands.executeCommand("setContext", CONTEXT, true);
    try {
      await vscode.commands.executeCommand(`${VIEW}.focus`);
      // VS Code gives no answer where another editor takes the place of the diff before it is there.
      await Promise.race([decided, showDiff(title, pairs).then(() => this.tidy(title))]);
      return (await decided) ? shown?.proposal : undefined;
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

  /** List what a conversion would do. */
  private fill(shown: Shown, turn = this.turn): void {
    const { conversion } = shown.proposal;
    this.shown = shown;
    this.rows = [
      actionRow(`Apply ${counted(conversion.changes.length, "Change")}`, "check", APPLY, turn),
      actionRow("Discard", "discard", DISCARD, turn),
      ...rowsOf(conversion, shown.rules, conversion.program !== "", shown.leftOut),
    ];
    this.view.message = introduction(conversion, shown.pairs);
    this.rowsChanged.fire();
  }

  /** The person has ticked changes, or left them out. */
  private choose(items: readonly [Row, vscode.TreeItemCheckboxState][]): void {
    if (this.shown !== undefined) {
      const left = new Set(this.shown.leftOut);
      for (const [row, state] of items) {
        for (const each of left) {
          if (isSame(each, row.note)) left.delete(each);
        }
        if (row.note !== undefined && state === vscode.TreeItemCheckboxState.Unchecked) left.add(row.note);
      }
      this.shown.leftOut = [...left];
      void this.refresh();
    }
  }

  /** A document has changed while its conversion is shown: what was shown is out of date. */
  private edited({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const shown = this.shown;
    const isOurs = shown?.pairs.some((pair) => pair.document.toString() === document.uri.toString());
    if (shown === undefined || isOurs !== true || contentChanges.length === 0) {
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.set(
      document.uri,
      contentChanges.map(({ range, text }) => vscode.TextEdit.replace(range, text)),
    );
    shown.leftOut = moved(shown.leftOut, edit);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), PAUSE_MS);
  }

  /** Show what the conversion would do now. */
  private async refresh(): Promise<void> {
    const shown = this.shown;
    const renewal = ++this.renewals;
    const proposal = await shown?.renew(shown.leftOut).catch(() => undefined);
    if (shown === undefined || this.shown !== shown || renewal !== this.renewals) {
      return;
    }
    if (proposal === undefined) {
      this.view.message = "The files have changed, and cannot be converted as they are now.";
      return;
    }
    const pairs = await this.pairs(proposal, shown.pairs);
    if (this.shown === shown && renewal === this.renewals) {
      Object.assign(shown, { proposal, pairs, texts: textsOf(pairs) });
      this.fill(shown);
      pairs.flatMap(({ texts }) => texts).forEach(([uri]) => this.textChanged.fire(uri));
    }
  }

  /** The two sides of each document; those of before are shown already, and stay. */
  private async pairs({ edit }: Proposal, before: readonly Pair[] = []): Promise<Pair[]> {
    const edits = new Map(edit.entries().map(([uri, each]) => [uri.toString(), each]));
    const shown = before.map((pair) => {
      const own = edits.get(pair.document.toString()) ?? [];
      edits.delete(pair.document.toString());
      return this.pair(pair.document, own, pair);
    });
    const others = [...edits].map(([uri, each]) => this.pair(vscode.Uri.parse(uri), each));
    return Promise.all([...shown, ...others]);
  }

  /** Close the diff of a conversion that is decided, also one that comes late. */
  private async tidy(title: string): Promise<void> {
    if (this.shown?.title !== title) {
      await vscode.window.tabGroups.close(tabsOf(title), true);
    }
  }

  private async pair(uri: vscode.Uri, edits: readonly vscode.TextEdit[], shown?: Pair): Promise<Pair> {
    const document = await vscode.workspace.openTextDocument(uri);
    const text = edited(document, edits);
    if (shown !== undefined) {
      const [after, before] = [shown.after, shown.before];
      const left: Pair["texts"] = before === uri ? [] : [[before, document.getText()]];
      return { ...shown, texts: [...left, [after, text]] };
    }
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

function textsOf(pairs: readonly Pair[]): Map<string, string> {
  return new Map(pairs.flatMap((pair) => pair.texts).map(([uri, text]) => [uri.toString(), text]));
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

/** A row of a change, with a box to leave it out where all others are right without it. */
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

function introduction({ changes, withheld }: Conversion, pairs: readonly Pair[]): string {
  const left = withheld.length > 0 ? `, ${withheld.length} left alone` : "";
  const files = pairs.filter(({ document }) => cellNumber(document.toString()) === undefined);
  const where = files.length > 1 ? ` in ${files.length} files` : "";
  return `${counted(changes.length, "change")}${where}${left}. Nothing is changed until you apply them.`;
}
