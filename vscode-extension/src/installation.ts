/** What an interpreter has, and how the language server gets into one that lacks it. */

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import * as vscode from "vscode";

import { Interpreter, ownPython } from "./interpreter";
import { CommandLine, typed } from "./terminal";

/** The oldest Python that the language server runs on. */
const FLOOR = [3, 10] as const;
const PROBE_LIMIT_MS = 30_000;

/** What `python/probe.py` says of an interpreter; what comes after `version` is missing where it is too old. */
export interface Probe {
  readonly executable: string;
  readonly version: readonly number[];
  readonly hasTensorflow?: boolean;
  readonly hasHorovod?: boolean;
  readonly trainshift?: string | null;
  readonly missing?: readonly string[];
  readonly hasPip?: boolean;
  readonly isManaged?: boolean;
  readonly packages?: Readonly<Record<string, string | null>>;
}

/** A language server that cannot be started: why, in short, and the command lines that would help. */
export class NotStarted extends Error {
  constructor(
    message: string,
    readonly text: string,
    readonly install: readonly CommandLine[] = [],
  ) {
    super(message);
  }
}

/** The places that belong to the extension: where it is installed, and the environment that it may make. */
export interface Home {
  readonly extension: vscode.Uri;
  readonly environment: vscode.Uri;
}

/** The folder that Python is run in: nothing in it can be imported in place of a library, as in a workspace. */
export function safeFolder(extension: vscode.Uri): string {
  return vscode.Uri.joinPath(extension, "python").fsPath;
}

/** Ask an interpreter what it has; rejects where it cannot be run. */
export async function probe({ command }: Interpreter, extension: vscode.Uri): Promise<Probe> {
  const [program, ...rest] = command;
  const cwd = safeFolder(extension);
  const options = { cwd, timeout: PROBE_LIMIT_MS, windowsHide: true };
  const { stdout } = await promisify(execFile)(program, [...rest, join(cwd, "probe.py")], options);
  // What starts Python may have something to say first.
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Probe;
}

/** What an interpreter has that the language server can run in; rejects with NotStarted where it cannot. */
export async function inspect(interpreter: Interpreter, home: Home): Promise<Probe> {
  const shown = `${typed(interpreter.command)} (${interpreter.origin})`;
  let found: Probe;
  try {
    found = await probe(interpreter, home.extension);
  } catch (error) {
    throw new NotStarted(`${shown} is no Python that can be run: ${reasonOf(error)}`, "No Python");
  }
  const version = found.version.join(".");
  if (isOlder(found.version, FLOOR)) {
    throw new NotStarted(
      `${shown} is Python ${version}; the language server needs ${FLOOR.join(".")} or later.`,
      `Python ${version} is too old`,
    );
  }
  const wheel = bundledWheel(home.extension);
  const lack = lackOf(found, wheel.version);
  if (lack !== undefined) {
    const install = installing(interpreter, found, home, wheel.path);
    throw new NotStarted(
      `${shown} ${lack}. To install it: ${install.map(typed).join(" && ")}`,
      "Not installed",
      install,
    );
  }
  return found;
}

/** Why a program has not run, in a line. */
function reasonOf(error: unknown): string {
  const isLate = error instanceof Error && "killed" in error && error.killed === true;
  const message = error instanceof Error ? error.message : String(error);
  return isLate
    ? `it did not answer within ${PROBE_LIMIT_MS / 1000} seconds`
    : (message.trim().split("\n").at(-1) ?? "");
}

/** What an interpreter lacks of the language server, if anything. */
function lackOf({ trainshift, missing = [] }: Probe, wanted: string): string | undefined {
  if (!trainshift) {
    return "has no trainshift";
  }
  if (missing.length > 0) {
    return `lacks ${missing.join(", ")}, which trainshift needs`;
  }
  return isOlder(numbers(trainshift), numbers(wanted))
    ? `has trainshift ${trainshift}, and this extension needs ${wanted}`
    : undefined;
}

/**
 * The command lines that install the server, from the wheel that this extension brings; what it depends on comes
 * from the package index.  Where an interpreter takes no packages (PEP 668, or no pip), an environment of the
 * extension's own is made from it.
 */
function installing(interpreter: Interpreter, found: Probe, home: Home, wheel: string): CommandLine[] {
  const pip = ["-m", "pip", "install", "--upgrade", wheel];
  return found.hasPip && !found.isManaged
    ? [[...interpreter.command, ...pip]]
    : [
        [...interpreter.command, "-m", "venv", "--clear", home.environment.fsPath],
        [ownPython(home.environment), ...pip],
      ];
}

function bundledWheel(extension: vscode.Uri): { path: string; version: string } {
  const folder = join(extension.fsPath, "bundled");
  const name = readdirSync(folder).find((each) => each.endsWith(".whl"));
  if (name === undefined) {
    throw new Error(`${folder} holds no wheel; install the extension again`);
  }
  return { path: join(folder, name), version: name.split("-")[1] ?? "" };
}

function numbers(version: string): number[] {
  return version.split(".").map((part) => parseInt(part, 10) || 0);
}

function isOlder(one: readonly number[], other: readonly number[]): boolean {
  const place = other.findIndex((number, index) => number !== (one[index] ?? 0));
  return place >= 0 && (one[place] ?? 0) < (other[place] ?? 0);
}
