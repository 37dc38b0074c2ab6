/** "Choose Python for Scripts…": the one that Run, Prove and Doctor use, even without a Python extension. */

import { existsSync, readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";

import * as vscode from "vscode";

import { inFront } from "./documents";
import { Probe, probe } from "./installation";
import { SCRIPTS_SETTING } from "./interpreter";

const IN_ENVIRONMENT = process.platform === "win32" ? ["Scripts/python.exe", "python.exe"] : ["bin/python"];
const ON_PATH =
  process.platform === "win32" ? ["python.exe"] : ["python3.11", "python3.10", "python3", "python"];
/** Folders of environments in a home, by the tools that create them. */
const ENVIRONMENTS = [
  ".virtualenvs",
  ".conda/envs",
  "miniconda3/envs",
  "anaconda3/envs",
  "miniforge3/envs",
  "mambaforge/envs",
];

interface Item extends vscode.QuickPickItem {
  /** The path of a Python, "" for none in particular, undefined to search for one. */
  readonly path: string | undefined;
}

/**
 * Ask for the Python of a script, else of the active one, and set it for its folder; returns whether one
 * was chosen.
 */
export async function choosePython(extension: vscode.Uri, script = inFront()?.uri): Promise<boolean> {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Trainshift: nothing is run in a workspace that is not trusted.");
    return false;
  }
  const folder = script && vscode.workspace.getWorkspaceFolder(script);
  const home = folder ?? vscode.workspace.workspaceFolders?.[0];
  const configuration = vscode.workspace.getConfiguration(undefined, script ?? home?.uri);
  const path = await picked(home?.uri.fsPath, configuration.get(SCRIPTS_SETTING, ""), extension);
  if (path === undefined) {
    return false;
  }
  const isAlone = (vscode.workspace.workspaceFolders?.length ?? 0) < 2;
  const { Global, Workspace, WorkspaceFolder } = vscode.ConfigurationTarget;
  const target = home === undefined ? Global : isAlone ? Workspace : WorkspaceFolder;
  await configuration.update(
    SCRIPTS_SETTING,
    path === "" ? undefined : shared(path, home?.uri.fsPath),
    target,
  );
  return true;
}

/** The path of the Python that the user picks from the list; "" for none in particular. */
async function picked(
  folder: string | undefined,
  now: string,
  extension: vscode.Uri,
): Promise<string | undefined> {
  const list = vscode.window.createQuickPick<Item>();
  list.title = "Run Scripts on Which Python?";
  list.placeholder = "It needs TensorFlow and Horovod";
  list.matchOnDescription = true;
  list.busy = true;
  const pythons = pythonsNear(folder);
  const show = (told: ReadonlyMap<string, string>, paths: readonly string[] = [...told.keys()]) => {
    list.items = [
      ...paths.map((path) => ({ label: nameOf(path, folder), description: told.get(path) ?? "", path })),
      { label: "", kind: vscode.QuickPickItemKind.Separator, path: undefined },
      { label: "$(folder-opened) Browse…", path: undefined },
      ...(now === ""
        ? []
        : [
            {
              label: "$(discard) Automatic",
              description: "the environment that a Python extension selects, else one on the PATH",
              path: "",
            },
          ]),
    ];
  };
  show(new Map(), pythons);
  list.show();
  const asked = pythons.map((path) => probe({ command: [path] }, extension).catch(() => undefined));
  // Shown at once, so that rows do not move under the cursor; each Python by its first name.
  void Promise.all(asked).then((answers) => {
    const known = new Set<string>();
    const told = pythons.flatMap((path, number): [string, string][] => {
      const found = answers[number];
      const key = found && identity(path, found);
      if (found === undefined || key === undefined || known.has(key)) {
        return [];
      }
      known.add(key);
      return [[path, versions(found)]];
    });
    show(new Map(told));
    list.busy = false;
  });
  const chosen = await new Promise<Item | undefined>((resolve) => {
    list.onDidAccept(() => resolve(list.selectedItems[0]));
    list.onDidHide(() => resolve(undefined));
  });
  list.dispose();
  if (chosen === undefined || chosen.path !== undefined) {
    return chosen?.path;
  }
  const options = { title: "The Python That Runs Scripts", openLabel: "Choose" };
  return (await vscode.window.showOpenDialog(options))?.[0]?.fsPath;
}

/** The contents of a Python, in a line: "Python 3.11.2, TensorFlow 2.15.1, no Horovod". */
export function versions({ version, hasTensorflow, hasHorovod, packages = {} }: Probe): string {
  const told = (name: string, has: boolean | undefined, number: string | null | undefined): string =>
    has === true ? `${name}${number ? ` ${number}` : ""}` : `no ${name}`;
  return [
    `Python ${version.join(".")}`,
    told("TensorFlow", hasTensorflow, packages.tensorflow),
    told("Horovod", hasHorovod, packages.horovod),
  ].join(", ");
}

/** The file that identifies a Python; in an environment it is a link, which differs from its base Python. */
function identity(path: string, { executable }: Probe): string {
  return isEnvironment(dirname(dirname(path))) || !existsSync(executable)
    ? executable
    : realpathSync(executable);
}

/** The Pythons of environments in a folder and in the usual places, then those on the PATH. */
function pythonsNear(folder: string | undefined): string[] {
  const active = [process.env.VIRTUAL_ENV, process.env.CONDA_PREFIX].filter((each) => each !== undefined);
  const shared = ENVIRONMENTS.flatMap((each) => foldersIn(join(homedir(), each)));
  const environments = [...(folder === undefined ? [] : foldersIn(folder)), ...active, ...shared];
  const path = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const candidates = [
    ...environments
      .filter(isEnvironment)
      .flatMap((each) => IN_ENVIRONMENT.map((python) => join(each, python))),
    ...ON_PATH.flatMap((name) => path.map((each) => join(each, name)).find((each) => existsSync(each)) ?? []),
  ];
  return [...new Set(candidates.filter((each) => existsSync(each)))];
}

function foldersIn(folder: string): string[] {
  try {
    const found = readdirSync(folder, { withFileTypes: true });
    return found.filter((each) => !each.isFile()).map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

function isEnvironment(folder: string): boolean {
  return existsSync(join(folder, "pyvenv.cfg")) || existsSync(join(folder, "conda-meta"));
}

function inside(path: string, folder: string | undefined): string | undefined {
  const rest = folder === undefined ? ".." : relative(folder, path);
  return rest.startsWith("..") || isAbsolute(rest) ? undefined : rest;
}

function nameOf(path: string, folder: string | undefined): string {
  return inside(path, folder) ?? path.replace(homedir(), "~");
}

/** A path for a setting, independent of the folder's location. */
function shared(path: string, folder: string | undefined): string {
  const rest = inside(path, folder);
  return rest === undefined ? path : `\${workspaceFolder}/${rest.replaceAll("\\", "/")}`;
}
