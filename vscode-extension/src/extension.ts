/** The extension: assembles the parts, and binds each command. */

import * as vscode from "vscode";

import { APPLY, DISCARD, REVEAL } from "./changeList";
import { Converter, makeStatementDistributed } from "./conversion";
import { differentiate } from "./differentiation";
import { checkHorovod } from "./doctor";
import { reveal } from "./documents";
import { reportEnvironment } from "./environmentReport";
import { runWithHorovod } from "./horovod";
import { Interpreters, SETTING } from "./interpreter";
import { chooseKeras } from "./keras";
import { LoopStatus } from "./loops";
import { explain } from "./pages";
import { Preview } from "./preview";
import { prove } from "./proof";
import { CHECK_HOROVOD, CHOOSE_KERAS, CHOOSE_PYTHON, PROVE, RUN } from "./commands";
import {
  DIFFERENTIATE,
  EXPAND_STATIC,
  EXPLAIN,
  MAKE_DISTRIBUTED,
  MAKE_STATIC,
  OPEN_LINE,
  SHOW_WARNINGS,
} from "./protocol";
import { choosePython } from "./pythons";
import { Scripts } from "./scripts";
import { Server } from "./server";
import { rewriteStatic } from "./statics";
import { serverStatus } from "./status";
import { Summary } from "./summary";
import { WorkspaceCheck } from "./workspaceCheck";

/** The settings that need a restart of the server. */
const RESTARTING = ["trainshift.enable", "trainshift.args", "trainshift.trace", SETTING];

let ended: (() => Promise<void>) | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Trainshift", { log: true });
  // Another window may still run the server of an earlier version.
  const { version } = context.extension.packageJSON as { version: string };
  const environment = vscode.Uri.joinPath(context.globalStorageUri, "environments", version);
  const interpreters = new Interpreters(environment, log);
  const running = new Server(context.extensionUri, interpreters, log);
  const check = new WorkspaceCheck(running);
  const summary = new Summary();
  const scripts = new Scripts(running);
  const loops = new LoopStatus(running, scripts);
  const restart = () => void running.restart();
  const preview = new Preview();
  const converter = new Converter(running, preview, summary);
  const commands: Record<string, (...given: unknown[]) => unknown> = {
    [MAKE_DISTRIBUTED]: (given) => converter.makeDistributed(given),
    [APPLY]: () => preview.decide(true),
    [DISCARD]: () => preview.decide(false),
    [REVEAL]: (uri, line) => preview.reveal(String(uri), Number(line)),
    [OPEN_LINE]: (uri, line) => reveal(vscode.Uri.parse(String(uri)), Number(line)),
    "trainshift.makeStatementDistributed": () => makeStatementDistributed(running),
    [DIFFERENTIATE]: () => differentiate(running),
    [EXPAND_STATIC]: () => rewriteStatic(running, preview, EXPAND_STATIC),
    [MAKE_STATIC]: () => rewriteStatic(running, preview, MAKE_STATIC),
    "trainshift.checkWorkspace": () => check.run(),
    // `workbench.actions.view.problems` would close Problems if it has the focus.
    [SHOW_WARNINGS]: () => vscode.commands.executeCommand("workbench.panel.markers.view.focus"),
    [EXPLAIN]: (code) => explain(running, code),
    [RUN]: (uri) => runWithHorovod(running, interpreters, converter, context, uri),
    [PROVE]: (uri) => prove(running, interpreters, context, uri),
    [CHOOSE_KERAS]: () => chooseKeras(context.extension),
    [CHOOSE_PYTHON]: (uri) => choosePython(context.extensionUri, uriOf(uri)),
    [CHECK_HOROVOD]: (uri) => checkHorovod(running, interpreters, context.extensionUri, uri),
    "trainshift.showSummary": () => summary.show(),
    "trainshift.restart": () => running.restart(),
    "trainshift.showLogs": () => log.show(),
    "trainshift.showLoops": () => loops.choose(),
    "trainshift.reportEnvironment": () => reportEnvironment(running, context.extension),
  };
  context.subscriptions.push(
    ...Object.entries(commands).map(([id, run]) => vscode.commands.registerCommand(id, run)),
    interpreters.onDidChange(() => {
      void running.reconsider();
      void running.running?.renewSettings();
    }),
    vscode.extensions.onDidChange(() => void running.running?.renewSettings()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void running.reconsider()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTARTING.some((setting) => event.affectsConfiguration(setting))) {
        restart();
      }
    }),
    serverStatus(running),
    loops,
    scripts,
    summary,
    preview,
    check,
    interpreters,
    running,
  );
  // Subscriptions are disposed of before the server has ended, and it still logs something.
  ended = () => running.stop().finally(() => log.dispose());
  restart();
}

function uriOf(given: unknown): vscode.Uri | undefined {
  return typeof given === "string" ? vscode.Uri.parse(given) : undefined;
}

export async function deactivate(): Promise<void> {
  await ended?.();
}
