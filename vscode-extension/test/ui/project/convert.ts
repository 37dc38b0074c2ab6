import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { converted } from "../../harness/tool";
import { TRAIN } from "./files";
import {
  change,
  choices,
  choose,
  clearToasts,
  discard,
  hover,
  lens,
  resizePanel,
  page,
  problemsShown,
  status,
  tab,
  waitForPreview,
} from "../window";
import type { Part } from "./part";

const OPTIMIZER = 12;
/** A line around which both warnings are visible. */
const MIDDLE = 26;
const LOOP = TRAIN.split("\n").findIndex((line) => line.startsWith("for epoch")) + 1;

export const convert: Part = {
  files: {},
  open: "train.py",
  tests(workbench) {
    let whole: string;

    before(async () => {
      whole = await converted(workbench.workspace, "train.py");
    });

    it("marks violated restrictions", async () => {
      await workbench.waitForSquiggle();
      assert.match(await (await workbench.problem("TF03")).innerText(), /Adam is another name.*trainshift/is);
      await workbench.problem("TF04");
      await workbench.placeCursor(LOOP);
      await lens(workbench, "Make distributed").waitFor();
      await resizePanel(workbench, 110);
      await workbench.placeCursor(MIDDLE);
      await lens(workbench, /^2 warnings$/).waitFor();
      await workbench.picture("warnings", 1280);
      await resizePanel(workbench, 270);
      await workbench.press("Control+J");
    });

    it("shows the warnings from the line above a loop", async () => {
      await workbench.placeCursor(LOOP);
      await lens(workbench, /^2 warnings$/).click();
      await problemsShown(workbench);
      await workbench.problem("TF03");
      await workbench.press("Control+J");
    });

    it("says of a hint why, and how the line reads before and after", async () => {
      await workbench.placeCursor(OPTIMIZER);
      const at = workbench.page.locator(".view-line", { hasText: "optimizer = Adam" }).first();
      const start = at.locator("span span").first();
      const shown = await hover(workbench, start, "Scale the learning rate by the number of ranks");
      await shown.getByText("1e-3 * hvd.size()").first().waitFor();
      await workbench.screenshot("hint");
      await shown.locator("a", { hasText: "Explain HV02" }).click();
      await tab(workbench, "HV02").waitFor();
      await workbench.runCommand("View: Close Editor");
    });

    it("converts a statement, and undoes that", async () => {
      const wanted = await converted(workbench.workspace, "train.py", "--at", String(OPTIMIZER));
      await workbench.placeCursor(OPTIMIZER);
      await workbench.press("Control+.");
      await workbench.page
        .locator(".action-widget .title", { hasText: "Make distributed" })
        .first()
        .waitFor();
      await workbench.screenshot("statement");
      await workbench.press("Escape");
      await workbench.quickFix(/^Trainshift: Make distributed: /);
      await workbench.waitForText(wanted);
      await workbench.press("Control+Z");
      await workbench.waitForText(TRAIN);
    });

    it("shows a preview from the line above a loop, and leaves all as it was", async () => {
      await workbench.placeCursor(LOOP);
      await lens(workbench, "Make distributed").click();
      await waitForPreview(workbench);
      await discard(workbench);
      await workbench.waitForText(TRAIN);
    });

    it("tells the training loops in the status bar", async () => {
      await hover(workbench, status(workbench, "GradientTape · 1 loop"), "changes would make this file");
      await workbench.screenshot("status");
      await status(workbench, "GradientTape · 1 loop").click();
      const rows = await choices(workbench);
      await workbench.screenshot("loops");
      assert.match(
        rows.join("\n"),
        /GradientTape loop.*Make Distributed.*Keras 2, because requirements\.txt:1 asks.*2 warnings/s,
      );
      await choose(workbench, "GradientTape loop");
      await status(workbench, `Ln ${String(LOOP)}, Col 1`).waitFor();
      await status(workbench, "GradientTape · 1 loop").click();
      await choose(workbench, "Make Distributed");
      await waitForPreview(workbench);
      await discard(workbench);
    });

    it("writes for the Keras that somebody chooses", async () => {
      const loops = status(workbench, "GradientTape · 1 loop");
      await loops.click();
      await choose(workbench, "Keras 2, because");
      await choose(workbench, /^Keras 3/);
      await hover(workbench, loops, "for Keras 3, as was chosen");
      await workbench.screenshot("keras");
      const settings = await readFile(join(workbench.workspace, ".vscode", "settings.json"), "utf8");
      assert.deepEqual(JSON.parse(settings), { "trainshift.keras": "3" });
      await workbench.runCommand("Trainshift: Choose Keras…");
      await choose(workbench, "Automatic");
      await hover(workbench, loops, "for Keras 2, because requirements.txt:1");
    });

    it("converts the file, after a preview", async () => {
      await workbench.press("Control+B");
      await workbench.runCommand("Trainshift: Make Distributed");
      await waitForPreview(workbench);
      for (const [rule, place] of [
        ["Imports Horovod, starts it and gives each rank its own GPU.HV01", /one GPU per rank\s*line 4/],
        ["Multiplies the learning rate by the number of ranks.HV02", /Scale the learning rate.*line 12/s],
      ] as const) {
        await change(workbench, rule).waitFor();
        await change(workbench, place).waitFor();
      }
      await workbench.screenshot("preview, wide");
      await workbench.picture("preview", 900);
      await change(workbench, /^Apply \d+ Changes/).click();
      const toast = await workbench.toast(/train\.py is distributed: \d+ changes/);
      await workbench.screenshot("converted");
      await toast.locator(".monaco-button", { hasText: "Summary" }).click();
      await page(workbench).locator("h1", { hasText: "train.py" }).waitFor();
      await page(workbench).locator("h2", { hasText: "Changed" }).waitFor();
      await page(workbench).locator("h2", { hasText: "Still warns" }).waitFor();
      for (const text of ["Run With Horovod…", "Prove With Two Ranks…"]) {
        await page(workbench).locator("a.button", { hasText: text }).waitFor();
      }
      await workbench.screenshot("summary");
      // Lines are those of the new file, and codes link to their pages.
      const line = whole.split("\n").findIndex((each) => each.includes("DistributedGradientTape")) + 1;
      const averaged = page(workbench).locator("li", { hasText: "HV04" });
      await averaged.locator("a", { hasText: `line ${String(line)}` }).click();
      await status(workbench, `Ln ${String(line)}, Col 1`).waitFor();
      await workbench.runCommand("Trainshift: Show Summary");
      await averaged.locator("a", { hasText: "HV04" }).click();
      await tab(workbench, "HV04").waitFor();
      await workbench.openFile("train.py");
      await workbench.waitForText(whole);
      assert.equal(await workbench.savedText("train.py"), whole);
      await workbench.page.locator(".part.statusbar .codicon-check").waitFor();
    });

    it("says why a line of a converted script is there", async () => {
      const line = whole.split("\n").findIndex((each) => each.includes("DistributedGradientTape")) + 1;
      await workbench.placeCursor(line, 18);
      const call = workbench.page
        .locator(".view-line span span", { hasText: /DistributedGradientTape/ })
        .last();
      await hover(workbench, call, "hvd.DistributedGradientTape");
      await workbench.screenshot("reason");
    });

    it("undoes a conversion that was saved", async () => {
      await workbench.focusEditor();
      await workbench.press("Control+Z");
      await workbench.waitForText(TRAIN);
      await workbench.placeCursor(LOOP);
      await lens(workbench, "Make distributed").waitFor();
      await workbench.screenshot("undo");
      assert.equal(await workbench.savedText("train.py"), TRAIN);
      assert.equal(await readFile(join(workbench.workspace, "train.py"), "utf8"), TRAIN);
    });

    it("tells the server's state", async () => {
      const item = workbench.page.locator(".part.statusbar #status\\.languageStatus");
      const shown = await hover(workbench, item, /Trainshift: Ready/);
      await shown.locator("a", { hasText: "Show Logs" }).waitFor();
      await workbench.screenshot("server");
      await clearToasts(workbench);
    });
  },
};
