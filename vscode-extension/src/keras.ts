/** "Choose Keras…": for which Keras results are written in this workspace, where requirements do not tell rightly. */

import * as vscode from "vscode";

import { Outline } from "./protocol";

const SETTING = "trainshift.keras";

interface Declared {
  readonly enum: readonly string[];
  readonly enumDescriptions: readonly string[];
}

/** Ask for a Keras and set it for the workspace, or for the person where no folder is open. */
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

/** The Keras of an outline and why, as a text of its own: "Keras 3, because ...". */
export function kerasOf({ keras }: Outline): string {
  return keras.replace(/^for /, "");
}
