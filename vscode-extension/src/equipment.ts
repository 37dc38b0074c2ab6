/** Check that the Python of a script has everything that Horovod needs; one message lists what is missing. */

import { existsSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

import * as vscode from "vscode";

import { nameOf } from "./documents";
import { Probe, probe } from "./installation";
import { Interpreter, Interpreters } from "./interpreter";
import { CHECK_HOROVOD, CHOOSE_PYTHON } from "./commands";

export const LAUNCHER = "horovodrun";
export const CHOOSE = "Choose Python…";
const HOW_TO_INSTALL = "How to Install";

/** The Python of a script, its contents, and the path of `horovodrun`; "" if that is not needed. */
export interface Equipment {
  readonly interpreter: Interpreter;
  readonly found: Probe;
  readonly launcher: string;
}

/**
 * The equipment to run a script with; otherwise the user sees the missing parts, and may choose another
 * Python.
 */
export async function equipped(
  script: vscode.Uri,
  interpreters: Interpreters,
  extension: vscode.Uri,
  isLaunched: boolean,
): Promise<Equipment | undefined> {
  const interpreter = await interpreters.forScript(script);
  const found = await probe(interpreter, extension).catch(() => undefined);
  const launcher = found === undefined || !isLaunched ? "" : (launcherOf(found) ?? "");
  const missing = [
    ...(found?.hasTensorflow ? [] : ["TensorFlow"]),
    ...(found?.hasHorovod ? [] : ["Horovod"]),
    ...(isLaunched && launcher === "" && found?.hasHorovod ? [LAUNCHER] : []),
  ];
  if (found !== undefined && missing.length === 0) {
    return { interpreter, found, launcher };
  }
  const problem =
    found === undefined
      ? `${interpreter.command.join(" ")} (${interpreter.origin}) cannot be run.`
      : `${nameOf(script)} cannot be run: ${called(found)} has ${none(missing)}.`;
  const buttons = found === undefined ? [CHOOSE] : [CHOOSE, HOW_TO_INSTALL];
  const choice = await vscode.window.showWarningMessage(`Trainshift: ${problem}`, ...buttons);
  if (choice === HOW_TO_INSTALL) {
    await vscode.commands.executeCommand(CHECK_HOROVOD, script.toString());
  } else if (choice === CHOOSE && (await vscode.commands.executeCommand(CHOOSE_PYTHON, script.toString()))) {
    return equipped(script, interpreters, extension, isLaunched);
  }
  return undefined;
}

/** Words for one or several missing things. */
function none(missing: readonly string[]): string {
  return missing.length > 1 ? `neither ${missing.join(" nor ")}` : `no ${missing.join()}`;
}

/** A Python in words: "Python 3.11.2 (/usr/bin/python3)". */
export function called({ version, executable }: Probe): string {
  return `Python ${version.join(".")} (${executable})`;
}

/** The path of `horovodrun`: beside the interpreter, else on the PATH. */
function launcherOf({ executable }: Probe): string | undefined {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute);
  return [dirname(executable), ...onPath]
    .map((folder) => join(folder, LAUNCHER))
    .find((path) => existsSync(path));
}
