import assert from "node:assert/strict";
import { join } from "node:path";
import { convertedProgram, NAMES, PROGRAM } from "../../harness/program";
import { change, choose, status, tab, waitForPreview } from "../window";
import type { Part } from "./part";

const FILES = Object.fromEntries(NAMES.map((name) => [`program/${name}`, PROGRAM[name] ?? ""])) as Record<
  string,
  string
>;

export const program: Part = {
  files: { ...FILES, "program/trainshift.toml": "" },
  open: "program/train.py",
  tests(workbench) {
    let whole: Record<string, string>;

    before(async () => {
      whole = await convertedProgram(join(workbench.workspace, "program"));
    });

    it("says which program a module is a part of, and leads to its start", async () => {
      await workbench.openFile("program/steps.py");
      await status(workbench, "part of train.py · 3 files").waitFor();
      await workbench.screenshot("module");
      await status(workbench, "part of train.py · 3 files").click();
      await choose(workbench, "Open train.py");
      await workbench.openFile("program/train.py");
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
        await workbench.openFile(`program/${name}`);
        await workbench.waitForText(whole[name] ?? "");
        assert.equal(await workbench.savedText(`program/${name}`), whole[name]);
      }
    });

    it("undoes it in all files at once", async () => {
      await workbench.openFile("program/model.py");
      await workbench.focusEditor();
      await workbench.press("Control+Z");
      for (const name of NAMES) {
        await workbench.openFile(`program/${name}`);
        await workbench.waitForText(PROGRAM[name] ?? "");
      }
    });
  },
};
