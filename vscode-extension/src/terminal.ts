/** Command lines that run in a terminal, where the person sees them. */

import { randomUUID } from "node:crypto";

import * as vscode from "vscode";

/** A program and its arguments. */
export type CommandLine = readonly [string, ...string[]];

/** A command line as one would type it. */
export function typed(command: CommandLine): string {
  return command.map((word) => (/^[\w@%+=:,./\\~-]+$/.test(word) ? word : `"${word}"`)).join(" ");
}

/** Runs one command line after the other; resolves to the first exit status that is not 0, or to 0. */
export async function runInTerminal(
  name: string,
  commands: readonly CommandLine[],
  cwd?: string,
): Promise<number> {
  for (const command of commands) {
    const status = await runOne(name, command, cwd);
    if (status !== 0) {
      return status;
    }
  }
  return 0;
}

async function runOne(name: string, [program, ...rest]: CommandLine, cwd?: string): Promise<number> {
  const id = randomUUID();
  // A process, not a line for a shell: nothing has to be quoted.
  const execution = new vscode.ProcessExecution(program, rest, cwd === undefined ? {} : { cwd });
  const task = new vscode.Task(
    { type: "trainshift", id },
    vscode.TaskScope.Workspace,
    name,
    "Trainshift",
    execution,
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, focus: false };
  const subscriptions: vscode.Disposable[] = [];
  const ended = new Promise<number>((resolve) => {
    const isOurs = (event: vscode.TaskEndEvent) => event.execution.task.definition.id === id;
    let status = 1; // What could not be started ends without a process.
    subscriptions.push(
      vscode.tasks.onDidEndTaskProcess((event) => {
        if (isOurs(event)) {
          status = event.exitCode ?? 1;
          resolve(status);
        }
      }),
      vscode.tasks.onDidEndTask((event) => {
        if (isOurs(event)) {
          setTimeout(() => resolve(status), 200);
        }
      }),
    );
  });
  try {
    await vscode.tasks.executeTask(task);
    return await ended;
  } finally {
    subscriptions.forEach((each) => void each.dispose());
  }
}
