import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { until } from "../harness/until";
import { DATA, TRAIN } from "./project/files";
import { tab } from "./window";

const SPY = `#!/bin/sh
touch "$(dirname "$0")/used"
exec "${PYTHON}" "$@"
`;

export const suites: UiSuite[] = [
  {
    name: "trust",
    workspace: {
      "train.py": TRAIN,
      "data.py": DATA,
      python: SPY,
      ".vscode/settings.json": JSON.stringify({ "trainshift.interpreter": ["${workspaceFolder}/python"] }),
    },
    open: "train.py",
    settings: { "trainshift.interpreter": [PYTHON] },
    trusted: false,
    tests(workbench) {
      const used = join(workbench.workspace, "used");

      it("checks what is not trusted, with nothing of the workspace's", async () => {
        await workbench.waitForSquiggle();
        await workbench.page.locator(".part.statusbar", { hasText: "Restricted Mode" }).waitFor();
        assert.ok(!existsSync(used));
      });

      it("runs nothing that is not trusted", async () => {
        await workbench.press("F1");
        await workbench.page.locator(".quick-input-widget input[type=text]").fill(">Trainshift:");
        const rows = workbench.page.locator(".quick-input-widget .monaco-list-row");
        await rows.filter({ hasText: "Trainshift: Make Distributed" }).waitFor();
        await workbench.screenshot("restricted");
        assert.equal(await rows.filter({ hasText: /Run With Horovod|Prove With/ }).count(), 0);
        await workbench.press("Escape");
      });

      it("takes the workspace's interpreter once that is trusted", async () => {
        await workbench.runCommand("Workspaces: Manage Workspace Trust");
        await tab(workbench, "Workspace Trust").waitFor();
        await workbench.screenshot("trust");
        await workbench.page
          .locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ })
          .click();
        await until("the workspace's interpreter is used", () => existsSync(used));
        await workbench.openFile("train.py");
        await workbench.waitForSquiggle();
      });
    },
  },
];
