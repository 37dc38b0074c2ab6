/** Messages for a newcomer: refusals, nothing to do, and preparations. */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import type { Workbench } from "../harness/browser";
import { fixture, PYTHON } from "../harness/paths";
import { REFUSED } from "../harness/scripts";
import type { UiSuite } from "../harness/suite";
import { until } from "../harness/until";
import { PROJECT } from "./project/files";
import {
  change,
  clearToasts,
  closeEditors,
  discard,
  page,
  resizePanel,
  status,
  tab,
  waitForPreview,
} from "./window";

const STRATEGY = 3;
const CONDITIONAL = `import sys

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
if len(sys.argv) > 1:
    optimizer = tf.keras.optimizers.SGD(0.1)
else:
    optimizer = tf.keras.optimizers.Adam(1e-3)
model.compile(optimizer, "mse")
model.fit(tf.ones([4, 1]), tf.ones([4, 1]))
`;
const [CREATED, COLUMN] = [7, 24];
/** A project that requires a TensorFlow with a different Keras than the one it chose. */
const TOO_NEW = {
  "new/fit.py": CONDITIONAL.replace("import sys", "import sys\nfrom pathlib import Path"),
  "new/requirements.txt": "numpy\ntensorflow==2.17.0\ntf-keras\n",
  "new/trainshift.toml": 'keras = "2"\n',
};
const [DEMAND, IMPORT] = [2, 4];
const BATCH_SIZE = 8;
/** A script distributed by hand, and a line with a mistake. */
const BY_HAND = fixture("readme/by_hand.py");
const BROKEN = BY_HAND.split("\n").findIndex((line) => line.includes("tape.gradient(")) + 1;

/** The open dialog, once it shows a text. */
async function dialog(workbench: Workbench, text: string | RegExp): Promise<Locator> {
  const shown = workbench.page.locator(".monaco-dialog-box", { hasText: text });
  await shown.waitFor();
  return shown;
}

