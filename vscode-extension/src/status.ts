/** The server's state in the language status of Python documents; if it is down, in the status bar too. */

import * as vscode from "vscode";

import { SELECTOR } from "./documents";
import { Server, State } from "./server";

const SEVERITY: Readonly<Record<State["kind"], vscode.LanguageStatusSeverity>> = {
  off: vscode.LanguageStatusSeverity.Information,
  starting: vscode.LanguageStatusSeverity.Information,
  ready: vscode.LanguageStatusSeverity.Information,
  waiting: vscode.LanguageStatusSeverity.Information,
  failed: vscode.LanguageStatusSeverity.Error,
};

/** The item that shows whether the server runs; a click shows its log, or restarts the server. */
export function serverStatus(server: Server): vscode.Disposable {
  const item = vscode.languages.createLanguageStatusItem("trainshift.server", SELECTOR);
  item.name = "Trainshift Language Server";
  const show = (state: State) => {
    item.text = `Trainshift: ${state.text}`;
    // A long text would push the command out of sight; the log and a message contain it.
    item.detail = state.kind === "failed" ? "" : (state.detail ?? "");
    item.severity = SEVERITY[state.kind];
    item.busy = state.kind === "starting";
    item.command =
      state.kind === "failed" || state.kind === "waiting"
        ? { title: "Restart Server", command: "trainshift.restart" }
        : { title: "Show Logs", command: "trainshift.showLogs" };
  };
  const down = vscode.window.createStatusBarItem("trainshift.down", vscode.StatusBarAlignment.Right, 102);
  down.name = "Trainshift Is Down";
  down.command = "trainshift.restart";
  const tell = (state: State) => {
    show(state);
    const isFault = state.kind === "failed";
    down.backgroundColor = isFault ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    down.text = `$(${isFault ? "error" : "cloud-download"}) Trainshift: ${state.text}`;
    down.tooltip = `${state.detail ?? "The language server is down."} Click to try again.`;
    down[isFault || state.kind === "waiting" ? "show" : "hide"]();
  };
  tell(server.state);
  return vscode.Disposable.from(item, down, server.onDidChangeState(tell));
}
