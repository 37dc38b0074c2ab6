/** What an interpreter has, and how the language server gets into one that lacks it. */

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import * as vscode from "vscode";

import { Interpreter, ownPython } from "./interpreter";
import { CommandLine } from "./terminal";

/** The oldest Python that the language server runs on. */
export const FLOOR = [3, 10] as const;

/** What `python/probe.py` says of an interpreter; what comes after `version` is missing below the floor. */
export interface Probe {
  readonly executable: string;
  readonly version: readonly number[];
  readonly trainshift?: string | null;
  readonly missing?: readonly string[];
  readonly hasPip?: boolean;
  readonly isManaged?: boolean;
  readonly packages?: Readonly<Record<string, string | null>>;
}

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 30_000;

/** Ask an interpreter what it has; rejects where it cannot be run. */
export async function probe(interpreter: Interpreter, extension: vscode.Uri): Promise<Probe> {
  const [program, ...rest] = interpreter.command;
  const script = vscode.Uri.joinPath(extension, "python", "probe.py").fsPath;
  // Not the workspace's folder, from which Python might import.
  const options = { cwd: serverFolder(extension), timeout: PROBE_TIMEOUT_MS, windowsHide: true };
  const { stdout } = await run(program, [...rest, script], options);
  return JSON.parse(stdout) as Probe;
}

/** The folder that the server is started in: nothing in it can be imported in place of a library. */
export function serverFolder(extension: vscode.Uri): string {
  return vscode.Uri.joinPath(extension, "python").fsPath;
}

export function isTooOld(found: Probe): boolean {
  const [major = 0, minor = 0] = found.version;
  return major < FLOOR[0] || (major === FLOOR[0] && minor < FLOOR[1]);
}

export function isInstalled(found: Probe): boolean {
  return found.trainshift !== null && found.trainshift !== undefined && found.missing?.length === 0;
}

/**
 * The command lines that install the server, from the wheel that this extension brings; what it depends on comes
 * from the package index.  Where an interpreter takes no packages (PEP 668, or no pip), an environment of the
 * extension's own is made from it.
 */
export function installing(
  interpreter: Interpreter,
  found: Probe,
  extension: vscode.Uri,
  ownFolder: vscode.Uri,
): CommandLine[] {
  const folder = join(extension.fsPath, "bundled");
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) {
    throw new Error(`${folder} holds no wheel; install the extension again`);
  }
  const pip = ["-m", "pip", "install", "--upgrade", join(folder, wheel)];
  return found.hasPip && !found.isManaged
    ? [[...interpreter.command, ...pip]]
    : [
        [...interpreter.command, "-m", "venv", ownFolder.fsPath],
        [ownPython(ownFolder), ...pip],
      ];
}
