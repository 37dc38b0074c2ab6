import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import type { Workbench } from "../../harness/browser";
import { until } from "../../harness/until";
import { clearToasts } from "../window";
import type { Part } from "./part";

const OURS = ["Make Distributed", "Make Statement Distributed"];

/** The entries of an element's context menu, by group. */
async function groups(workbench: Workbench, at: Locator): Promise<string[][]> {
  await at.click({ button: "right" });
  const menu = workbench.page.locator(".monaco-menu").last();
  await menu.waitFor();
  const rows = await menu
    .locator(".action-item")
    .evaluateAll((items) =>
      (items as { innerText: string; className: string; querySelector: (what: string) => unknown }[]).map(
        (item) => (item.querySelector(".separator") === null ? item.innerText.split("\n")[0]?.trim() : ""),
      ),
    );
  await workbench.press("Escape");
  await menu.waitFor({ state: "hidden" });
  const found: string[][] = [[]];
  for (const row of rows) {
    if (row) found.at(-1)?.push(row);
    else found.push([]);
  }
  return found;
}

/** Trainshift's group among those of a menu. */
function ours(all: string[][]): string[] | undefined {
  return all.find((group) => group.some((entry) => OURS.includes(entry)));
}

function inExplorer(workbench: Workbench, name: string): Locator {
  return workbench.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name });
}

export const menus: Part = {
  files: { "notes.py": "print('nothing to train')\n" },
  open: "train.py",
  tests(workbench) {
    it("has a group of its own in the explorer, for files with TensorFlow", async () => {
      await workbench.waitForSquiggle();
      await until("a file that was never opened is known", async () =>
        ours(await groups(workbench, inExplorer(workbench, "finetune.py"))),
      );
      for (const name of ["train.py", "data.py", "finetune.py"]) {
        assert.deepEqual(ours(await groups(workbench, inExplorer(workbench, name))), ["Make Distributed"]);
      }
      await inExplorer(workbench, "finetune.py").click({ button: "right" });
      await workbench.page.locator(".monaco-menu").last().waitFor();
      await workbench.screenshot("explorer menu");
      await workbench.press("Escape");
      for (const name of ["notes.py", "requirements.txt"]) {
        const all = await groups(workbench, inExplorer(workbench, name));
        assert.ok(all.flat().some((entry) => entry.startsWith("Delete")));
        assert.equal(ours(all), undefined);
      }
    });

    it("has one in the editor, as long as the text uses TensorFlow", async () => {
      const line = workbench.page.locator(".editor-instance .view-line").first();
      await workbench.openFile("train.py");
      await workbench.placeCursor(1);
      await until("it is there", async () => ours(await groups(workbench, line)));
      assert.deepEqual(ours(await groups(workbench, line)), OURS);
      await workbench.openFile("notes.py");
      assert.equal(ours(await groups(workbench, line)), undefined);
      await workbench.focusEditor();
      await workbench.page.keyboard.type("import tensorflow as tf\n");
      await until("it is there before the file is saved", async () => ours(await groups(workbench, line)));
      await workbench.runCommand("View: Revert and Close Editor");
      await clearToasts(workbench);
    });
  },
};
