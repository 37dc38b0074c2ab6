import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { VSCODE } from "./paths";
import type { Launch } from "./suite";

const START_LIMIT = 120_000;
const STOP_LIMIT = 5_000;

const QUIET_SETTINGS = {
  "chat.commandCenter.enabled": false,
  "chat.disableAIFeatures": true,
  "editor.minimap.enabled": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "off",
  "security.workspace.trust.startupPrompt": "never",
  "telemetry.telemetryLevel": "off",
  // The tests open small files, and the conversion handles most of their findings.
  "trainshift.restrictions": "letter",
  "update.mode": "none",
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.enableExperiments": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

/** A PATH without the folders of a `horovodrun`: tests provide their own, or need none. */
function pathWithoutHorovod(path: string): string {
  const folders = path.split(delimiter);
  return folders.filter((folder) => !existsSync(join(folder, "horovodrun"))).join(delimiter);
}

/** The harness's own key bindings: the palette costs a second of computing. */
export const KEYS = {
  focusEditor: { key: "Control+Alt+Shift+F1", commands: ["workbench.action.focusActiveEditorGroup"] },
  showProblems: { key: "Control+Alt+Shift+F3", commands: ["workbench.panel.markers.view.focus"] },
  tidy: {
    key: "Control+Alt+Shift+F2",
    commands: [
      "workbench.action.files.saveFiles",
      "workbench.action.closeAllEditors",
      "notifications.clearAll",
      "workbench.action.closePanel",
      "workbench.view.explorer",
    ],
  },
};

/** A free port, from the range that the system does not assign by itself. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const listener = createServer().listen(port, "127.0.0.1");
    const isFree = await once(listener, "listening").then(
      () => true,
      () => false,
    );
    listener.close();
    if (isFree) return port;
  }
}

/** The folder in which VS Code has installed a package, and a copy of all its files. */
const installed = new Map<string, { copy: string; from: string }>();

const running = new Set<CodeServer>();
process.once("exit", () => {
  for (const server of running) server.abandon();
});

/** A separate VS Code server, with all of its files in one temporary folder. */
export class CodeServer {
  /** All servers use this port in turn: the browser caches compiled code by address. */
  private static port: number | undefined;
  readonly workspace: string;
  private readonly environment: NodeJS.ProcessEnv;
  private process: ChildProcess | undefined;
  private output = "";

  private constructor(
    private readonly folder: string,
    private readonly launch: Launch,
    environment: NodeJS.ProcessEnv,
    private readonly flags: string[],
  ) {
    this.workspace = join(folder, "project");
    this.environment = this.environmentWith(environment);
  }

  /** Install the extension of that package, start VS Code with those flags, and wait until it answers. */
  static async start(
    launch: Launch,
    vsix: string,
    environment: NodeJS.ProcessEnv,
    flags: string[] = [],
  ): Promise<CodeServer> {
    const folder = await mkdtemp(join(tmpdir(), "trainshift-vscode-"));
    const server = new CodeServer(folder, launch, environment, flags);
    try {
      await server.writeWorkspace();
      await server.writeSettings();
      await server.install(vsix);
      await server.serve();
    } catch (error) {
      await server.stop();
      throw new Error(`VS Code did not start:\n${server.output}`, { cause: error });
    }
    return server;
  }

  /** The address of a window on the workspace, with additional entries in the window's payload. */
  url(...payload: [string, string][]): string {
    const open = this.launch.open;
    const opened = open === undefined ? [] : [["openFile", this.remote(join(this.workspace, open))]];
    const query = new URLSearchParams({
      folder: this.workspace,
      payload: JSON.stringify([...opened, ...payload]),
    });
    return `http://127.0.0.1:${this.port}/?${query.toString()}`;
  }

  /** A window's URI of a file of this machine. */
  remote(path: string): string {
    return `vscode-remote://127.0.0.1:${this.port}${path}`;
  }

  /** Copy the logs of the server, the extension host and the extension. */
  async keepLogs(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "server.log"), this.output);
    await cp(join(this.folder, "data", "logs"), join(folder, "logs"), { recursive: true, force: true }).catch(
      () => undefined,
    );
  }

  /** End the server and all of its processes, and remove the folder. */
  async stop(): Promise<void> {
    const child = this.process;
    if (child?.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      this.signal("SIGTERM");
      await Promise.race([ended, sleep(STOP_LIMIT, undefined, { ref: false })]);
    }
    this.signal("SIGKILL");
    running.delete(this);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  private async writeWorkspace(): Promise<void> {
    await mkdir(this.workspace);
    for (const [name, text] of Object.entries(this.launch.workspace ?? {})) {
      const path = join(this.workspace, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
      if (text.startsWith("#!")) await chmod(path, 0o755);
    }
    await this.launch.prepare?.(this.workspace);
  }

  private async writeSettings(): Promise<void> {
    const restricted = this.launch.trusted === false;
    const settings = {
      ...QUIET_SETTINGS,
      "security.workspace.trust.enabled": restricted,
      ...this.launch.settings,
    };
    const folder = join(this.folder, "data", "User");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "settings.json"), this.filled(JSON.stringify(settings, null, 2)));
    const bindings = Object.values(KEYS).map(({ key, commands }) => ({
      key: key.replace("Control", "ctrl").toLowerCase(),
      command: "runCommands",
      args: { commands },
    }));
    await writeFile(join(folder, "keybindings.json"), JSON.stringify(bindings));
  }

  /** Have VS Code install the package once; later servers get copies of the files. */
  private async install(vsix: string): Promise<void> {
    const kept = installed.get(vsix);
    if (kept === undefined) {
      const [status] = (await once(this.spawn("--install-extension", vsix), "exit")) as [number | null];
      if (status !== 0) throw new Error(`installing ${vsix} ended with status ${String(status)}`);
      const copy = await mkdtemp(join(tmpdir(), "trainshift-installed-"));
      process.once("exit", () => rmSync(copy, { recursive: true, force: true }));
      await cp(this.extensions, copy, { recursive: true });
      installed.set(vsix, { copy, from: this.extensions });
    } else {
      await cp(kept.copy, this.extensions, { recursive: true });
      const list = join(this.extensions, "extensions.json");
      await writeFile(list, (await readFile(list, "utf8")).replaceAll(kept.from, this.extensions));
    }
    for (const folder of this.launch.extensions ?? []) await this.copyExtension(folder);
  }

  /** An extension that VS Code did not install itself must be added to its list. */
  private async copyExtension(source: string): Promise<void> {
    const { publisher, name, version } = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as {
      publisher: string;
      name: string;
      version: string;
    };
    const relativeLocation = `${publisher}.${name}-${version}`;
    const path = join(this.extensions, relativeLocation);
    await cp(source, path, { recursive: true });
    const list = join(this.extensions, "extensions.json");
    const entries = JSON.parse(await readFile(list, "utf8")) as unknown[];
    const location = { $mid: 1, path, scheme: "file" };
    entries.push({ identifier: { id: `${publisher}.${name}` }, version, location, relativeLocation });
    await writeFile(list, JSON.stringify(entries));
  }

  private get extensions(): string {
    return join(this.folder, "extensions");
  }

  private get port(): string {
    return String(CodeServer.port);
  }

  private async serve(): Promise<void> {
    CodeServer.port ??= await freePort();
    const trust = this.launch.trusted === false ? [] : ["--disable-workspace-trust"];
    this.spawn(
      "--host=127.0.0.1",
      `--port=${this.port}`,
      "--without-connection-token",
      "--accept-server-license-terms",
      "--telemetry-level=off",
      ...trust,
      ...this.flags,
    );
    await this.until(async () => {
      const answer = await fetch(`http://127.0.0.1:${this.port}/version`).catch(() => undefined);
      return answer?.ok === true;
    });
  }

  private async until(holds: () => boolean | Promise<boolean>): Promise<void> {
    const end = Date.now() + START_LIMIT;
    while (!(await holds())) {
      if (Date.now() > end || this.process?.exitCode !== null) throw new Error("no answer");
      await sleep(50);
    }
  }

  /** Run the server's program in a process group of its own, so that its children can be ended with it. */
  private spawn(...parameters: string[]): ChildProcess {
    const folders = [
      `--server-data-dir=${join(this.folder, "server")}`,
      `--user-data-dir=${join(this.folder, "data")}`,
      `--extensions-dir=${this.extensions}`,
    ];
    const main = join(VSCODE, "out", "server-main.js");
    const child = spawn(process.execPath, [main, ...folders, ...parameters], {
      cwd: this.folder,
      env: this.environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part: Buffer) => (this.output += part.toString()));
    }
    this.process = child;
    running.add(this);
    return child;
  }

  /** Stop immediately, for a process that is about to end. */
  abandon(): void {
    this.signal("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  private signal(signal: NodeJS.Signals): void {
    const group = this.process?.pid;
    if (group === undefined) return;
    try {
      process.kill(-group, signal);
    } catch {
      // The group has no processes left.
    }
  }

  private environmentWith(more: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|npm_)/.test(name));
    // Without VSCODE_CLI the extension host asks a login shell for the environment, and loses PATH.
    const environment: NodeJS.ProcessEnv = {
      ...Object.fromEntries(inherited),
      EXTENSIONS_GALLERY: JSON.stringify({ serviceUrl: "" }),
      HOME: this.folder,
      PATH: pathWithoutHorovod(process.env.PATH ?? ""),
      VSCODE_CLI: "1",
      ...more,
    };
    for (const [name, value] of Object.entries(this.launch.env ?? {})) {
      environment[name] = value === undefined ? undefined : this.filled(value);
    }
    return environment;
  }

  private filled(text: string): string {
    return text.replaceAll("<workspace>", this.workspace);
  }
}
