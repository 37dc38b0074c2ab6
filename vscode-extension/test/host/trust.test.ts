import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as vscode from "vscode";
import { fixture, PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import { imported, INTRUDERS } from "./intruders";
import {
  action,
  ALIAS,
  apply,
  codes,
  comesTo,
  converted,
  decide,
  decoded,
  distribution,
  FAKES,
  OWN_PATH,
  path,
  placeOf,
  preview,
  reports,
  show,
  told,
} from "./support";

/** A program that leaves a file beside itself. */
const TRAP = `#!/bin/sh\ntouch "$0.was-run"\nexec python3 "$@"\n`;
const TRAPS = ["named/python", "selected/python", "bin/horovodrun"];

/** The tests' interpreter, which seems to have everything that Horovod needs. */
const TRAINING_PYTHON = `#!/bin/sh\nPYTHONPATH="$(dirname "$0")/../packages" exec '${PYTHON}' "$@"\n`;

export const suites: HostSuite[] = [
  {
    name: "trust",
    workspace: {
      ".vscode/settings.json": JSON.stringify({
        "trainshift.args": ["--log-file", "server.log", "--no-such-argument"],
        "trainshift.interpreter": ["${workspaceFolder}/named/python"],
        "trainshift.severity": { TF03: "error" },
      }),
      "alias.py": ALIAS,
      "bin/python3": TRAINING_PYTHON,
      "distributed.py": fixture("scripts/mnist_tape/after.py"),
      "train.py": fixture("scripts/mnist_tape/before.py"),
      ...distribution("horovod", "0.28.1"),
      ...distribution("tensorflow", "2.15.0"),
      ...INTRUDERS,
      ...Object.fromEntries(TRAPS.map((name) => [name, TRAP])),
    },
    open: "alias.py",
    env: OWN_PATH,
    extensions: FAKES,
    trusted: false,
    tests() {
      after(async () => {
        assert.deepEqual(
          TRAPS.filter((name) => existsSync(path(`${name}.was-run`))),
          [],
        );
        assert.deepEqual(await imported(), []);
      });

      it("uses no interpreter that the workspace names", async () => {
        assert.ok(!vscode.workspace.isTrusted);
        const { Interpreter, Workspace } = await reports("State", /^Ready/);
        assert.equal(Interpreter, "python3 (python3 on the PATH)");
        assert.equal(Workspace, "1 folder, not trusted");
      });

      it("reports as the workspace's harmless settings say", async () => {
        const document = await show("alias.py");
        await comesTo("the violation is reported", () => codes(document), ["TF03"]);
        const [{ severity }] = vscode.languages.getDiagnostics(document.uri) as [vscode.Diagnostic];
        assert.equal(severity, vscode.DiagnosticSeverity.Error);
        const range = new vscode.Range(2, 0, 2, 0);
        await apply(
          await action(document, range, "Trainshift: Write tf.keras.optimizers.Adam instead of Adam"),
        );
        assert.equal(placeOf(document, "tf.keras.optimizers.Adam(1e-3)").line, 2);
      });

      it("converts", async () => {
        const document = await show("train.py");
        await preview("train.py");
        await decide("applyPreview");
        const wanted = decoded(await converted("train.py"));
        await comesTo("the file is converted", () => document.getText(), wanted);
      });

      it("uses no environment that was selected", async () => {
        for (const extension of ["fakeEnvironments", "fakePython"]) {
          await vscode.commands.executeCommand(`${extension}.select`, path("selected/python"));
        }
        await vscode.commands.executeCommand("trainshift.restart");
        const { Interpreter } = await reports("State", /^Ready/);
        assert.equal(Interpreter, "python3 (python3 on the PATH)");
      });

      it("runs nothing with Horovod", async () => {
        await show("distributed.py");
        // With trust, it would ask for the number of processes, and not end.
        await told("trainshift.runWithHorovod");
        await told("trainshift.prove");
        assert.equal(vscode.window.terminals.length, 0);
      });
    },
  },
];
