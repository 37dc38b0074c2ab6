/** "Report Environment": what a bug report needs, to be read before it is sent anywhere. */

import { arch, platform, release } from "node:os";

import * as vscode from "vscode";

import { Server } from "./server";
import { typed } from "./terminal";
import { counted } from "./words";

/** Open a document with the versions, the interpreter, the settings and the server's state. */
export async function reportEnvironment(server: Server, extension: vscode.Extension<unknown>): Promise<void> {
  const document = await vscode.workspace.openTextDocument({
    language: "markdown",
    content: environment(server, extension),
  });
  await vscode.window.showTextDocument(document);
}

function environment(server: Server, extension: vscode.Extension<unknown>): string {
  const { found, interpreter, state } = server;
  const packages = Object.entries(found?.packages ?? {}).map(
    ([name, version]) => `${name} ${version ?? "none"}`,
  );
  const rows: [name: string, value: string][] = [
    ["Extension", versionOf(extension)],
    ["Server", server.version ?? "not running"],
    ["State", [state.text, state.detail].filter(Boolean).join(": ")],
    ["VS Code", `${vscode.version} (${vscode.env.appName}, ${vscode.env.remoteName ?? "local"})`],
    ["System", `${platform()} ${release()} ${arch()}`],
    [
      "Interpreter",
      interpreter === undefined ? "-" : `${typed(interpreter.command)} (${interpreter.origin})`,
    ],
    ["Python", found === undefined ? "-" : `${found.version.join(".")}, ${found.executable}`],
    ["Packages", packages.join(", ") || "-"],
    ["Workspace", `${counted(vscode.workspace.workspaceFolders?.length ?? 0, "folder")}, ${trust()}`],
  ];
  const settings = changedSettings(extension);
  return [
    "# Trainshift environment",
    "",
    ...rows.map(([name, value]) => `- ${name}: ${value}`),
    "",
    "## Settings that differ from their defaults",
    "",
    ...(settings.length > 0 ? settings.map((line) => `- ${line}`) : ["None."]),
    "",
    "None of this was sent anywhere. Read it before you paste it into an issue.",
    "",
  ].join("\n");
}

function versionOf(extension: vscode.Extension<unknown>): string {
  return (extension.packageJSON as { version: string }).version;
}

function trust(): string {
  return vscode.workspace.isTrusted ? "trusted" : "not trusted";
}

/** The settings that differ from their defaults, one per line. */
function changedSettings(extension: vscode.Extension<unknown>): string[] {
  const { contributes } = extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, { default?: unknown }> } };
  };
  const configuration = vscode.workspace.getConfiguration();
  return Object.entries(contributes.configuration.properties)
    .map(([key, { default: usual }]) => [key, configuration.get(key), usual] as const)
    .filter(([, value, usual]) => JSON.stringify(value) !== JSON.stringify(usual))
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
}
