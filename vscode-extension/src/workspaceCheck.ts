/** "Check Workspace": the findings of all files of the workspace, from when they are asked for on. */

import * as vscode from "vscode";
import { vsdiag } from "vscode-languageclient/node";

import type { Server } from "./server";
import { counted } from "./words";

/**
 * Lets the client's requests for the whole workspace through once somebody has asked for it.
 *
 * The client asks by itself, two seconds after it had its last answer, and keeps what it is told in Problems.
 */
export class WorkspaceCheck {
  private isWanted = false;
  private waiting: (() => void)[] = [];

  /** The command: ask for the findings of all files, and show Problems when they are there. */
  async run(server: Server): Promise<void> {
    const client = await server.ready();
    if (client === undefined) {
      return;
    }
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: "Trainshift: checking the workspace" },
      () => this.begin(),
    );
    const found = vscode.languages
      .getDiagnostics()
      .map(([, listed]) => listed.filter((each) => each.source === "trainshift" && isLoud(each)).length)
      .filter((number) => number > 0);
    const total = found.reduce((sum, number) => sum + number, 0);
    const text =
      total > 0 ? `${counted(total, "warning")} in ${counted(found.length, "file")}` : "no warnings";
    await vscode.commands.executeCommand("workbench.actions.view.problems");
    void vscode.window.showInformationMessage(`Trainshift: ${text} in the workspace.`);
  }

  /** Ask for the findings of all files; resolves when they are in Problems. */
  private begin(): Promise<void> {
    this.isWanted = true;
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The middleware of the client's requests. */
  async provide(
    known: vsdiag.PreviousResultId[],
    token: vscode.CancellationToken,
    report: vsdiag.ResultReporter,
    next: (
      known: vsdiag.PreviousResultId[],
      token: vscode.CancellationToken,
      report: vsdiag.ResultReporter,
    ) => vscode.ProviderResult<vsdiag.WorkspaceDiagnosticReport>,
  ): Promise<vsdiag.WorkspaceDiagnosticReport> {
    if (!this.isWanted) {
      return { items: [] };
    }
    const waiting = this.waiting;
    this.waiting = [];
    const answer = await next(known, token, report);
    waiting.forEach((resolve) => resolve());
    return answer ?? { items: [] };
  }
}

function isLoud(diagnostic: vscode.Diagnostic): boolean {
  return diagnostic.severity <= vscode.DiagnosticSeverity.Warning;
}
