/** Interpreters and their packages, and the set-up of the language server in an environment. */

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import * as vscode from "vscode";

import { Interpreter } from "./interpreter";
import { CommandLine, typed } from "./terminal";

/** The oldest Python that the language server runs on. */
const FLOOR = [3, 10] as const;
const PROBE_LIMIT_MS = 30_000;
const BUNDLED = "bundled";

/**
 * The output of `python/probe.py` for an interpreter; the fields after `version` are missing if it is too
 * old.  `base` is the installation that an environment was made from.
 */
export interface Probe {
  readonly executable: string;
  readonly version: readonly number[];
  readonly hasTensorflow?: boolean;
  readonly hasHorovod?: boolean;
  readonly trainshift?: string | null;
  readonly missing?: readonly string[];
  readonly base?: string;
  readonly packages?: Readonly<Record<string, string | null>>;
}

/**
 * A Python that can make an environment for the server, and its installation; `isComplete` if the package
 * contains all wheels.
 */
export interface Base {
  readonly command: CommandLine;
  readonly installation: string | undefined;
  readonly isComplete: boolean;
}

/**
 * A language server that cannot be started: the message, a short form, the Python to set up, and details
 * for the log.
 */
export class NotStarted extends Error {
  constructor(
    message: string,
    readonly text: string,
    readonly base?: Base,
    readonly found = message,
  ) {
    super(message);
  }
}

/** The state of a server that waits for consent to a download. */
export const NOT_SET_UP = "Not set up";
const DOWNLOADS = "Trainshift needs a one-time set-up. It downloads 6 MB from PyPI.";
/** The exit status of `python/set_up.py` if it needs a download without consent. */
const NEEDS_DOWNLOAD = 3;

/** The extension's own places: its installation, and its environment. */
export interface Home {
  readonly extension: vscode.Uri;
  readonly environment: vscode.Uri;
}

/** The folder in which Python runs: unlike a workspace, it has no modules that could shadow a library. */
export function safeFolder(extension: vscode.Uri): string {
  return vscode.Uri.joinPath(extension, "python").fsPath;
}

/** Ask an interpreter for its packages; rejects if it cannot be run. */
export async function probe(
  { command }: Pick<Interpreter, "command">,
  extension: vscode.Uri,
): Promise<Probe> {
  const [program, ...rest] = command;
  const cwd = safeFolder(extension);
  const options = { cwd, timeout: PROBE_LIMIT_MS, windowsHide: true };
  const { stdout } = await promisify(execFile)(program, [...rest, join(cwd, "probe.py")], options);
  // Start-up files of Python may print something first.
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Probe;
}

/** The packages of an interpreter that can run the language server; rejects with NotStarted if it cannot. */
export async function inspect(interpreter: Interpreter, home: Home): Promise<Probe> {
  const shown = `${typed(interpreter.command)} (${interpreter.origin})`;
  let found: Probe;
  try {
    found = await probe(interpreter, home.extension);
  } catch (error) {
    const message = `Python was not found: ${shown} cannot be run. Select another interpreter.`;
    throw new NotStarted(message, "No Python", undefined, `${shown}: ${reasonOf(error)}`);
  }
  const version = found.version.join(".");
  if (isOlder(found.version, FLOOR)) {
    throw new NotStarted(
      `${shown} is Python ${version}; the language server needs ${FLOOR.join(".")} or later.`,
      `Python ${version} is too old`,
    );
  }
  const wheels = bundledWheels(home.extension);
  const lack = lackOf(found, versionOf(wheels));
  if (lack !== undefined) {
    const base = { command: interpreter.command, installation: found.base, isComplete: wheels.length > 1 };
    throw new NotStarted(DOWNLOADS, NOT_SET_UP, base, `${shown} ${lack}`);
  }
  return found;
}

/**
 * Create the extension's own environment; reports progress, and rejects with NotStarted if it fails, or
 * needs a download without consent.
 */
export async function setUp(
  base: Base,
  home: Home,
  downloads: boolean,
  tell: (line: string) => void,
): Promise<void> {
  const [program, ...rest] = base.command;
  const cwd = safeFolder(home.extension);
  const wheels = join(home.extension.fsPath, BUNDLED);
  const consent = downloads ? ["--download"] : [];
  const script = ["-I", join(cwd, "set_up.py"), home.environment.fsPath, wheels, ...consent];
  const running = promisify(execFile)(program, [...rest, ...script], { cwd, windowsHide: true });
  for (const stream of [running.child.stdout, running.child.stderr]) {
    stream?.on("data", (text: string) => text.trim().split("\n").forEach(tell));
  }
  await running.catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === NEEDS_DOWNLOAD) {
      throw new NotStarted(DOWNLOADS, NOT_SET_UP, { ...base, isComplete: false });
    }
    throw new NotStarted(`The set-up has failed: ${reasonOf(error)}`, "Set-up has failed", base);
  });
}

/** The reason why a program has not run, in one line. */
function reasonOf(error: unknown): string {
  const isLate = error instanceof Error && "killed" in error && error.killed === true;
  const message = error instanceof Error ? error.message : String(error);
  return isLate
    ? `it did not answer within ${PROBE_LIMIT_MS / 1000} seconds`
    : (message.trim().split("\n").at(-1) ?? "");
}

/** The first requirement of the language server that an interpreter lacks, if any. */
function lackOf({ trainshift, missing = [] }: Probe, wanted = ""): string | undefined {
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

/** The names of the wheels in the package: the server's, and in a package for one platform all others. */
function bundledWheels(extension: vscode.Uri): string[] {
  const folder = join(extension.fsPath, BUNDLED);
  const names = readdirSync(folder).filter((each) => each.endsWith(".whl"));
  if (versionOf(names) === undefined) {
    throw new Error(`${folder} holds no wheel of Trainshift; install the extension again`);
  }
  return names;
}

/** The version of the server among wheels. */
function versionOf(wheels: readonly string[]): string | undefined {
  return wheels.find((name) => name.startsWith("trainshift-"))?.split("-")[1];
}

function numbers(version: string): number[] {
  return version.split(".").map((part) => parseInt(part, 10) || 0);
}

function isOlder(one: readonly number[], other: readonly number[]): boolean {
  const place = other.findIndex((number, index) => number !== (one[index] ?? 0));
  return place >= 0 && (one[place] ?? 0) < (other[place] ?? 0);
}
