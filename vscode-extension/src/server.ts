/** The life of the language server: search, start, restart, end; and its current state. */

import * as vscode from "vscode";

import { Client } from "./client";
import { Base, Home, inspect, NOT_SET_UP, NotStarted, Probe, safeFolder, setUp } from "./installation";
import { Interpreter, Interpreters, listed, SETTING } from "./interpreter";
import { endTerminals, typed } from "./terminal";

/** The state of the server to show, with `text` in a few words. */
export interface State {
  /** A waiting state waits for the user's consent. */
  readonly kind: "off" | "starting" | "ready" | "waiting" | "failed";
  readonly text: string;
  readonly detail?: string;
}

const MOST_CRASHES = 4;
const CRASHES_WITHIN_MS = 3 * 60_000;

/**
 * One server for all folders: it does not run the code that it reads, so any interpreter with the package
 * works.
 */
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
  /** The interpreter of the server, current or planned, and its packages. */
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

  /** The version that the running server reports. */
  get version(): string | undefined {
    return this.running?.serverVersion;
  }

  /** The running client; undefined where there is none. */
  get running(): Client | undefined {
    return this.current.kind === "ready" ? this.client : undefined;
  }

  /**
   * The running client, after the current job; otherwise tells the user why there is none, with possible
   * fixes.
   */
  async ready(): Promise<Client | undefined> {
    let work: Promise<void>;
    do {
      work = this.work;
      await work;
    } while (work !== this.work);
    if (this.isDown && this.problem !== undefined) {
      void this.offerHelp(this.problem);
    } else if (this.current.kind === "off") {
      void this.offerToTurnOn();
    }
    return this.running;
  }

  /** End the server, and start again; resolves when that has succeeded or failed, and never rejects. */
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

  /** Restart if a different interpreter is now the right one. */
  reconsider(): Promise<void> {
    if (!this.isReconsidering) {
      this.isReconsidering = true;
      void this.queue(async () => {
        this.isReconsidering = false;
        const [now] = await this.interpreters.find();
        if (isWanted() && now.command.join("\0") !== this.chosen?.command.join("\0")) {
          await this.renew();
        }
      });
    }
    return this.work;
  }

  /** End the server permanently. */
  stop(): Promise<void> {
    this.isOver = true;
    endTerminals();
    return this.work.then(() => this.end());
  }

  dispose(): void {
    this.changed.dispose();
  }

  /** Do a job after the current ones; its exceptions become the server's state. */
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
      // A server that has ended by itself cannot be stopped, and need not be.
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

  private get isDown(): boolean {
    return this.current.kind === "failed" || this.current.kind === "waiting";
  }

  /**
   * Find the interpreter with the server; an environment that needs no network, or has consent, is created.
   */
  private async choose(): Promise<Interpreter> {
    try {
      return await this.fitting();
    } catch (error) {
      const base = error instanceof NotStarted ? error.base : undefined;
      const isAgreed = this.interpreters.isAgreed();
      if (base === undefined || !(isAgreed || base.isComplete)) {
        throw error;
      }
      await this.setUp(base, isAgreed && !base.isComplete);
      return await this.fitting();
    }
  }

  /** The interpreter with the server: the first candidate, or an environment made from one. */
  private async fitting(): Promise<Interpreter> {
    this.found = undefined;
    const [first, ...others] = await this.interpreters.find();
    const own = this.interpreters.own();
    this.interpreter = this.chosen = first;
    const problems: NotStarted[] = [];
    for (const candidate of [first, ...(own ? [own] : []), ...others]) {
      const base = problems.find((each) => each.base !== undefined)?.base;
      if (candidate !== own && base !== undefined) {
        break; // There is one to make an environment from.
      }
      try {
        const found = await inspect(candidate, this.home);
        // A Python named by the user runs the server itself, or is the base of an environment that does.
        if (candidate !== own || !first.isChosen || found.base === base?.installation) {
          this.found = found;
          return (this.interpreter = candidate);
        }
      } catch (error) {
        problems.push(error instanceof NotStarted ? error : new NotStarted(String(error), "Not started"));
      }
    }
    throw problems.find(({ base }) => base !== undefined) ?? problems[0];
  }

  private async launch(interpreter: Interpreter): Promise<Client> {
    const [program, ...rest] = interpreter.command;
    const command = [program, ...rest, "-m", "trainshift.lsp", ...listed("trainshift.args")] as const;
    this.log.info(`Starting ${typed(command)}, which ${interpreter.origin} names`);
    const pythonOf = (folder: vscode.Uri | undefined) => this.interpreters.selected(folder);
    const client = new Client(command, safeFolder(this.home.extension), this.log, pythonOf, () => {
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
    const isNew = problem.text === NOT_SET_UP;
    this.log[isNew ? "info" : "error"](problem.found);
    this.become({ kind: isNew ? "waiting" : "failed", text: problem.text, detail: problem.found });
    void this.offerHelp(problem);
  }

  /** The only message: the problem, and buttons with possible fixes. */
  private async offerHelp(problem: NotStarted): Promise<void> {
    const { base, message } = problem;
    const isNew = problem.text === NOT_SET_UP;
    const remedy = base === undefined ? "Restart Server" : isNew ? "Set Up" : "Try Again";
    const choice = isNew
      ? await vscode.window.showInformationMessage(message, remedy)
      : await vscode.window.showErrorMessage(`Trainshift: ${message}`, remedy, "Open Settings", "Show Logs");
    if (this.problem !== problem || !this.isDown) {
      return; // The message is of another time.
    }
    if (choice === remedy && base !== undefined) {
      await this.queue(async () => {
        await this.setUp(base, true);
        await this.start();
      });
    } else if (choice === remedy) {
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

  /** Create the extension's own environment. */
  private async setUp(base: Base, downloads: boolean): Promise<void> {
    this.become({ kind: "starting", text: "Setting up" });
    const progress = { location: vscode.ProgressLocation.Window, title: "Setting up Trainshift" };
    const tell = (line: string) => this.log.info(line);
    await vscode.window.withProgress(progress, () => setUp(base, this.home, downloads, tell));
  }

  private become(state: State): void {
    this.current = state;
    this.changed.fire(state);
  }
}

/** Return whether any folder wants reports. */
function isWanted(): boolean {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri);
  return [undefined, ...folders].some((scope) =>
    vscode.workspace.getConfiguration("trainshift", scope).get("enable", true),
  );
}
