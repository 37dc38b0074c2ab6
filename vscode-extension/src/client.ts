/** The library's client of one server process; the extension handles restarts and messages itself. */

import { ChildProcess, spawn } from "node:child_process";

import * as vscode from "vscode";
import {
  CloseAction,
  DidChangeConfigurationNotification,
  DocumentDiagnosticRequest,
  DynamicFeature,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  LanguageClientOptions,
  RevealOutputChannelOn,
  ServerCapabilities,
  StaticFeature,
} from "vscode-languageclient/node";

import { SELECTOR } from "./documents";
import { PROVE } from "./commands";
import { EXPLAIN, MAKE_DISTRIBUTED, NOT_DISTRIBUTABLE } from "./protocol";
import { CommandLine } from "./terminal";
import { within } from "./time";

const START_LIMIT_MS = 60_000;
const END_LIMIT_MS = 2_000;

/** The Python selected for the scripts of a folder, where known. */
export type PythonOf = (folder: vscode.Uri | undefined) => Promise<string | undefined>;

/** A client that starts one process and never another one; its owner handles the end of the process. */
export class Client extends LanguageClient {
  private process: ChildProcess | undefined;

  constructor(
    command: CommandLine,
    cwd: string,
    log: vscode.LogOutputChannel,
    pythonOf: PythonOf,
    closed: () => void,
  ) {
    super("trainshift", "Trainshift", () => this.spawn(command, cwd), options(log, pythonOf, closed));
  }

  /** Start the server; if it ends at once or does not answer in time, end it and reject. */
  async launch(): Promise<void> {
    try {
      await within(START_LIMIT_MS, this.start());
      if (!this.isRunning()) {
        throw new Error("it has ended at once");
      }
    } catch (error) {
      this.process?.kill();
      throw error;
    }
  }

  /** Have the server request its settings again. */
  async renewSettings(): Promise<void> {
    await this.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
  }

  /** The version that the server reports. */
  get serverVersion(): string | undefined {
    return this.initializeResult?.serverInfo?.version;
  }

  /**
   * The extension owns the commands, which exist in any state of the server; so does the check of the
   * workspace.
   */
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : undefined;
    if (method === DocumentDiagnosticRequest.method) {
      const initialize = feature.initialize.bind(feature);
      feature.initialize = (capabilities, selector) => initialize(ofOpenFiles(capabilities), selector);
    }
    if (method !== ExecuteCommandRequest.method) {
      super.registerFeature(feature);
    }
  }

  /** The extension reports each failure once. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** End the server, by force if it does not end by itself. */
  override async dispose(timeout?: number): Promise<void> {
    try {
      await super.dispose(timeout);
    } finally {
      const child = this.process;
      child?.stdin?.destroy();
      const isThere = () => child?.exitCode === null && child.signalCode === null;
      setTimeout(() => isThere() && child?.kill("SIGKILL"), END_LIMIT_MS).unref();
    }
  }

  private spawn([program, ...rest]: CommandLine, cwd: string): Promise<ChildProcess> {
    const child = spawn(program, rest, { cwd, windowsHide: true });
    this.process = child;
    return new Promise((resolve, reject) => {
      child.once("spawn", () => resolve(child));
      child.once("error", reject);
    });
  }
}

/**
 * The server's capabilities, without reports on files that are not open: the client would request them all
 * the time.
 */
function ofOpenFiles(capabilities: ServerCapabilities): ServerCapabilities {
  const { diagnosticProvider } = capabilities;
  return diagnosticProvider === undefined
    ? capabilities
    : { ...capabilities, diagnosticProvider: { ...diagnosticProvider, workspaceDiagnostics: false } };
}

