/** The Python files that use TensorFlow, which have entries in menus; all others have none. */

import * as vscode from "vscode";

import { ScriptsRequest } from "./protocol";
import { Server } from "./server";

const PAUSE_MS = 1_000;
/** The context keys that the conditions of menus in `package.json` look up. */
const CONTEXT = "trainshift.scripts";

/** Reports the files to VS Code's menus: those of the workspace from the server, and the active document. */
export class Scripts implements vscode.Disposable {
  private readonly watcher = vscode.workspace.createFileSystemWatcher("**/*.py");
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private paths = new Set<string>();

  constructor(private readonly server: Server) {
    const soon = () => this.soon();
    this.disposables = [
      this.watcher,
      this.watcher.onDidChange(soon),
      this.watcher.onDidCreate(soon),
      this.watcher.onDidDelete(soon),
      vscode.workspace.onDidChangeWorkspaceFolders(soon),
      server.onDidChangeState(soon),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((each) => void each.dispose());
  }

  /** The server's answer for a document, which may be unsaved. */
  note(uri: vscode.Uri, usesTensorflow: boolean): void {
    const path = keyOf(uri);
    if (usesTensorflow !== this.paths.has(path)) {
      this.paths[usesTensorflow ? "add" : "delete"](path);
      this.publish();
    }
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.renew(), PAUSE_MS);
  }

  private async renew(): Promise<void> {
    const client = this.server.running;
    const found = await client?.sendRequest(ScriptsRequest, {}).catch(() => undefined);
    if (found !== undefined) {
      this.paths = new Set(found.map((uri) => keyOf(vscode.Uri.parse(uri))));
      this.publish();
    }
  }

  private publish(): void {
    void vscode.commands.executeCommand("setContext", CONTEXT, [...this.paths]);
  }
}

/** The name of a document in VS Code's menus: `resourcePath`. */
function keyOf(uri: vscode.Uri): string {
  return uri.scheme === "file" ? uri.fsPath : uri.path;
}
