/** "Check Horovod Installation": what `trainshift doctor` says of the Python that scripts run on, in a terminal. */

import { homedir } from "node:os";

import * as vscode from "vscode";

import { inFront } from "./documents";
import { pythonOf } from "./horovod";
import { Interpreters } from "./interpreter";
import { Server } from "./server";
import { runInTerminal } from "./terminal";

/** Look at the Python that is selected for the document in front, else for the first folder. */
export async function checkHorovod(
  server: Server,
  interpreters: Interpreters,
  extension: vscode.Uri,
): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Trainshift: nothing is run in a workspace that is not trusted.");
    return;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const scope = inFront()?.uri ?? folder;
  const tool = (await server.ready()) && server.interpreter;
  const python = tool && (await pythonOf(await interpreters.forScript(scope), extension));
  if (tool && python) {
    const cwd = folder?.fsPath ?? homedir();
    const command = [...tool.command, "-m", "trainshift", "doctor", "--python", python.executable] as const;
    await runInTerminal("Check Horovod Installation", [command], cwd);
  }
}
