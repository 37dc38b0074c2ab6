import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as vscode from "vscode";
import { fixture, PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import { until } from "../harness/until";
import { imported, INTRUDERS } from "./intruders";
import {
  action,
  ALIAS,
  codes,
  comesTo,
  configure,
  environment,
  execute,
  findings,
  hints,
  INTERPRETER,
  lenses,
  newServer,
  OTHER_PYTHON,
  path,
  replace,
  reports,
  servers,
  show,
} from "./support";

const TOO_OLD = `#!/bin/sh
echo '{"executable": "/opt/old/python", "version": [3, 8, 1]}'
`;
/** After more crashes than this in a short time, the server is not restarted. */
const MOST_CRASHES = 4;

/** The interpreters that cannot run the server, and the message for each. */
const USELESS: [what: string, file: string, state: RegExp][] = [
  ["is not there", "nowhere/python", /^No Python: .*nowhere\/python .*ENOENT/],
  ["is too old", "old/python", /^Python 3\.8\.1 is too old: .* needs 3\.10 or later/],
];

/** The server's state names the interpreter of the setting, and it answers. */
async function works(): Promise<void> {
  const { Interpreter, Server } = await reports("State", /^Ready/);
  assert.equal(Interpreter, `${PYTHON} (the setting trainshift.interpreter)`);
  assert.match(Server ?? "", /^\d+\.\d+\.\d+/);
  const document = await show("alias.py");
  await comesTo("the violation is reported", () => codes(document), ["TF03"]);
}

export const suites: HostSuite[] = [
  {
    name: "server",
    workspace: {
      "alias.py": ALIAS,
      "broken.py": "import tensorflow as tf\nprint((\n",
      "old/python": TOO_OLD,
      "other/python": OTHER_PYTHON,
      "train.py": fixture("scripts/mnist_tape/before.py"),
      ...INTRUDERS,
    },
    open: "alias.py",
    settings: INTERPRETER,
    tests() {
      it("marks statements unless hints are off", async () => {
        const document = await show("train.py");
        await until("there are hints", () => hints(document).length > 0);
        await configure("hints", false);
        await until("there are none", () => hints(document).length === 0);
        assert.ok(findings(document).length > 0);
        await configure("hints", undefined);
        await until("there are hints again", () => hints(document).length > 0);
      });

      it("takes over the severity of a code", async () => {
        const document = await show("alias.py");
        const severities = (): vscode.DiagnosticSeverity[] =>
          findings(document).map(({ severity }) => severity);
        const { Error, Warning } = vscode.DiagnosticSeverity;
        await until("a warning is shown", () => severities().includes(Warning));
        await configure("severity", { TF03: "error" });
        await until("an error is shown", () => severities().includes(Error));
        assert.ok(!severities().includes(Warning));
        await configure("severity", undefined);
        await until("a warning is shown again", () => severities().includes(Warning));
      });

      it("shows syntax errors, as no other extension does, unless they are off", async () => {
        const document = await show("broken.py");
        await comesTo("the error is shown", () => codes(document), ["TS00"]);
        for (const [key, value] of [
          ["syntaxErrors", false],
          ["severity", { TS00: "off" }],
          ["severity", { TS: "off" }],
        ] as const) {
          await configure(key, value);
          await comesTo("it is not shown", () => codes(document), []);
          await configure(key, undefined);
          await comesTo("it is shown again", () => codes(document), ["TS00"]);
        }
      });

      it("shows lenses unless they are off", async () => {
        const document = await show("train.py");
        await until("there is a lens", async () => (await lenses(document)).length > 0);
        await configure("codeLens", false);
        await until("there is none", async () => (await lenses(document)).length === 0);
        await configure("codeLens", undefined);
        await until("there is a lens again", async () => (await lenses(document)).length > 0);
      });

      it("is turned off and on", async () => {
        const document = await show("alias.py");
        await comesTo("the violation is reported", () => codes(document), ["TF03"]);
        await configure("enable", false);
        await comesTo("nothing is reported", () => findings(document), []);
        await comesTo("no server runs", servers, []);
        const { Server, State } = await environment();
        assert.equal(State, "Turned off by the setting trainshift.enable");
        assert.equal(Server, "not running");
        await configure("enable", undefined);
        await works();
      });

      it("starts the server anew with other arguments and another interpreter", async () => {
        const [before] = await servers();
        await configure("args", ["--log-file", path("server.log")]);
        const second = await newServer(before);
        await until("the log is written", () => existsSync(path("server.log")));
        await configure("interpreter", ["${workspaceFolder}/other/python"]);
        await newServer(second);
        const { Interpreter } = await reports("State", /^Ready/);
        assert.equal(Interpreter, `${path("other/python")} (the setting trainshift.interpreter)`);
        await comesTo("one server runs", async () => (await servers()).length, 1);
        await configure("args", undefined);
        await configure("interpreter", undefined);
        await reports("Interpreter", /^(?!.*other)/);
        await works();
      });

      for (const [what, file, state] of USELESS) {
        it(`tells of an interpreter that ${what}, and goes on with another one`, async () => {
          await configure("interpreter", [path(file)]);
          const { Interpreter, Server } = await reports("State", state);
          assert.equal(Interpreter, `${path(file)} (the setting trainshift.interpreter)`);
          assert.equal(Server, "not running");
          assert.deepEqual(await servers(), []);
          await configure("interpreter", undefined);
          await works();
        });
      }

      it("takes a setting that is a text for a list of one", async () => {
        await configure("interpreter", "${workspaceFolder}/other/python");
        const { Interpreter } = await reports("Interpreter", /other/);
        assert.equal(Interpreter, `${path("other/python")} (the setting trainshift.interpreter)`);
        await reports("State", /^Ready/);
        await configure("interpreter", undefined);
        await works();
      });

      it("tells of a server that ends at once, and tries no further", async () => {
        const [before] = await servers();
        await configure("args", ["--no-such-option"]);
        await reports("State", /^Could not be started: .* could not be started/);
        await until("the old server has ended", async () => !(await servers()).includes(before ?? 0));
        // A crash would be followed by a restart.
        await vscode.commands.executeCommand("trainshift.restart");
        const { State } = await environment();
        assert.match(State ?? "", /^Could not be started/);
        await configure("args", undefined);
        await works();
      });

      it("ends a server that does not end by itself", async () => {
        const [before] = await servers();
        assert.ok(before);
        process.kill(before, "SIGSTOP");
        await vscode.commands.executeCommand("trainshift.restart");
        await until("the old server has ended", async () => !(await servers()).includes(before));
        await works();
      });

      it("imports nothing of the workspace", async () => {
        // Otherwise the intruders would have no effect.
        await assert.rejects(execute(PYTHON, ["-m", "trainshift.lsp"], { cwd: path() }));
        assert.deepEqual(await imported(), ["trainshift"]);
        await vscode.workspace.fs.delete(vscode.Uri.file(path("imported")), { recursive: true });
        await vscode.commands.executeCommand("trainshift.restart");
        await works();
        assert.deepEqual(await imported(), []);
      });

      it("works again after a crash", async () => {
        const document = await show("alias.py");
        const [before] = await servers();
        assert.ok(before);
        process.kill(before, "SIGKILL");
        await newServer(before);
        await replace(document, "Adam = tf", "Best = tf");
        await replace(document, "= Adam(", "= Best(");
        await until("the violation is reported anew", () =>
          findings(document).some(({ message }) => message.startsWith("Best is another name")),
        );
        const range = new vscode.Range(2, 0, 2, 0);
        await action(document, range, "Trainshift: Write tf.keras.optimizers.Adam instead of Best");
      });

      it("stays down after many crashes, until it is restarted", async () => {
        let last: number | undefined;
        for (let crash = 2; crash <= MOST_CRASHES + 1; crash += 1) {
          last = await newServer(last);
          await reports("State", /^Ready/);
          process.kill(last, "SIGKILL");
        }
        await reports("State", /^Crashed: .* ended unexpectedly 5 times in 3 minutes/);
        assert.deepEqual(await servers(), []);
        await vscode.commands.executeCommand("trainshift.restart");
        await reports("State", /^Ready/);
        assert.equal((await servers()).length, 1);
      });
    },
  },
];