function options(
  log: vscode.LogOutputChannel,
  pythonOf: PythonOf,
  closed: () => void,
): LanguageClientOptions {
  return {
    documentSelector: SELECTOR,
    middleware: {
      async provideCodeLenses(document, token, next) {
        const lenses = (await next(document, token)) ?? [];
        return vscode.workspace.isTrusted
          ? lenses.flatMap((lens) => [lens, ...proofOf(lens, document)])
          : lenses;
      },
      async provideHover(document, position, token, next) {
        const hover = await next(document, position, token);
        hover?.contents.splice(0, Infinity, ...hover.contents.map(explained));
        return hover;
      },
      workspace: {
        async configuration(params, token, next) {
          const sections = await next(params, token);
          if (!Array.isArray(sections)) {
            return sections;
          }
          const scopes = params.items.map(({ scopeUri }) =>
            scopeUri ? vscode.Uri.parse(scopeUri) : undefined,
          );
          const pythons = await Promise.all(scopes.map(pythonOf));
          return sections.map((section, number) => withPython(withSyntaxErrors(section), pythons[number]));
        },
      },
    },
    outputChannel: log,
    traceOutputChannel: traced(log),
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        closed();
        return { action: CloseAction.DoNotRestart, handled: true, message: "The server has ended." };
      },
    },
  };
}

/** The text of a hover, with links that show the bundled pages rendered. */
function explained(
  content: vscode.MarkdownString | vscode.MarkedString,
): vscode.MarkdownString | vscode.MarkedString {
  if (!(content instanceof vscode.MarkdownString)) {
    return content;
  }
  const text = content.value.replaceAll(/\[More about (\w+)\]\(file:[^)]*\)/g, (_, code: string) => {
    return `[Explain ${code}](command:${EXPLAIN}?${encodeURIComponent(JSON.stringify([code]))})`;
  });
  const told = new vscode.MarkdownString(text);
  told.isTrusted = { enabledCommands: [EXPLAIN] };
  return told;
}

/** The second offer for a loop that can be distributed: proving that. */
function proofOf({ command, range }: vscode.CodeLens, document: vscode.TextDocument): vscode.CodeLens[] {
  if (command?.command !== MAKE_DISTRIBUTED || command.title.endsWith(NOT_DISTRIBUTABLE)) {
    return [];
  }
  const tooltip = "Run a few steps on two ranks, and compare them";
  return document.uri.scheme === "file"
    ? [
        new vscode.CodeLens(range, {
          title: "Prove",
          command: PROVE,
          tooltip,
          arguments: [document.uri.toString()],
        }),
      ]
    : [];
}

/** A section of settings with the selected Python, whose TensorFlow decides the Keras version. */
function withPython(section: unknown, python: string | undefined): unknown {
  const isSection = typeof section === "object" && section !== null && "syntaxErrors" in section;
  return isSection && python !== undefined ? { ...section, python } : section;
}

/** The extensions that show the syntax errors of Python files. */
const SHOW_SYNTAX_ERRORS = [
  "ms-python.vscode-pylance",
  "ms-python.python",
  "ms-pyright.pyright",
  "detachhead.basedpyright",
  "charliermarsh.ruff",
  "astral-sh.ty",
  "meta.pyrefly",
];

/** A section of settings with the decision whether the server also shows syntax errors. */
function withSyntaxErrors(section: unknown): unknown {
  if (typeof section !== "object" || section === null || !("syntaxErrors" in section)) {
    return section;
  }
  const isShown = SHOW_SYNTAX_ERRORS.some((id) => vscode.extensions.getExtension(id) !== undefined);
  return { ...section, syntaxErrors: section.syntaxErrors ?? !isShown };
}

/** The log that the library traces to: the setting `trainshift.trace.server` decides, not the log level. */
function traced(log: vscode.LogOutputChannel): vscode.LogOutputChannel {
  const isWanted = vscode.workspace.getConfiguration("trainshift").get("trace.server") !== "off";
  return Object.create(log, {
    logLevel: { value: isWanted ? vscode.LogLevel.Trace : vscode.LogLevel.Info },
    trace: { value: log.info.bind(log) },
    onDidChangeLogLevel: { value: () => new vscode.Disposable(() => undefined) },
  }) as vscode.LogOutputChannel;
}
