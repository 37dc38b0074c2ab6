/** Which Python runs the language server: any that has the package; never the user's TensorFlow. */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { EXTENSION_ID as ENVIRONMENTS_ID, PythonEnvironments } from "@vscode/python-environments";
import { PVSC_EXTENSION_ID as PYTHON_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

/** A command that starts a Python, its arguments included, and who chose it. */
export interface Interpreter {
  readonly command: readonly [string, ...string[]];
  readonly origin: string;
}

const ON_PATH = process.platform === "win32" ? "python" : "python3";

export const SETTING = "trainshift.interpreter";

/** Finds the interpreter and tells when another one may be the right one. */
export class Interpreters implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [this.changed];
  private readonly listening = new Set<string>();

  readonly onDidChange = this.changed.event;

  constructor(
    readonly ownFolder: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables.push(
      // An extension that was installed or enabled just now may know an environment.
      vscode.extensions.onDidChange(() => {
        const isNew = [ENVIRONMENTS_ID, PYTHON_ID].some(
          (id) => !this.listening.has(id) && vscode.extensions.getExtension(id) !== undefined,
        );
        if (isNew) {
          this.changed.fire();
        }
      }),
    );
  }

  dispose(): void {
    this.disposables.forEach((each) => void each.dispose());
  }

  /** The environment that the extension keeps for itself, for interpreters into which nothing can be installed. */
  own(): Interpreter | undefined {
    const path = ownPython(this.ownFolder);
    return existsSync(path) ? { command: [path], origin: "the extension's own environment" } : undefined;
  }

  /** The setting, else what the extensions for Python have selected, else `python3` on the path. */
  async find(): Promise<Interpreter> {
    return (
      fromSetting() ??
      (await this.fromExtensions()) ?? { command: [ON_PATH], origin: `${ON_PATH} on the PATH` }
    );
  }

  private async fromExtensions(): Promise<Interpreter | undefined> {
    // An environment may lie inside of the workspace; one that is not trusted must not name what is run.
    if (!vscode.workspace.isTrusted) {
      return undefined;
    }
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    for (const ask of [this.fromEnvironments.bind(this), this.fromPython.bind(this)]) {
      try {
        const command = await ask(folder);
        if (command !== undefined) {
          return command;
        }
      } catch (error) {
        this.log.warn(`An extension for Python does not tell its environment: ${String(error)}`);
      }
    }
    return undefined;
  }

  private async fromEnvironments(folder: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    if (vscode.extensions.getExtension(ENVIRONMENTS_ID) === undefined) {
      return undefined;
    }
    const api = await PythonEnvironments.api();
    this.listen(ENVIRONMENTS_ID, (changed) => api.onDidChangeEnvironment(changed));
    const run = (await api.getEnvironment(folder))?.execInfo.run;
    return (
      run && { command: [run.executable, ...(run.args ?? [])], origin: "the Python Environments extension" }
    );
  }

  private async fromPython(folder: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    if (vscode.extensions.getExtension(PYTHON_ID) === undefined) {
      return undefined;
    }
    const { environments } = await PythonExtension.api();
    this.listen(PYTHON_ID, (changed) => environments.onDidChangeActiveEnvironmentPath(changed));
    const active = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
    const path = active?.executable.uri?.fsPath;
    return path === undefined ? undefined : { command: [path], origin: "the Python extension" };
  }

  private listen(id: string, subscribe: (changed: () => void) => vscode.Disposable): void {
    if (!this.listening.has(id)) {
      this.listening.add(id);
      this.disposables.push(subscribe(() => this.changed.fire()));
    }
  }
}

/** Where the Python of the extension's own environment is, or would be. */
export function ownPython(folder: vscode.Uri): string {
  return process.platform === "win32"
    ? join(folder.fsPath, "Scripts", "python.exe")
    : join(folder.fsPath, "bin", "python");
}

function fromSetting(): Interpreter | undefined {
  const words = vscode.workspace.getConfiguration().get<string[]>(SETTING, []).map(expanded);
  const [program, ...rest] = words.filter((word) => word !== "");
  return program === undefined
    ? undefined
    : { command: [program, ...rest], origin: `the setting ${SETTING}` };
}

/** A word of a setting with VS Code's usual variables replaced. */
function expanded(word: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return word
    .replace(/^~(?=$|[\\/])/, homedir())
    .replaceAll("${workspaceFolder}", folder)
    .replaceAll("${userHome}", homedir())
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => process.env[name] ?? "");
}
