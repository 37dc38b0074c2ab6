/** Which Python runs the language server: any that has the package; never the user's TensorFlow. */

import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";

import { EXTENSION_ID as ENVIRONMENTS_ID, PythonEnvironments } from "@vscode/python-environments";
import { PVSC_EXTENSION_ID as PYTHON_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

import { CommandLine } from "./terminal";
import { within } from "./time";

/** A command that starts a Python, with its arguments and its origin; `isChosen` if the user named it. */
export interface Interpreter {
  readonly command: CommandLine;
  readonly origin: string;
  readonly isChosen: boolean;
}

export const SETTING = "trainshift.interpreter";
/** The Python that runs scripts, which need not be the one that runs the server. */
export const SCRIPTS_SETTING = "trainshift.python";
/** Possible names of Python on the PATH; the usual one comes first. */
const ON_PATH: readonly [CommandLine, ...CommandLine[]] =
  process.platform === "win32"
    ? [["python"], ["py", "-3"]]
    : [["python3"], ["python3.13"], ["python3.12"], ["python3.11"], ["python3.10"]];
const ANSWER_LIMIT_MS = 10_000;
/** The server stops waiting for its settings. */
const SOON_MS = 500;

/** Finds the interpreter, and reports when a different one may be right. */
export class Interpreters implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [
    this.changed,
    // A newly installed or enabled extension may know an environment.
    vscode.extensions.onDidChange(() => this.changed.fire()),
  ];
  private readonly listening = new Set<string>();

  readonly onDidChange = this.changed.event;

  constructor(
    readonly ownFolder: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  dispose(): void {
    this.disposables.forEach((each) => void each.dispose());
  }

  /** The extension's own environment, isolated from variables and user packages. */
  own(): Interpreter | undefined {
    const path = ownPython(this.ownFolder);
    const origin = "the extension's own environment";
    return existsSync(path) ? { command: [path, "-I"], origin, isChosen: false } : undefined;
  }

  /** Return whether the user has agreed to a set-up, for this version of the extension or an earlier one. */
  isAgreed(): boolean {
    const home = dirname(this.ownFolder.fsPath);
    return existsSync(home) && readdirSync(home).length > 0;
  }

  /**
   * Candidates to run the server, best first: only the setting, if set; else the selection in a Python
   * extension, then the PATH.
   */
  async find(): Promise<[Interpreter, ...Interpreter[]]> {
    const chosen = this.fromSetting();
    const selected = chosen === undefined ? await this.fromExtensions() : undefined;
    const [usual, ...others] = ON_PATH;
    return chosen !== undefined
      ? [chosen]
      : ([...(selected ? [selected] : []), onPath(usual), ...others.map(onPath)] as [Interpreter]);
  }

  /**
   * The Python to run a script: the setting for scripts, else the selection in a Python extension, else the
   * server's setting, else the PATH.
   */
  async forScript(script: vscode.Uri | undefined): Promise<Interpreter> {
    return (
      this.forScripts(script) ??
      (await this.fromExtensions(script)) ??
      this.fromSetting() ??
      onPath(ON_PATH[0])
    );
  }

  /** The Python set for the scripts of a folder. */
  private forScripts(scope: vscode.Uri | undefined): Interpreter | undefined {
    const path = expanded(vscode.workspace.getConfiguration("trainshift", scope).get("python", ""), scope);
    const isAllowed = vscode.workspace.isTrusted || !isInWorkspace(path);
    const origin = `the setting ${SCRIPTS_SETTING}`;
    return path !== "" && isAllowed ? { command: [path], origin, isChosen: true } : undefined;
  }

  /** The Python selected for a folder in a Python extension; none if that is not known soon. */
  async selected(folder: vscode.Uri | undefined): Promise<string | undefined> {
    const chosen = this.forScripts(folder);
    const found = chosen ?? this.fromExtensions(folder).catch(() => undefined);
    return (await within(SOON_MS, Promise.resolve(found)).catch(() => undefined))?.command[0];
  }

  private fromSetting(): Interpreter | undefined {
    const words = listed(SETTING)
      .map((word) => expanded(word))
      .filter((word) => word !== "");
    if (!vscode.workspace.isTrusted && words.some(isInWorkspace)) {
      this.log.warn(`${SETTING} names a file of the workspace, which is not trusted; it is not used`);
      return undefined;
    }
    const [program, ...rest] = words;
    const origin = `the setting ${SETTING}`;
    return program === undefined ? undefined : { command: [program, ...rest], origin, isChosen: true };
  }

  private async fromExtensions(scope?: vscode.Uri): Promise<Interpreter | undefined> {
    // An environment may be inside the workspace; an untrusted workspace must not name a program to run.
    if (!vscode.workspace.isTrusted) {
      return undefined;
    }
    const of = scope ?? vscode.workspace.workspaceFolders?.[0]?.uri;
    for (const ask of [this.fromEnvironments.bind(this), this.fromPython.bind(this)]) {
      const answer = ask(of);
      try {
        const found = await within(ANSWER_LIMIT_MS, answer);
        if (found !== undefined) {
          return found;
        }
      } catch (error) {
        this.log.warn(`A Python extension did not report its environment: ${String(error)}`);
        answer.then(
          () => this.changed.fire(), // It was late.
          () => undefined,
        );
      }
    }
    return undefined;
  }

  private async fromEnvironments(scope: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    if (vscode.extensions.getExtension(ENVIRONMENTS_ID) === undefined) {
      return undefined;
    }
    const api = await PythonEnvironments.api();
    this.listen(ENVIRONMENTS_ID, (changed) => api.onDidChangeEnvironment(changed));
    const run = (await api.getEnvironment(scope))?.execInfo.run;
    const origin = "the Python Environments extension";
    return run && { command: [run.executable, ...(run.args ?? [])], origin, isChosen: false };
  }

  private async fromPython(scope: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    if (vscode.extensions.getExtension(PYTHON_ID) === undefined) {
      return undefined;
    }
    const { environments } = await PythonExtension.api();
    this.listen(PYTHON_ID, (changed) => environments.onDidChangeActiveEnvironmentPath(changed));
    const active = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(scope));
    const path = active?.executable.uri?.fsPath;
    return path === undefined
      ? undefined
      : { command: [path], origin: "the Python extension", isChosen: false };
  }

  private listen(id: string, subscribe: (changed: () => void) => vscode.Disposable): void {
    if (!this.listening.has(id)) {
      this.listening.add(id);
      this.disposables.push(subscribe(() => this.changed.fire()));
    }
  }
}

