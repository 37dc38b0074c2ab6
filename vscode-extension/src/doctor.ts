/**
 * "Check Horovod Installation": the result of `trainshift doctor` for the Python of scripts, and the
 * commands that install Horovod.
 */

import { execFile } from "node:child_process";
import { promisify } from "node:util";

import * as vscode from "vscode";

import { inFront } from "./documents";
import { called, CHOOSE } from "./equipment";
import { probe, safeFolder } from "./installation";
import { Interpreters } from "./interpreter";
import { CHOOSE_PYTHON } from "./commands";
import { Server } from "./server";

const SHOW_COMMANDS = "Show Commands";

/**
 * The output of `trainshift doctor --format json` for a Python; `command-line.md` of the project describes
 * it.
 */
interface Diagnosis {
  readonly ready: boolean;
  readonly says: readonly string[];
  readonly recipes: readonly Recipe[];
}

interface Recipe {
  readonly for: string;
  readonly needs: string;
  readonly tried: boolean;
  readonly commands: readonly string[];
}

/** Check the Python of the script at `uri`, else of the active document, else of the first folder. */
export async function checkHorovod(
  server: Server,
  interpreters: Interpreters,
  extension: vscode.Uri,
  uri?: unknown,
): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Trainshift: nothing is run in a workspace that is not trusted.");
    return;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const scope = typeof uri === "string" ? vscode.Uri.parse(uri) : (inFront()?.uri ?? folder);
  const tool = (await server.ready()) && server.interpreter;
  if (tool === undefined) {
    return;
  }
  const interpreter = await interpreters.forScript(scope);
  const found = await probe(interpreter, extension).catch(() => undefined);
  const name = found === undefined ? interpreter.command.join(" ") : called(found);
  const [program, ...rest] = tool.command;
  const asked = ["-m", "trainshift", "doctor", "--format", "json", "--python", found?.executable ?? name];
  const options = { cwd: safeFolder(extension), windowsHide: true };
  const progress = { location: vscode.ProgressLocation.Window, title: "Trainshift: checking Horovod" };
  const diagnosis = await vscode.window.withProgress(progress, () => {
    // The exit status is 1 if something is missing, and the output names it.
    const run = promisify(execFile)(program, [...rest, ...asked], options);
    return run.catch((error: unknown) => error as { stdout?: string }).then(({ stdout }) => read(stdout));
  });
  const script = scope?.toString();
  if (diagnosis === undefined) {
    await offer(`${name} cannot be run.`, { [CHOOSE]: () => choose(script) });
  } else if (diagnosis.ready) {
    void vscode.window.showInformationMessage(`Trainshift: ${name}: ${diagnosis.says.join(" ")}`);
  } else {
    const actions = {
      ...(diagnosis.recipes.length > 0 ? { [SHOW_COMMANDS]: () => showCommands(name, diagnosis) } : {}),
      [CHOOSE]: () => choose(script),
    };
    // The packages to install come with the commands.
    await offer(`${name}: ${diagnosis.says.join(" ").replace(/:$/, ".")}`, actions);
  }
}

function read(text: string | undefined): Diagnosis | undefined {
  try {
    return JSON.parse(text ?? "") as Diagnosis;
  } catch {
    return undefined;
  }
}

async function offer(
  text: string,
  actions: Readonly<Record<string, () => Thenable<unknown>>>,
): Promise<void> {
  const choice = await vscode.window.showWarningMessage(`Trainshift: ${text}`, ...Object.keys(actions));
  await actions[choice ?? ""]?.();
}

function choose(script: string | undefined): Thenable<unknown> {
  return vscode.commands.executeCommand(CHOOSE_PYTHON, script);
}

/** The commands as an unsaved script, to read, and to copy or run. */
async function showCommands(name: string, { says, recipes }: Diagnosis): Promise<void> {
  const [first, ...others] = recipes;
  const known = new Set(first?.commands);
  const parts = [
    // The first line is the title of the tab.
    "# Install Horovod",
    `# ${name}: ${says.join(" ")}`,
    ...(first === undefined ? [] : ["", `# For ${first.for} (needs ${first.needs}):`, ...first.commands]),
    ...others.flatMap((recipe) => [
      "",
      `# For ${recipe.for} (needs ${recipe.needs}${recipe.tried ? "" : ", untested"}), these instead:`,
      // A user should not run them by running the whole file.
      ...recipe.commands.filter((command) => !known.has(command)).map((command) => `# ${command}`),
    ]),
  ];
  const content = `${parts.join("\n")}\n`;
  const document = await vscode.workspace.openTextDocument({ language: "shellscript", content });
  await vscode.window.showTextDocument(document, { preview: false });
}
