/** The language server's life: found, started, restarted, ended; and what state it is in. */

import * as vscode from "vscode";

import { Client } from "./client";
import { Home, inspect, NotStarted, Probe, safeFolder } from "./installation";
import { Interpreter, Interpreters, listed, SETTING } from "./interpreter";
import { CommandLine, endTerminals, runInTerminal, typed } from "./terminal";

/** What is to be said of the server, `text` in a few words. */
export interface State {
  readonly kind: "off" | "starting" | "ready" | "failed";
  readonly text: string;
  readonly detail?: string;
}

const MOST_CRASHES = 4;
const CRASHES_WITHIN_MS = 3 * 60_000;

/** One server for all folders: it does not run what it reads, so any interpreter that has it will do. */
export class Server implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<State>();
  private readonly home: Home;
  private current: State = { kind: "off", text: "Not started" };
  private problem: NotStarted | undefined;
  private client: Client | undefined;
  private work: Promise<void> = Promise.resolve();
  private isWaiting = false;
  private isReconsidering = false;
  private isLaunching = false;
  private isOver = false;
  private crashes: number[] = [];
  private chosen: Interpreter | undefined;

  readonly onDidChangeState = this.changed.event;
  /** What runs the server, or is to, and what it has. */
  interpreter: Interpreter | undefined;
  found: Probe | undefined;

  constructor(
    extension: vscode.Uri,
    private readonly interpreters: Interpreters,
    readonly log: vscode.LogOutputChannel,
  ) {
    this.home = { extension, environment: interpreters.ownFolder };
  }

  get state(): State {
    return this.current;
  }

  /** The version that the running server says it has. */
  get version(): string | undefined {
    return this.running?.serverVersion;
  }

  /** The running client; undefined where there is none. */
  get running(): Client | undefined {
    return this.current.kind === "ready" ? this.client : undefined;
  }

  /** The running client, once what is under way is done; else tells the user why there is none, and what would help. */
  async ready(): Promise<Client | undefined> {
    let work: Promise<void>;
    do {
      work = this.work;
      await work;
    } while (work !== this.work);
    if (this.current.kind === "failed" && this.problem !== undefined) {
      void this.offerHelp(this.problem);
    } else if (this.current.kind === "off") {
      void this.offerToTurnOn();
    }
    return this.running;
  }

  /** End what runs, and start anew; resolves when that has succeeded or failed, and never rejects. */
  restart(): Promise<void> {
    if (!this.isWaiting) {
      this.isWaiting = true;
      void this.queue(() => {
        this.isWaiting = false;
        return this.renew();
      });
    }
    return this.work;
  }

  /** Restart if another interpreter than before is the right one now. */
  reconsider(): Promise<void> {
    if (!this.isReconsidering) {
      this.isReconsidering = true;
      void this.queue(async () => {
        this.isReconsidering = false;
        const now = await this.interpreters.find();
        if (isWanted() && now.command.join("\0") !== this.chosen?.command.join("\0")) {
          await this.renew();
        }
      });
    }
    return this.work;
  }

  /** End what runs, for good. */
  stop(): Promise<void> {
    this.isOver = true;
    endTerminals();
    return this.work.then(() => this.end());
  }

  dispose(): void {
    this.changed.dispose();
  }

  /** Do a job after those that are under way; what it throws is the server's state. */
  private queue(job: () => Promise<void>): Promise<void> {
    const done = this.work.then(() => (this.isOver ? undefined : job()));
    return (this.work = done.catch((error) => this.failed(error)));
  }

  private async renew(): Promise<void> {
    await this.end();
    await this.start();
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      this.become({ kind: "starting", text: "Ending" });
      // One that has ended by itself cannot be stopped, and need not be.
      await client.dispose().catch((error) => this.log.info(`The server has ended: ${String(error)}`));
    }
  }

  private async start(): Promise<void> {
    if (!isWanted()) {
      this.become({ kind: "off", text: "Turned off by the setting trainshift.enable" });
      return;
    }
    this.become({ kind: "starting", text: "Starting" });
    try {
      const client = await this.launch(await this.choose());
      this.become({
        kind: "ready",
        text: `Ready (server ${client.serverVersion ?? "?"})`,
        detail: `Python ${this.found?.version.join(".") ?? "?"}`,
      });
    } catch (error) {
      this.failed(error);
    }
  }

  /** Find the interpreter, and see that it has the server, or that the environment that was made for it has. */
  private async choose(): Promise<Interpreter> {
    this.found = undefined;
    this.interpreter = this.chosen = await this.interpreters.find();
    try {
      this.found = await inspect(this.interpreter, this.home);
    } catch (error) {
      const own = this.interpreters.own();
      const isRemedy =
        error instanceof NotStarted && error.install.some(([program]) => program === own?.command[0]);
      if (own === undefined || (this.interpreter.isChosen && !isRemedy)) {
        throw error;
      }
      this.found = await inspect(own, this.home).catch(() => {
        throw error;
      });
      this.interpreter = own;
    }
    return this.interpreter;
  }

  private async launch(interpreter: Interpreter): Promise<Client> {
    const [program, ...rest] = interpreter.command;
    const command = [program, ...rest, "-m", "trainshift.lsp", ...listed("trainshift.args")] as const;
    this.log.info(`Starting ${typed(command)}, which ${interpreter.origin} names`);
    const client = new Client(command, safeFolder(this.home.extension), this.log, () => {
      if (this.client === client && !this.isLaunching) {
        this.crashed();
      }
    });
    this.client = client;
    this.isLaunching = true;
    try {
      await client.launch();
      return client;
    } catch (error) {
      this.client = undefined; // Its end is no crash.
      const reason = error instanceof Error ? error.message : String(error);
      throw new NotStarted(`The language server could not be started: ${reason}`, "Could not be started");
    } finally {
      this.isLaunching = false;
    }
  }

  /** The server has ended by itself. */
  private crashed(): void {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((time) => now - time < CRASHES_WITHIN_MS), now];
    if (this.crashes.length <= MOST_CRASHES) {
      this.log.warn("The server has ended unexpectedly and is started again");
      this.become({ kind: "starting", text: "Starting again after a crash" });
      void this.restart();
      return;
    }
    const minutes = CRASHES_WITHIN_MS / 60_000;
    const message = `The language server has ended unexpectedly ${this.crashes.length} times in ${minutes} minutes.`;
    this.crashes = [];
    this.failed(new NotStarted(message, "Crashed"));
  }

  private failed(error: unknown): void {
    const problem =
      error instanceof NotStarted ? error : new NotStarted(String(error), "Could not be started");
    this.problem = problem;
    this.log.error(problem.message);
    this.become({ kind: "failed", text: problem.text, detail: problem.message });
    void this.offerHelp(problem);
  }

  /** The one message: what is wrong, and buttons for what would help. */
  private async offerHelp(problem: NotStarted): Promise<void> {
    const remedy = problem.install.length > 0 ? "Install in Terminal" : "Restart Server";
    const choice = await vscode.window.showErrorMessage(
      `Trainshift: ${problem.message}`,
      remedy,
      "Open Settings",
      "Show Logs",
    );
    if (this.problem !== problem || this.current.kind !== "failed") {
      return; // The message is of another time.
    }
    if (choice === "Install in Terminal") {
      this.install(problem.install);
    } else if (choice === "Restart Server") {
      await this.restart();
    } else if (choice === "Open Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", SETTING);
    } else if (choice === "Show Logs") {
      this.log.show();
    }
  }

  private async offerToTurnOn(): Promise<void> {
    const choice = await vscode.window.showInformationMessage(
      `Trainshift: ${this.current.text}.`,
      "Open Settings",
    );
    if (choice !== undefined) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "trainshift.enable");
    }
  }

  /** Install the server in a terminal, then start it. */
  private install(commands: readonly CommandLine[]): void {
    void this.queue(async () => {
      this.become({ kind: "starting", text: "Installing the server" });
      const status = await runInTerminal("Install Trainshift", commands, safeFolder(this.home.extension));
      if (status === 0) {
        await this.start();
      } else {
        const lines = commands.map(typed).join(" && ");
        const message = `The installation has failed with status ${status}; the terminal shows why. It was: ${lines}`;
        this.failed(new NotStarted(message, "Not installed", commands));
      }
    });
  }

  private become(state: State): void {
    this.current = state;
    this.changed.fire(state);
  }
}

/** Whether anything is to be reported in any folder. */
function isWanted(): boolean {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri);
  return [undefined, ...folders].some((scope) =>
    vscode.workspace.getConfiguration("trainshift", scope).get("enable", true),
  );
}