function onPath(command: CommandLine): Interpreter {
  return { command, origin: `${command[0]} on the PATH`, isChosen: false };
}

/** The path of the Python in the extension's own environment, whether it exists or not. */
function ownPython(folder: vscode.Uri): string {
  return process.platform === "win32"
    ? join(folder.fsPath, "Scripts", "python.exe")
    : join(folder.fsPath, "bin", "python");
}

/** The words of a setting, which may be a single one. */
export function listed(setting: string): string[] {
  return [vscode.workspace.getConfiguration().get<unknown>(setting, [])].flat().map(String);
}

/** A word of a setting with VS Code's usual variables replaced. */
function expanded(word: string, scope?: vscode.Uri): string {
  const home = scope && vscode.workspace.getWorkspaceFolder(scope);
  const folder = (home ?? vscode.workspace.workspaceFolders?.[0])?.uri.fsPath ?? "";
  return word
    .replace(/^~(?=$|[\\/])/, homedir())
    .replaceAll("${workspaceFolder}", folder)
    .replaceAll("${userHome}", homedir())
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => process.env[name] ?? "");
}

function isInWorkspace(word: string): boolean {
  return (vscode.workspace.workspaceFolders ?? []).some(({ uri }) => {
    const path = relative(uri.fsPath, word);
    return isAbsolute(word) && !path.startsWith("..") && !isAbsolute(path);
  });
}
