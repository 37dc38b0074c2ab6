import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FINETUNE } from "./files";
import { choices, choose, clearToasts, closeEditors, hover, page, problemsShown, tab } from "../window";
import type { Part } from "./part";

const ALIAS = 11;

export const problems: Part = {
  files: {},
  open: "train.py",
  tests(workbench) {
    afterEach(async () => {
      await closeEditors(workbench);
      await workbench.openFile("train.py");
    });

    it("opens the page of a rule from Problems", async () => {
      await workbench.waitForSquiggle();
      await (await workbench.problem("TF03")).locator("a", { hasText: "TF03" }).click();
      await tab(workbench, "TF03").waitFor();
      await workbench.screenshot("page from problems");
      await page(workbench).locator("h1", { hasText: "TF03" }).waitFor();
      await workbench.press("Control+J");
    });

    it("says in a hover what is wrong, and has a link that works", async () => {
      await workbench.placeCursor(ALIAS);
      const shown = await hover(
        workbench,
        workbench.page.locator(".view-line span span", { hasText: /^Adam/ }).first(),
        "Adam is another name for",
      );
      await workbench.screenshot("hover");
      await shown.locator("a", { hasText: "Explain TF03" }).click();
      await tab(workbench, "TF03").waitFor();
      await page(workbench).locator("h1", { hasText: "TF03" }).waitFor();
    });

    it("explains a rule that is chosen from a list", async () => {
      await workbench.runCommand("Trainshift: Explain Rule…");
      const rows = await choices(workbench);
      await workbench.screenshot("rules");
      assert.match(rows[0] ?? "", /TF01.*import-not-at-top/s);
      await workbench.page.keyboard.type("print");
      await choose(workbench, "TF04");
      await page(workbench).locator("h1", { hasText: "TF04" }).waitFor();
      await workbench.screenshot("page");
    });

    it("checks files that are not open", async () => {
      // Once more with the focus in Problems, which stays.
      for (const row of ["finetune.py", "keras is another name"]) {
        await workbench.runCommand("Trainshift: Check Workspace");
        await workbench.toast(/3 warnings in 2 files/);
        await problemsShown(workbench);
        await workbench.problem(row);
        await workbench.screenshot("workspace");
        await clearToasts(workbench);
      }
    });

    it("keeps what was found in a file that is opened and closed, until it changes", async () => {
      await workbench.openFile("finetune.py");
      await workbench.waitForSquiggle();
      await closeEditors(workbench);
      await workbench.openFile("data.py");
      await workbench.problem("keras is another name");
      const path = join(workbench.workspace, "finetune.py");
      await writeFile(path, FINETUNE.replace("keras = tf.keras", "from tensorflow import keras"));
      const row = workbench.page.locator(".markers-panel .monaco-list-row", {
        hasText: "keras is another",
      });
      await row.first().waitFor({ state: "hidden" });
    });

    it("reports the environment", async () => {
      await workbench.runCommand("Trainshift: Report Environment");
      await tab(workbench, "Trainshift environment").waitFor();
      const text = await workbench.editorText();
      assert.match(text, /^# Trainshift environment/);
      assert.match(text, /State: Ready/);
      await workbench.screenshot("report");
      await workbench.runCommand("View: Revert and Close Editor");
    });
  },
};