export const suites: UiSuite[] = [
  {
    name: "newcomer",
    workspace: {
      ...PROJECT,
      "refused.py": REFUSED,
      "conditional.py": CONDITIONAL,
      "by_hand.py": BY_HAND,
      ...TOO_NEW,
    },
    open: "refused.py",
    settings: { "trainshift.interpreter": [PYTHON] },
    tests(workbench) {
      afterEach(async () => {
        await clearToasts(workbench);
        await closeEditors(workbench);
      });

      it("says why a file is refused, in full, and leads to the place and the page", async () => {
        await workbench.runCommand("Trainshift: Make Distributed");
        const shown = await dialog(workbench, "refused.py is not changed.");
        await shown
          .getByText("tf.distribute.TPUStrategy already distributes this script; remove the strategy")
          .waitFor();
        await workbench.screenshot("refused");
        await shown.locator(".monaco-button", { hasText: `Go to Line ${String(STRATEGY)}` }).click();
        await status(workbench, `Ln ${String(STRATEGY)}, Col 12`).waitFor();
        await workbench.runCommand("Trainshift: Make Distributed");
        const again = await dialog(workbench, "refused.py is not changed.");
        await again.locator(".monaco-button", { hasText: "Why?" }).click();
        await tab(workbench, "HV17").waitFor();
        await page(workbench).locator("h1", { hasText: "HV17" }).waitFor();
      });

      it("offers first what makes a place distributed, and last to ignore it", async () => {
        await workbench.openFile("conditional.py");
        await workbench.problem("TF07");
        await workbench.press("Control+J");
        await workbench.placeCursor(CREATED, COLUMN);
        await workbench.press("Control+.");
        await workbench.page.locator(".action-widget .title", { hasText: "Ignore TF07" }).waitFor();
        await workbench.screenshot("quick fixes");
        await workbench.press("Escape");
        const titles = await workbench.quickFixes();
        assert.match(titles[0] ?? "", /^Trainshift: Make distributed: scale/);
        assert.match(titles.at(-1) ?? "", /^Trainshift: Ignore TF07 on this line/);
      });

      it("finds what is wrong with a script that was distributed by hand, and fixes it", async () => {
        await workbench.openFile("by_hand.py");
        await workbench.problem("HZ");
        await workbench.screenshot("hazards");
        await workbench.press("Control+J");
        await workbench.placeCursor(BROKEN, 14);
        await workbench.press("Control+.");
        await workbench.page.locator(".action-widget .title", { hasText: "Trainshift: " }).first().waitFor();
        await workbench.screenshot("fix");
        await workbench.press("Escape");
        await workbench.quickFix("Trainshift: Average the gradients of tape over all ranks");
        await until("it is fixed", async () =>
          /tape = hvd\.DistributedGradientTape\(tape\)/.test(await workbench.editorText()),
        );
        await workbench.runCommand("File: Revert File");
      });

      it("tells at the import that the project asks for too new a version", async () => {
        await workbench.openFile("new/fit.py");
        const problem = await workbench.problem("requirements.txt asks for tensorflow 2.17.0");
        await problem.click();
        await workbench.screenshot("too new");
        await workbench.press("Control+J");
        await workbench.placeCursor(IMPORT, 3);
        await workbench.quickFix("Trainshift: Open requirements.txt");
        await tab(workbench, "requirements.txt").waitFor();
        await status(workbench, `Ln ${String(DEMAND)}, Col 1`).waitFor();
        await workbench.openFile("new/fit.py");
        await workbench.runCommand("Trainshift: Make Distributed");
        const shown = await dialog(workbench, "asks for tensorflow 2.17.0");
        assert.match(await shown.innerText(), /^new\/requirements\.txt:2 asks for/m);
        await workbench.screenshot("refused for its version");
        await shown.locator(".monaco-button", { hasText: "Open requirements.txt" }).waitFor();
        await shown.locator(".monaco-button", { hasText: "Convert Anyway" }).click();
        await waitForPreview(workbench);
        await discard(workbench);
      });

      it("leaves out a print, and nothing that others rely on", async () => {
        await workbench.openFile("train.py");
        await workbench.runCommand("Trainshift: Make Distributed");
        await waitForPreview(workbench);
        await resizePanel(workbench, 560);
        const box = ".custom-view-tree-node-item-checkbox";
        const print = change(workbench, /Print on rank 0 only\s*line 40/);
        await print.locator(box).click();
        await change(workbench, /^Apply 7 Changes/).waitFor();
        await workbench.screenshot("left out");
        for (const each of ["Average the gradients", "Broadcast the variables"]) {
          assert.equal(await change(workbench, each).locator(box).count(), 0);
        }
        await change(workbench, /^Apply 7 Changes/).click();
        await workbench.toast(/train\.py is distributed: 7 changes/);
        await workbench.openFile("train.py");
        const text = await workbench.editorText();
        assert.match(text, /\nprint\(f"\{time\.time\(\) - start/);
        assert.match(text, /DistributedGradientTape/);
        await workbench.runCommand("File: Revert File");
        await workbench.press("Control+J");
        await resizePanel(workbench, 270);
        await workbench.press("Control+J");
      });

      it("says that a statement has nothing to convert", async () => {
        await workbench.openFile("train.py");
        await workbench.placeCursor(BATCH_SIZE);
        await workbench.runCommand("Trainshift: Make Statement Distributed");
        const toast = await workbench.toast("Nothing to convert in this statement.");
        await workbench.screenshot("nothing to convert");
        assert.doesNotMatch(await toast.innerText(), /refactor/);
      });

      it("says in the status bar that the server is down, until it is there again", async () => {
        const folder = join(workbench.workspace, ".vscode");
        await mkdir(folder);
        const settings = { "trainshift.interpreter": ["${workspaceFolder}/nothing"] };
        await writeFile(join(folder, "settings.json"), JSON.stringify(settings));
        const down = status(workbench, "Trainshift: No Python");
        await down.waitFor();
        await workbench.screenshot("down");
        await writeFile(join(folder, "settings.json"), "{}");
        await down.waitFor({ state: "hidden" });
        await workbench.openFile("conditional.py");
        await workbench.waitForSquiggle();
      });
    },
  },
];
