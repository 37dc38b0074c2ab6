/** The two sides of a diff: the documents before and after. */

import * as vscode from "vscode";

import { cellNumber, nameOf } from "./documents";

const SCHEME = "trainshift-preview";

/** A document, and the two sides that show its change. */
export interface Pair {
  readonly document: vscode.Uri;
  readonly before: vscode.Uri;
  readonly after: vscode.Uri;
  readonly texts: readonly [uri: vscode.Uri, text: string][];
}

/** Provides VS Code with the texts of the shown sides. */
export class Sides implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  // VS Code checks immediately whether there is an event.
  private readonly disposables = [
    this.changed,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
  ];
  private texts: ReadonlyMap<string, string> = new Map();
  private number = 0;

  dispose(): void {
    this.disposables.forEach((each) => void each.dispose());
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Show the sides of these documents instead of all others. */
  publish(pairs: readonly Pair[]): void {
    const texts = pairs.flatMap((pair) => pair.texts);
    this.texts = new Map(texts.map(([uri, text]) => [uri.toString(), text]));
    texts.forEach(([uri]) => this.changed.fire(uri));
  }

  /** The two sides of each document; existing ones are shown already, and stay. */
  async of(edit: vscode.WorkspaceEdit, before: readonly Pair[] = []): Promise<Pair[]> {
    const edits = new Map(edit.entries().map(([uri, each]) => [uri.toString(), each]));
    const shown = before.map((pair) => {
      const own = edits.get(pair.document.toString()) ?? [];
      edits.delete(pair.document.toString());
      return this.pair(pair.document, own, pair);
    });
    const others = [...edits].map(([uri, each]) => this.pair(vscode.Uri.parse(uri), each));
    return Promise.all([...shown, ...others]);
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
      // In a list of several files, a side with a different path would be shown as a renamed file.
      const path = uri.scheme === "file" ? uri.path : `/${nameOf(uri)}`;
      const after = vscode.Uri.from({ scheme: SCHEME, path, query });
      return { document: uri, before: uri, after, texts: [[after, text]] };
    }
    // Sides with different paths would be shown as a renamed file.
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

/** Show the diff of documents under a title. */
export async function showDiff(title: string, pairs: readonly Pair[]): Promise<void> {
  const [first] = pairs;
  if (pairs.length === 1 && first !== undefined) {
    const { before, after } = first;
    await vscode.commands.executeCommand("vscode.diff", before, after, title, { preview: false });
  } else {
    const listed = pairs.map(({ document, before, after }) => [document, before, after]);
    await vscode.commands.executeCommand("vscode.changes", title, listed);
  }
}

/** Show a line, counted from 0, on the left side of an open diff. */
export function revealBefore(pair: Pair | undefined, line: number): void {
  const range = new vscode.Range(line, 0, line, 0);
  for (const editor of vscode.window.visibleTextEditors) {
    if (editor.document.uri.toString() === pair?.before.toString()) {
      editor.selection = new vscode.Selection(range.start, range.start);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenter);
    }
  }
}

/** The tabs of the diffs whose title ends with this; a diff of several files has no other mark. */
export function tabsOf(title: string): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter((tab) => isDiff(tab, title));
}

/** Return whether a tab is a diff whose title ends with this. */
export function isDiff({ label }: vscode.Tab, title: string): boolean {
  // VS Code adds the number of files.
  return label.replace(/ \(\d+ files?\)$/, "").endsWith(title);
}

/** A document's text with edits applied, which do not overlap; several at one place keep their order. */
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
