/** The documents that the extension handles, and the active one. */

import { basename } from "node:path";

import * as vscode from "vscode";

/** The languages and schemes of the documents that are sent to the server. */
export const SELECTOR = ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({
  scheme,
  language: "python",
}));

/** Return whether the server knows a document. */
export function isLookedAt(document: vscode.TextDocument): boolean {
  return vscode.languages.match(SELECTOR, document) > 0;
}

/** The active Python document; for a notebook its first Python cell, unless one is being edited. */
export function inFront(): vscode.TextDocument | undefined {
  const cells = vscode.window.activeNotebookEditor?.notebook.getCells() ?? [];
  const documents = [vscode.window.activeTextEditor?.document, ...cells.map((cell) => cell.document)];
  return documents.find((document) => document !== undefined && isLookedAt(document));
}

/** The notebook with this URI, or the one that contains this cell. */
export function notebookOf(uri: vscode.Uri): vscode.NotebookDocument | undefined {
  const wanted = uri.toString();
  return vscode.workspace.notebookDocuments.find(
    (notebook) =>
      notebook.uri.toString() === wanted ||
      notebook.getCells().some((cell) => cell.document.uri.toString() === wanted),
  );
}

/** The number of a notebook's cell, as VS Code counts them; undefined for a document that is not a cell. */
export function cellNumber(uri: string): number | undefined {
  const cells = vscode.workspace.notebookDocuments.flatMap((notebook) => notebook.getCells());
  const cell = cells.find((each) => each.document.uri.toString() === uri);
  return cell && cell.index + 1;
}

/** A line in words: "line 3", "cell 2, line 3", or with the name of its file. */
export function placed(uri: string | undefined, line: number, isOneOfSeveral = false): string {
  const cell = uri === undefined ? undefined : cellNumber(uri);
  const file = isOneOfSeveral && uri !== undefined ? `${nameOf(vscode.Uri.parse(uri))}, ` : "";
  return `${cell === undefined ? file : `cell ${cell}, `}line ${line}`;
}

/** The name of a document's file, without its folders. */
export function nameOf(uri: vscode.Uri): string {
  return basename(uri.path);
}

/** Show a place of a document, lines and columns counted from 1; a cell is shown in its notebook. */
export async function reveal(uri: vscode.Uri, line: number, column = 1): Promise<void> {
  const selection = new vscode.Range(line - 1, column - 1, line - 1, column - 1);
  const notebook = notebookOf(uri);
  const cell = notebook?.getCells().find((each) => each.document.uri.toString() === uri.toString());
  if (notebook === undefined || cell === undefined) {
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { selection, preview: false });
    return;
  }
  const cells = new vscode.NotebookRange(cell.index, cell.index + 1);
  const editor = await vscode.window.showNotebookDocument(notebook, { selections: [cells] });
  editor.revealRange(cells, vscode.NotebookEditorRevealType.InCenterIfOutsideViewport);
  // VS Code makes the cell's editor when the cell is edited.
  await vscode.commands.executeCommand("notebook.cell.edit");
  if (vscode.window.activeTextEditor?.document === cell.document) {
    vscode.window.activeTextEditor.selection = new vscode.Selection(selection.start, selection.start);
    vscode.window.activeTextEditor.revealRange(selection);
  }
}
