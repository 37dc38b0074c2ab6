/**
 * "Choose Keras…": the Keras version of results in this workspace, if the requirements name the wrong one.
 */

import * as vscode from "vscode";

import { Outline } from "./protocol";

const SETTING = "trainshift.keras";

interface Declared {
  readonly enum: readonly string[];
  readonly enumDescriptions: readonly string[];
}

/** Ask for a Keras and set it for the workspace, or for the user if no folder is open. */
export async function chooseKeras(extension: vscode.Extension<unknown>): Promise<void> {
  const manifest = extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, Declared> } };
  };
  const declared = manifest.contributes.configuration.properties[SETTING];
  const configuration = vscode.workspace.getConfiguration();
  const now = configuration.get<string>(SETTING);
  const items = (declared?.enum ?? []).map((value, number) => ({
    label: NAMES[value] ?? value,
    description: value === now ? "current" : "",
    detail: declared?.enumDescriptions[number]?.replaceAll("`", "") ?? "",
    value,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Write results for which Keras?" });
  if (chosen !== undefined) {
    const isInFolder = vscode.workspace.workspaceFolders !== undefined;
    const target = isInFolder ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
    const value = chosen.value === "auto" ? undefined : chosen.value;
    await configuration.update(SETTING, value, target);
  }
}

const NAMES: Readonly<Record<string, string>> = {
  auto: "Automatic",
  "2": "Keras 2",
  "3": "Keras 3",
  tf_keras: "Keras 2 by tf_keras",
};

/** The Keras of an outline with its reason: "Keras 3, because ...". */
export function kerasOf({ keras }: Outline): string {
  return keras.replace(/^for /, "");
}
