import assert from "node:assert/strict";
import { settings } from "../../harness/paths";
import { until } from "../../harness/until";
import { choose, page, tab } from "../window";
import type { Part } from "./part";

/** The steps of the walkthrough with a picture, and the beginning of its alternative text. */
const PICTURES = {
  "Open a training script": "A training script with warnings",
  "Make it distributed": "The diff of a training script",
};

/** The width of a loaded picture. */
function widthOf(image: unknown): number {
  return (image as { naturalWidth: number }).naturalWidth;
}

export const welcome: Part = {
  files: {},
  open: "train.py",
  tests(workbench) {
    it("has a walkthrough of three steps", async () => {
      await workbench.runCommand("Welcome: Open Walkthrough...");
      await choose(workbench, "Make a training script distributed");
      const steps = workbench.page.locator(".gettingStartedContainer .getting-started-step");
      await until("three steps are shown", async () => (await steps.count()) === 3);
      await workbench.press("Control+B");
      for (const [number, [title, picture]] of Object.entries(PICTURES).entries()) {
        await steps.filter({ hasText: title }).click();
        const image = workbench.page.locator(`.getting-started-media img[alt^="${picture}"]`);
        await until("the picture is there", async () => (await image.evaluate(widthOf)) > 0);
        await workbench.screenshot(`step ${String(number + 1)}`);
      }
      await steps.filter({ hasText: "Run it on several processes" }).click();
      await page(workbench).locator("h3", { hasText: "What it takes" }).waitFor();
      await workbench.screenshot("step 3");
      await workbench.press("Control+B");
    });

    it("has settings that say what they are", async () => {
      await workbench.runCommand("Preferences: Open Settings (UI)");
      await tab(workbench, "Settings").waitFor();
      const search = workbench.page
        .locator(
          ".settings-editor .suggest-input-container .inputarea, .settings-editor .suggest-input-container textarea",
        )
        .first();
      await search.waitFor();
      await workbench.page.keyboard.type("@ext:trainshift.trainshift");
      const rows = workbench.page.locator(".settings-editor .settings-count-widget");
      await until("settings are counted", async () => /\d+ Settings Found/.test(await rows.innerText()));
      await workbench.screenshot("settings");
      assert.equal(await rows.innerText(), `${String(settings().length)} Settings Found`);
    });

    it("has a page among the extensions", async () => {
      await workbench.press("Control+Shift+X");
      const row = workbench.page
        .locator(".extensions-list .monaco-list-row", { hasText: "Trainshift" })
        .first();
      await row.click();
      await tab(workbench, "Extension: Trainshift").waitFor();
      await page(workbench).locator("h1", { hasText: "Trainshift for VS Code" }).waitFor();
      const images = page(workbench).locator("img[alt]");
      for (const number of [0, 1]) {
        await until("a picture is there", async () => (await images.nth(number).evaluate(widthOf)) > 600);
      }
      await workbench.screenshot("extension");
    });
  },
};
