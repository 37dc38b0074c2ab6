/** The language server's life: found, started, restarted, ended; and what state it is in. */

import * as vscode from "vscode";
import {
  CloseAction,
  DynamicFeature,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  LanguageClientOptions,
  RevealOutputChannelOn,
  State as ClientState,
  StaticFeature,
  TransportKind,
} from "vscode-languageclient/node";

import { FLOOR, installing, isInstalled, isTooOld, Probe, probe, serverFolder } from "./installation";
import { Interpreter, Interpreters, SETTING } from "./interpreter";
import { CommandLine, runInTerminal, typed } from "./terminal";
import { WorkspaceCheck } from "./workspaceCheck";

/** The languages and schemes of what is sent to the server. */
export const SELECTOR = ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({
  scheme,
  language: "python",
}));

/** What is to be said of the server, `text` in a few words. */
export interface State {
  readonly kind: "off" | "starting" | "ready" | "failed";
  readonly text: string;
  readonly detail?: string;
}

/** A language server that cannot be started; `install` holds what would help. */
class NotStarted extends Error {
  constructor(
    message: string,
    readonly text: string,
    readonly install: readonly CommandLine[] = [],
  ) {
    super(message);
  }
}

const MOST_CRASHES = 4;
const CRASHES_WITHIN_MS = 3 * 60_000;

