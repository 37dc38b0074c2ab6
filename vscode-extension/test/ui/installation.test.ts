import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { DATA, TRAIN } from "./project";
import { clearToasts } from "./window";

const run = promisify(execFile);

/** A Python that says of itself that it takes no packages (PEP 668), as Debian's does. */
async function managedPython(): Promise<string> {
  const { stdout } = await run(PYTHON, ["-c", "import sys; print(sys._base_executable)"]);
  return `#!/bin/sh
case "$*" in
*probe.py) "${stdout.trim()}" -I "$@" | sed 's/"isManaged": false/"isManaged": true/' ;;
*) exec "${stdout.trim()}" -I "$@" ;;
esac
`;
}

export const suites: UiSuite[] = [
  {
    name: "installation",
    workspace: { "train.py": TRAIN, "data.py": DATA },
    prepare: async (workspace) => {
      await run(PYTHON, ["-m", "venv", join(workspace, ".venv")]);
      await mkdir(join(workspace, ".vscode"));
      await writeFile(join(workspace, "managed"), await managedPython());
      await chmod(join(workspace, "managed"), 0o755);
    },
    open: "train.py",
    settings: { "trainshift.interpreter": ["<workspace>/.venv/bin/python"], "editor.minimap.enabled": false },
    tests(workbench) {
      it("says what installs the server, and does it in a terminal", async () => {
        const toast = await workbench.toast("has no trainshift");
        await workbench.screenshot("not installed");
        const python = join(workbench.workspace, ".venv", "bin", "python");
        assert.match(
          (await toast.innerText()).replaceAll("\u00a0", " "),
          new RegExp(`${python} -m pip install --upgrade \\S+/bundled/trainshift-\\S+\\.whl`),
        );
        await workbench.answerToast("has no trainshift", "Install in Terminal");
        await workbench.page
          .locator(".part.panel .terminal-wrapper, .part.panel .terminal")
          .first()
          .waitFor();
        await workbench.waitForSquiggle();
        await workbench.screenshot("installed");
      });

      it("makes an environment of its own for a Python that takes no packages", async () => {
        const settings = { "trainshift.interpreter": ["${workspaceFolder}/managed"] };
        await writeFile(join(workbench.workspace, ".vscode", "settings.json"), JSON.stringify(settings));
        const toast = await workbench.toast(/managed.* has no trainshift/);
        await workbench.screenshot("managed");
        assert.match(
          await toast.innerText(),
          /managed -m venv --clear \S+environment.&&.*environment\S+ -m pip install/s,
        );
        await workbench.waitForNoSquiggle();
        await workbench.answerToast(/managed.* has no trainshift/, "Install in Terminal");
        await workbench.waitForSquiggle();
        await workbench.screenshot("own environment");
        await clearToasts(workbench);
      });
    },
  },
];
