/** Running, proving and checking Horovod without TensorFlow, and choosing another Python. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { until } from "../harness/until";
import { DATA, TRAIN } from "./project/files";
import { choices, choose, clearToasts, closeEditors, tab } from "./window";

export const suites: UiSuite[] = [
  {
    name: "equipment",
    workspace: { "train.py": TRAIN, "data.py": DATA },
    prepare: async (workspace) => {
      await promisify(execFile)(PYTHON, ["-m", "venv", "--without-pip", join(workspace, ".venv")]);
    },
    open: "train.py",
    settings: { "trainshift.interpreter": [PYTHON], "trainshift.python": "<workspace>/.venv/bin/python" },
    tests(workbench) {
      const { page: window } = workbench;

      for (const [command, picture] of [
        ["Trainshift: Run With Horovod…", "run without TensorFlow"],
        ["Trainshift: Prove With Two Ranks…", "prove without TensorFlow"],
      ] as const) {
        it(`says in one message what is missing: ${command}`, async () => {
          await workbench.waitForSquiggle();
          await workbench.runCommand(command);
          const toast = await workbench.toast(
            /train\.py cannot be run: Python 3.* has neither TensorFlow nor Horovod/,
          );
          await workbench.screenshot(picture);
          for (const button of ["Choose Python…", "How to Install"]) {
            await toast.locator(".monaco-button", { hasText: button }).waitFor();
          }
          assert.equal(await window.locator(".part.panel .terminal").count(), 0);
          await clearToasts(workbench);
        });
      }

      it("shows the commands that install it, in a file that is saved nowhere", async () => {
        await workbench.runCommand("Trainshift: Check Horovod Installation");
        await workbench.toast("TensorFlow is not installed there");
        await workbench.screenshot("doctor");
        await workbench.answerToast("TensorFlow is not installed there", "Show Commands");
        await tab(workbench, "Install Horovod").waitFor();
        await window.locator(".view-line", { hasText: "pip install" }).first().waitFor();
        await workbench.screenshot("commands");
        await workbench.runCommand("View: Revert and Close Editor");
        await closeEditors(workbench);
      });

      it("has another Python chosen, with what each has", async () => {
        await workbench.openFile("train.py");
        await workbench.runCommand("Trainshift: Prove With Two Ranks…");
        await workbench.answerToast("train.py cannot be run", "Choose Python…");
        await until("what they have is told", async () =>
          (await choices(workbench)).some((row) => /\.venv.*no TensorFlow, no Horovod/s.test(row)),
        );
        await workbench.screenshot("pythons");
        await choose(workbench, "Automatic");
        const settings = join(workbench.workspace, ".vscode", "settings.json");
        await workbench.press("Escape");
        await clearToasts(workbench);
        await workbench.runCommand("Trainshift: Choose Python for Scripts…");
        await choose(workbench, ".venv/bin/python");
        await until("it is set", async () =>
          /"trainshift\.python": "\$\{workspaceFolder\}\/\.venv\/bin\/python"/.test(
            await readFile(settings, "utf8").catch(() => ""),
          ),
        );
      });
    },
  },
];