/** The client without the server's commands: they are the extension's, and there whatever the server's state. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const isCommands =
      "registrationType" in feature && feature.registrationType.method === ExecuteCommandRequest.method;
    if (!isCommands) {
      super.registerFeature(feature);
    }
  }
}

/** One server for all folders: it does not run what it reads, so any interpreter that has it will do. */
export class Server implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<State>();
  private current: State = { kind: "off", text: "Not started" };
  private client: Client | undefined;
  private work: Promise<void> = Promise.resolve();
  private isWaiting = false;
  private isLaunching = false;
  private crashes: number[] = [];

  readonly onDidChangeState = this.changed.event;
  interpreter: Interpreter | undefined;
  found: Probe | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly interpreters: Interpreters,
    private readonly check: WorkspaceCheck,
    readonly log: vscode.LogOutputChannel,
  ) {}

  get state(): State {
    return this.current;
  }

  /** The version that the running server says it has. */
  get version(): string | undefined {
    return this.client?.initializeResult?.serverInfo?.version;
  }

  /** The running client; undefined where there is none. */
  get running(): LanguageClient | undefined {
    return this.current.kind === "ready" ? this.client : undefined;
  }

  /** The running client, once what is under way is done; tells the user and resolves to undefined where there is none. */
  async ready(): Promise<LanguageClient | undefined> {
    await this.work;
    if (this.running === undefined) {
      const choice = await vscode.window.showWarningMessage(
        `Trainshift's language server does not run: ${this.current.detail ?? this.current.text}`,
        "Restart Server",
        "Show Logs",
      );
      if (choice === "Restart Server") {
        await this.restart();
        return this.running;
      }
      if (choice === "Show Logs") {
        this.log.show();
      }
    }
    return this.running;
  }

  /** End what runs, and start anew; resolves when that has succeeded or failed, and never rejects. */
  restart(): Promise<void> {
    if (!this.isWaiting) {
      this.isWaiting = true;
      this.work = this.work.then(async () => {
        this.isWaiting = false;
        await this.stop();
        await this.start();
      });
    }
    return this.work;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      this.become({ kind: "off", text: "Stopped" });
      try {
        await client.stop();
      } catch (error) {
        this.log.warn(`The server did not end in an orderly way: ${String(error)}`);
      }
      await client.dispose().catch(() => undefined);
    }
  }

  dispose(): void {
    this.changed.dispose();
  }

  private async start(): Promise<void> {
    if (!vscode.workspace.getConfiguration("trainshift").get("enable", true)) {
      this.become({ kind: "off", text: "Turned off by the setting trainshift.enable" });
      return;
    }
    this.become({ kind: "starting", text: "Starting" });
    try {
      await this.choose();
      this.isLaunching = true;
      await this.launch();
      this.becomeReady();
    } catch (error) {
      this.failed(error);
    } finally {
      this.isLaunching = false;
    }
  }

  /** Find the interpreter, and see that it has the server. */
  private async choose(): Promise<void> {
    this.interpreter = await this.interpreters.find();
    this.found = undefined;
    try {
      this.found = await this.checked(this.interpreter);
    } catch (error) {
      const own = this.interpreters.own();
      const isChosen = this.interpreter.origin.includes(SETTING);
      if (own === undefined || isChosen || !(error instanceof NotStarted)) {
        throw error;
      }
      this.interpreter = own;
      this.found = await this.checked(own);
    }
  }

  private async checked(interpreter: Interpreter): Promise<Probe> {
    const shown = `${typed(interpreter.command)} (${interpreter.origin})`;
    let found: Probe;
    try {
      found = await probe(interpreter, this.context.extensionUri);
    } catch (error) {
      this.log.error(`${shown}: ${String(error)}`);
      throw new NotStarted(`${shown} is no Python that can be run.`, "No Python");
    }
    const version = found.version.join(".");
    if (isTooOld(found)) {
      throw new NotStarted(
        `${shown} is Python ${version}; the language server needs ${FLOOR.join(".")} or later.`,
        `Python ${version} is too old`,
      );
    }
    if (!isInstalled(found)) {
      const install = installing(interpreter, found, this.context.extensionUri, this.interpreters.ownFolder);
      const missing = found.trainshift ? `lacks ${(found.missing ?? []).join(", ")}` : "has no trainshift";
      throw new NotStarted(
        `${shown} ${missing}. To install it: ${install.map(typed).join("   then   ")}`,
        "Not installed",
        install,
      );
    }
    return found;
  }

  private async launch(): Promise<void> {
    const [command, ...rest] = this.interpreter?.command ?? [""];
    const more = vscode.workspace.getConfiguration("trainshift").get<string[]>("args", []);
    const args = [...rest, "-m", "trainshift.lsp", ...more];
    const options = { cwd: serverFolder(this.context.extensionUri) };
    this.log.info(`Starting ${typed([command, ...args])}, which ${this.interpreter?.origin ?? ""} names`);
    const client = new Client(
      "trainshift",
      "Trainshift",
      { command, args, options, transport: TransportKind.stdio },
      this.clientOptions(),
    );
    this.client = client;
    client.onDidChangeState(({ newState }) => {
      if (this.client === client && !this.isLaunching) {
        if (newState === ClientState.Running) {
          this.becomeReady();
        } else if (newState === ClientState.Starting) {
          this.become({ kind: "starting", text: "Starting again after a crash" });
        }
      }
    });
    try {
      await client.start();
    } catch (error) {
      throw new NotStarted(
        `The language server could not be started: ${messageOf(error)}`,
        "Could not be started",
      );
    }
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      traceOutputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      markdown: { isTrusted: { enabledCommands: ["trainshift.explain"] } },
      initializationFailedHandler: (error) => {
        this.log.error(messageOf(error));
        return false;
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => this.crashed(),
      },
      middleware: {
        provideWorkspaceDiagnostics: (known, token, report, next) =>
          this.check.provide(known, token, report, next),
      },
    };
  }

  /** The server has ended by itself. */
  private crashed(): { action: CloseAction; handled: boolean } {
    if (this.isLaunching) {
      return { action: CloseAction.DoNotRestart, handled: true };
    }
    const now = Date.now();
    this.crashes = [...this.crashes.filter((time) => now - time < CRASHES_WITHIN_MS), now];
    if (this.crashes.length <= MOST_CRASHES) {
      this.log.warn("The server has ended unexpectedly and is started again");
      return { action: CloseAction.Restart, handled: true };
    }
    this.crashes = [];
    this.failed(
      new NotStarted(
        `The language server has ended unexpectedly ${MOST_CRASHES + 1} times in ${CRASHES_WITHIN_MS / 60_000} minutes.`,
        "Crashed",
      ),
    );
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  private failed(error: unknown): void {
    const message = messageOf(error);
    this.log.error(message);
    this.become({
      kind: "failed",
      text: error instanceof NotStarted ? error.text : "Could not be started",
      detail: message,
    });
    void this.offerHelp(message, error instanceof NotStarted ? error.install : []);
  }

  private async offerHelp(message: string, install: readonly CommandLine[]): Promise<void> {
    const remedy = install.length > 0 ? "Install in Terminal" : "Restart Server";
    const choice = await vscode.window.showErrorMessage(
      `Trainshift: ${message}`,
      remedy,
      "Choose Interpreter",
      "Show Logs",
    );
    if (choice === "Install in Terminal") {
      await this.install(install);
    } else if (choice === "Restart Server") {
      await this.restart();
    } else if (choice === "Choose Interpreter") {
      await vscode.commands.executeCommand("workbench.action.openSettings", SETTING);
    } else if (choice === "Show Logs") {
      this.log.show();
    }
  }

  private async install(commands: readonly CommandLine[]): Promise<void> {
    this.become({ kind: "starting", text: "Installing the server" });
    const status = await runInTerminal("Install", commands);
    if (status === 0) {
      await this.restart();
    } else {
      this.failed(
        new NotStarted(
          `The installation has failed with status ${status}; the terminal shows why. It was: ${commands.map(typed).join("   then   ")}`,
          "Not installed",
          commands,
        ),
      );
    }
  }

  private becomeReady(): void {
    const python = `Python ${this.found?.version.join(".") ?? "?"}, ${this.found?.executable ?? ""}`;
    this.become({
      kind: "ready",
      text: `Ready (server ${this.version ?? "?"})`,
      detail: `${python} (${this.interpreter?.origin ?? ""})`,
    });
  }

  private become(state: State): void {
    this.current = state;
    this.changed.fire(state);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
