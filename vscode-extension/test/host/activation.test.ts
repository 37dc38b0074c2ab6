import assert from "node:assert/strict";
import * as vscode from "vscode";
import { fixture, PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import { until } from "../harness/until";

export const suites: HostSuite[] = [
  {
    name: "activation",
    workspace: { "train.py": fixture("scripts/mnist_tape/before.py") },
    open: "train.py",
    settings: { "trainshift.interpreter": [PYTHON] },
    tests() {
      it("finds the extension installed", () => {
        assert.ok(vscode.extensions.getExtension("trainshift.trainshift"));
      });

      it("is active once a Python file is open", async () => {
        await until(
          "the extension is active",
          () => vscode.extensions.getExtension("trainshift.trainshift")?.isActive,
        );
      });
    },
  },
];
