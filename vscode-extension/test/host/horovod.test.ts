import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import { fixture, PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import { until } from "../harness/until";
import { distribution, execute, path, replace, reports, show, told } from "./support";

const SCRIPT = "my scripts/train it.py";
/** A launcher that only reports its arguments. */
const LAUNCHER = `#!/bin/sh
printf '%s\\n' "$PWD" "$@" > "$0.called.part"
mv "$0.called.part" "$0.called"
`;

/** The package folder of an interpreter. */
async function packagesOf(python: string): Promise<string> {
  const code = "import sysconfig; print(sysconfig.get_path('purelib'))";
  return (await execute(python, ["-c", code])).stdout.trim();
}

/** The arguments and the folder of the launcher, once it was called. */
async function called(): Promise<string[]> {
  const text = await until("the launcher was called", () =>
    readFile(path("training/bin/horovodrun.called"), "utf8").catch(() => undefined),
  );
  return text.trimEnd().split("\n");
}

export const suites: HostSuite[] = [
  {
    name: "horovod",
    workspace: {
      "plain.txt": "",
      "training/bin/horovodrun": LAUNCHER,
      [SCRIPT]: fixture("scripts/mnist_tape/after.py"),
      ...distribution("tensorflow", "2.15.0"),
      ...distribution("horovod", "0.28.1"),
    },
    async prepare(workspace) {
      const training = join(workspace, "training");
      await execute(PYTHON, ["-m", "venv", "--without-pip", training]);
      const packages = await packagesOf(join(training, "bin", "python"));
      const listed = `${join(workspace, "packages")}\nimport site; site.addsitedir('${await packagesOf(PYTHON)}')\n`;
      await writeFile(join(packages, "test.pth"), listed);
    },
    open: SCRIPT,
    settings: { "trainshift.interpreter": ["<workspace>/training/bin/python"] },
    tests() {
      it("runs the script in front, saved, on two processes", async () => {
        const { Packages } = await reports("State", /^Ready/);
        assert.match(Packages ?? "", /\btensorflow 2\.15\.0, .*\bhorovod 0\.28\.1/);
        const document = await show(SCRIPT);
        await replace(document, "STEPS = 40", "STEPS = 44");
        let isAsked = false;
        const ask = async (): Promise<void> => {
          isAsked = true;
          await told("trainshift.runWithHorovod");
          isAsked = false;
        };
        const call = await until("the number of processes was accepted", async () => {
          // An input closes if the window takes the focus, and the user asks again.
          if (!isAsked) void ask();
          await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
          return document.isDirty ? undefined : called();
        });
        assert.deepEqual(call, [path(), "-np", "2", path("training/bin/python"), document.uri.fsPath]);
        assert.match(await readFile(path(SCRIPT), "utf8"), /^STEPS = 44$/m);
        await until("the run has ended", () => !isAsked);
      });

      it("runs nothing but a script", async () => {
        const before = vscode.window.terminals.length;
        await show("plain.txt");
        await told("trainshift.runWithHorovod");
        assert.equal(vscode.window.terminals.length, before);
      });
    },
  },
];
