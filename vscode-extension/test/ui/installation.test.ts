import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Workbench } from "../harness/browser";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { until } from "../harness/until";
import { DATA, TRAIN } from "./project/files";
import { clearToasts, status, toasts } from "./window";

const run = promisify(execFile);

/** A Python like Debian's: without pip, and without a way to install packages. */
async function bareEnvironment(folder: string): Promise<void> {
  await run(PYTHON, ["-m", "venv", "--without-pip", folder]);
}

/** The contents of an environment before and after. */
async function packagesOf(folder: string): Promise<string[]> {
  const [version] = await readdir(join(folder, "lib"));
  return readdir(join(folder, "lib", version ?? "", "site-packages"));
}

/** The folder of the environments that the extension creates. */
function environments(workbench: Workbench): string {
  const storage = join(dirname(workbench.workspace), "data", "User", "globalStorage");
  return join(storage, "trainshift.trainshift", "environments");
}

export const suites: UiSuite[] = [
  {
    name: "installation",
    workspace: { "train.py": TRAIN, "data.py": DATA },
    prepare: async (workspace) => {
      await bareEnvironment(join(workspace, ".venv"));
      await mkdir(join(workspace, ".vscode"));
    },
    open: "train.py",
    settings: { "trainshift.interpreter": ["<workspace>/.venv/bin/python"] },
    // No registry is reachable.
    env: {
      PIP_INDEX_URL: "http://127.0.0.1:9/simple",
      PIP_EXTRA_INDEX_URL: undefined,
      PIP_FIND_LINKS: undefined,
      PIP_NO_INDEX: "1",
      http_proxy: "http://127.0.0.1:9",
      https_proxy: "http://127.0.0.1:9",
    },
    tests(workbench) {
      it("sets itself up without a network, and not in the training environment", async () => {
        const python = join(workbench.workspace, ".venv");
        const before = await packagesOf(python);
        await status(workbench, "Setting up Trainshift").waitFor();
        await workbench.screenshot("setting up");
        await workbench.waitForSquiggle();
        await workbench.screenshot("set up");
        assert.deepEqual(await toasts(workbench, "Trainshift"), []);
        assert.deepEqual(await packagesOf(python), before);
        assert.equal((await readdir(environments(workbench))).length, 1);
      });

      it("is set up anew by itself after an update", async () => {
        const home = environments(workbench);
        const [version = ""] = await readdir(home);
        await rename(join(home, version), join(home, "0.0.1"));
        await workbench.runCommand("Trainshift: Restart Server");
        await until("the environment is there again", () =>
          access(join(home, version, "bin", "python")).then(
            () => true,
            () => false,
          ),
        );
        await until("that of the earlier version is gone", async () => {
          return (await readdir(home)).join() === version;
        });
        await workbench.waitForSquiggle();
      });

      it("asks again for another Python that is named", async () => {
        await writeFile(join(workbench.workspace, "nothing"), "");
        const settings = { "trainshift.interpreter": ["${workspaceFolder}/nothing"] };
        await writeFile(join(workbench.workspace, ".vscode", "settings.json"), JSON.stringify(settings));
        await workbench.toast(/Python was not found: .*nothing/);
        await workbench.screenshot("no Python");
        await workbench.waitForNoSquiggle();
        await clearToasts(workbench);
      });
    },
  },
];
