/** "Check Workspace": the findings of all files of the workspace, including files that are not open. */

import { randomUUID } from "node:crypto";

import * as vscode from "vscode";
import {
  WorkDoneProgress,
  WorkDoneProgressReport,
  WorkspaceDiagnosticReport,
  WorkspaceDiagnosticRequest,
} from "vscode-languageclient/node";

import { Client } from "./client";
import { SHOW_WARNINGS } from "./protocol";
import { Server } from "./server";
import { counted } from "./words";

/**
 * The findings of files that are not open; the client has those of open files. A file's findings stay until
 * it changes on disk, or everything is checked again.
 */
export class WorkspaceCheck implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("trainshift.workspace");
  private readonly watcher = vscode.workspace.createFileSystemWatcher("**/*.py", true);
  private readonly disposables: vscode.Disposable[];
  private found = new Map<string, readonly vscode.Diagnostic[]>();

  constructor(private readonly server: Server) {
    const forget = (uri: vscode.Uri) => {
      this.found.delete(uri.toString());
      this.show(uri);
    };
    this.disposables = [
      this.collection,
      this.watcher,
      this.watcher.onDidChange(forget),
      this.watcher.onDidDelete(forget),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => forget(uri)),
      vscode.workspace.onDidOpenTextDocument(({ uri }) => this.show(uri)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.show(uri)),
      server.onDidChangeState(() => this.keep([])),
    ];
  }

  dispose(): void {
    this.disposables.forEach((each) => void each.dispose());
  }

  /** The command. */
  async run(): Promise<void> {
    if (vscode.workspace.workspaceFolders === undefined) {
      void vscode.window.showInformationMessage("Trainshift: open a folder to check it.");
      return;
    }
    const client = await this.server.ready();
    const report = client && (await ask(client));
    if (client === undefined || report === undefined) {
      return;
    }
    await this.take(client, report);
    await vscode.commands.executeCommand(SHOW_WARNINGS);
    void vscode.window.showInformationMessage(`Trainshift: ${countedIn(report)}.`);
  }

  private async take(client: Client, report: WorkspaceDiagnosticReport): Promise<void> {
    const converter = client.protocol2CodeConverter;
    const found: [vscode.Uri, vscode.Diagnostic[]][] = [];
    for (const item of report.items) {
      if (item.kind === "full") {
        found.push([converter.asUri(item.uri), await converter.asDiagnostics(item.items)]);
      }
    }
    if (client === this.server.running) {
      this.keep(found);
    }
  }

  private keep(found: readonly [vscode.Uri, readonly vscode.Diagnostic[]][]): void {
    this.found = new Map(found.map(([uri, each]) => [uri.toString(), each]));
    this.collection.clear();
    found.forEach(([uri]) => this.show(uri));
  }

  /** Show the findings of a file, unless it is open. */
  private show(uri: vscode.Uri): void {
    const isOpen = vscode.workspace.textDocuments.some(
      (each) => !each.isClosed && each.uri.toString() === uri.toString(),
    );
    this.collection.set(uri, isOpen ? undefined : this.found.get(uri.toString()));
  }
}

/** The server's report on all files; undefined if the user cancels, or the server has ended. */
async function ask(client: Client): Promise<WorkspaceDiagnosticReport | undefined> {
  const location = vscode.ProgressLocation.Notification;
  return vscode.window.withProgress(
    { location, title: "Trainshift: checking the workspace", cancellable: true },
    async (progress, token) => {
      let done = 0;
      const workDoneToken = randomUUID();
      const listening = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
        const { message, percentage = 0 } = value as WorkDoneProgressReport;
        progress.report({ ...(message && { message }), increment: percentage - done });
        done = percentage;
      });
      const params = { previousResultIds: [], workDoneToken };
      try {
        return await client.sendRequest(WorkspaceDiagnosticRequest.type, params, token);
      } catch (error) {
        if (!token.isCancellationRequested) {
          void vscode.window.showErrorMessage(
            `Trainshift: the workspace could not be checked: ${String(error)}`,
          );
        }
        return undefined;
      } finally {
        listening.dispose();
      }
    },
  );
}

/** "2 errors and 3 warnings in 4 files of the workspace". */
function countedIn(report: WorkspaceDiagnosticReport): string {
  const found = report.items.flatMap((item) => (item.kind === "full" ? [item.items] : []));
  const severities = found.flat().map((each) => each.severity);
  const parts = (["error", "warning"] as const)
    .map((what, index) => [severities.filter((each) => each === index + 1).length, what] as const)
    .filter(([number]) => number > 0)
    .map(([number, what]) => counted(number, what));
  const files = found.filter((items) => items.some(({ severity = 4 }) => severity <= 2)).length;
  return parts.length > 0
    ? `${parts.join(" and ")} in ${counted(files, "file")} of the workspace`
    : "no warnings in the workspace";
}
