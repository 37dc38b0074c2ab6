import assert from "node:assert/strict";
import { PYTHON } from "../harness/paths";
import { convertedProgram, NAMES, PROGRAM } from "../harness/program";
import type { UiSuite } from "../harness/suite";
import { change, status, tab, waitForPreview } from "./window";

export const suites: UiSuite[] = [
  {
    name: "program",
    workspace: { ...PROGRAM, "trainshift.toml": "" },
    open: "train.py",
    settings: { "trainshift.interpreter": [PYTHON], "editor.minimap.enabled": false },
    tests(workbench) {
      let whole: Record<string, string>;

      before(async () => {
        whole = await convertedProgram(workbench.workspace);
      });

      it("previews all files and converts them", async () => {
        await status(workbench, "GradientTape · 1 loop").waitFor();
        await workbench.press("Control+B");
        await workbench.runCommand("Trainshift: Make Distributed");
        await tab(workbench, "train.py and 2 more files ↔ made distributed (3 files)").waitFor();
        await waitForPreview(workbench);
        await change(workbench, /one GPU per rank\s*train\.py, line 3/).waitFor();
        await change(workbench, /Scale the learning rate.*model\.py, line 8/s).waitFor();
        await workbench.screenshot("program");
        await change(workbench, /^Apply 10 Changes/).click();
        const toast = await workbench.toast(/train\.py and 2 more files are distributed: 10 changes/);
        await workbench.screenshot("program converted");
        await toast.waitFor();
        for (const name of NAMES) {
          await workbench.openFile(name);
          await workbench.waitForText(whole[name] ?? "");
          assert.equal(await workbench.savedText(name), whole[name]);
        }
      });

      it("undoes it in all files at once", async () => {
        await workbench.openFile("model.py");
        await workbench.focusEditor();
        await workbench.press("Control+Z");
        for (const name of NAMES) {
          await workbench.openFile(name);
          await workbench.waitForText(PROGRAM[name] ?? "");
        }
      });
    },
  },
];
