import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { converted } from "../harness/tool";
import { until } from "../harness/until";
import { change, choose, closeEditors, status, waitForPreview } from "./window";

const CELLS = [
  "import tensorflow as tf",
  "Adam = tf.keras.optimizers.Adam\noptimizer = Adam(1e-3)",
  'model = tf.keras.Sequential([tf.keras.layers.Dense(10)])\nmodel.compile(optimizer=optimizer, loss="mse")',
  'model.fit(tf.ones([64, 4]), tf.ones([64, 10]), epochs=2)\nmodel.save("model.keras")',
];

interface Notebook {
  cells: { cell_type: string; source: string[] | string }[];
}

function notebookOf(cells: string[]): string {
  const code = cells.map((source, number) => ({
    cell_type: "code",
    execution_count: null,
    id: `cell-${String(number)}`,
    metadata: {},
    outputs: [],
    source: source.split(/(?<=\n)/),
  }));
  const title = { cell_type: "markdown", id: "title", metadata: {}, source: ["# Trains a small network"] };
  const metadata = { language_info: { name: "python" } };
  return JSON.stringify({ cells: [title, ...code], metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

function sources(text: string): string[] {
  const { cells } = JSON.parse(text) as Notebook;
  return cells
    .filter((cell) => cell.cell_type === "code")
    .map(({ source }) => (typeof source === "string" ? source : source.join("")));
}

export const suites: UiSuite[] = [
  {
    name: "notebook",
    workspace: { "train.ipynb": notebookOf(CELLS) },
    settings: { "trainshift.interpreter": [PYTHON] },
    tests(workbench) {
      const { page } = workbench;
      const path = join(workbench.workspace, "train.ipynb");

      it("marks violated restrictions in cells", async () => {
        const file = page.locator(".explorer-folders-view .monaco-list-row", { hasText: "train.ipynb" });
        const cells = page.locator(".notebook-editor .view-line");
        const json = page.locator(".part.statusbar").getByText("JSON");
        // Until VS Code knows about notebooks, it opens them as JSON.
        await until("it opens as a notebook", async () => {
          await file.dblclick();
          await until("it is open", async () => (await cells.count()) + (await json.count()) > 0);
          if ((await cells.count()) > 0) return true;
          await closeEditors(workbench);
          return false;
        });
        await workbench.waitForSquiggle();
        await workbench.screenshot("notebook");
      });

      it("converts a statement of a cell", async () => {
        await page.locator(".cell.code .view-line", { hasText: "optimizer = Adam" }).click();
        await workbench.quickFix(/^Trainshift: Make distributed: scale/);
        await page.locator(".cell.code .view-line", { hasText: "hvd.size()" }).waitFor();
        await workbench.screenshot("notebook statement");
        await workbench.press("Control+Z");
        await page.locator(".cell.code .view-line", { hasText: "hvd.size()" }).waitFor({ state: "hidden" });
      });

      it("goes to a loop that is chosen in the status bar", async () => {
        await page.locator(".cell.code .view-line", { hasText: "import tensorflow" }).click();
        await status(workbench, "Keras · 1 loop").click();
        await choose(workbench, "Keras loop");
        await page.locator(".cell.code .monaco-editor.focused", { hasText: "model.fit" }).waitFor();
        await workbench.screenshot("notebook loop");
        assert.equal(await page.getByText("Could NOT open editor").count(), 0);
      });

      it("converts all cells, after a preview", async () => {
        await workbench.runCommand("Trainshift: Make Distributed");
        await waitForPreview(workbench);
        await workbench.screenshot("notebook preview");
        await change(workbench, /^Apply/).click();
        await workbench.toast("train.ipynb is distributed");
        await workbench.screenshot("notebook converted");
        await workbench.runCommand("File: Save");
        await page.locator(".tabs-container .tab.active:not(.dirty)", { hasText: "train.ipynb" }).waitFor();
        await writeFile(join(workbench.workspace, "cells.ipynb"), notebookOf(CELLS));
        const wanted = await converted(workbench.workspace, "cells.ipynb");
        assert.deepEqual(sources(await readFile(path, "utf8")), sources(wanted));
      });
    },
  },
];
