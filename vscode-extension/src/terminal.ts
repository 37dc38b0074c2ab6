/** Command lines that run in a visible terminal. */

import { ChildProcess, spawn } from "node:child_process";

import * as vscode from "vscode";

/** A program and its arguments. */
export type CommandLine = readonly [string, ...string[]];

const INTERRUPT = "\x03";
const IS_WINDOWS = process.platform === "win32";

/** A command line as typed in the usual shell of this system. */
export function typed(command: CommandLine): string {
  const words = command.map((word) => {
    if (/^[\w@%+=:,./\\~-]+$/.test(word)) {
      return word;
    }
    return IS_WINDOWS ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
  });
  return `${IS_WINDOWS && words[0] !== command[0] ? "& " : ""}${words.join(" ")}`;
}

/**
 * Run command lines one after the other in a new terminal, in the folder `cwd`; resolves to the first exit
 * status other than 0, else to 0.  `endings` describe exit statuses. Tasks would save open files, and wait
 * forever in an untrusted workspace.
 */
export function runInTerminal(
  name: string,
  commands: readonly CommandLine[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
  endings: Readonly<Record<number, string>> = {},
): Promise<number> {
  return new Promise((resolve) => {
    const pty = new ProcessTerminal(commands, cwd, environment, endings, resolve);
    vscode.window.createTerminal({ name, pty, iconPath: new vscode.ThemeIcon("sync") }).show(true);
  });
}

/** End the processes in all terminals. */
export function endTerminals(): void {
  live.forEach((terminal) => terminal.close());
}

const live = new Set<ProcessTerminal>();

/** A terminal that shows the output of processes; Ctrl+C interrupts them, and closing it ends them. */
class ProcessTerminal implements vscode.Pseudoterminal {
  private readonly written = new vscode.EventEmitter<string>();
  private readonly closed = new vscode.EventEmitter<void>();
  private child: ChildProcess | undefined;
  private isOver = false;
  private columns: number | undefined;

  readonly onDidWrite = this.written.event;
  readonly onDidClose = this.closed.event;

  constructor(
    private readonly commands: readonly CommandLine[],
    private readonly cwd: string,
    private readonly environment: Readonly<Record<string, string>>,
    private readonly endings: Readonly<Record<number, string>>,
    private readonly ended: (status: number) => void,
  ) {}

  open(size: vscode.TerminalDimensions | undefined): void {
    live.add(this);
    this.columns = size?.columns;
    void this.runAll();
  }

  close(): void {
    this.isOver = true;
    this.signal("SIGTERM");
    this.finish(1);
  }

  handleInput(input: string): void {
    if (this.child === undefined) {
      this.closed.fire();
    } else if (input === INTERRUPT) {
      this.signal("SIGINT");
    }
  }

  private async runAll(): Promise<void> {
    let status = 0;
    for (const command of this.commands) {
      if (status === 0 && !this.isOver) {
        this.write(`\x1b[1m> ${typed(command)}\x1b[0m\n`);
        status = await this.run(command);
      }
    }
    this.child = undefined;
    const colour = status === 0 ? 32 : 31;
    const text = this.endings[status] ?? (status === 0 ? "Done." : `Failed with status ${status}.`);
    this.write(`\n\x1b[${colour}m${text}\x1b[0m Press any key to close the terminal.\n`);
    this.finish(status);
  }

  private finish(status: number): void {
    live.delete(this);
    this.ended(status);
  }

  /** Signal a process and its children, as a terminal does. */
  private signal(name: NodeJS.Signals): void {
    const pid = this.child?.pid;
    if (pid !== undefined && IS_WINDOWS) {
      spawn("taskkill", ["/T", "/F", "/PID", String(pid)]).on("error", () => undefined);
    } else if (pid !== undefined) {
      try {
        process.kill(-pid, name);
      } catch {
        // It has just ended.
      }
    }
  }

  private run([program, ...rest]: CommandLine): Promise<number> {
    // Python buffers its output to a pipe by default.
    const env = {
      ...process.env,
      ...(this.columns === undefined ? {} : { COLUMNS: String(this.columns) }),
      PYTHONUNBUFFERED: "1",
      PYTHONIOENCODING: "utf-8",
      ...this.environment,
    };
    const child = spawn(program, rest, {
      cwd: this.cwd,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: !IS_WINDOWS,
      windowsHide: true,
    });
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => this.write(text));
    }
    return new Promise((resolve) => {
      child.once("error", (error) => {
        this.write(`${error.message}\n`);
        resolve(1);
      });
      child.once("close", (status) => resolve(status ?? 1));
    });
  }

  private write(text: string): void {
    this.written.fire(text.replaceAll(/\r?\n/g, "\r\n"));
  }
}
