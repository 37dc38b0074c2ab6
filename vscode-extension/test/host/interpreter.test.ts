import assert from "node:assert/strict";
import * as vscode from "vscode";
import { PYTHON } from "../harness/paths";
import type { HostSuite } from "../harness/suite";
import {
  ALIAS,
  codes,
  comesTo,
  configure,
  environment,
  FAKES,
  newServer,
  OTHER_PYTHON,
  OWN_PATH,
  path,
  reports,
  servers,
  show,
} from "./support";

/** Wait until the server runs in this interpreter and answers. */
async function runsIn(interpreter: string): Promise<void> {
  await comesTo("that is the interpreter", async () => (await environment()).Interpreter, interpreter);
  await reports("State", /^Ready/);
  await comesTo("one server runs", async () => (await servers()).length, 1);
  await comesTo("it reports", async () => codes(await show("alias.py")), ["TF03"]);
}

/** Select an environment in a Python extension; none without a name. */
async function select(extension: "fakeEnvironments" | "fakePython", ...command: string[]): Promise<void> {
  await vscode.commands.executeCommand(`${extension}.select`, ...command);
}

export const suites: HostSuite[] = [
  {
    name: "interpreter",
    workspace: {
      "alias.py": ALIAS,
      "broken.py": `${ALIAS}print((\n`,
      "bin/python3": OTHER_PYTHON,
      "chosen/python": OTHER_PYTHON,
      "first/python": OTHER_PYTHON,
      "second/python": OTHER_PYTHON,
    },
    open: "alias.py",
    env: OWN_PATH,
    extensions: FAKES,
    tests() {
      it("is python3 on the PATH where nothing is selected", async () => {
        await runsIn("python3 (python3 on the PATH)");
      });

      it("leaves syntax errors to the Python extension, unless told otherwise", async () => {
        const document = await show("broken.py");
        await configure("syntaxErrors", true);
        await comesTo("the error is shown", () => codes(document), ["TS00"]);
        await configure("syntaxErrors", undefined);
        await comesTo("it is not shown", () => codes(document), []);
        await configure("severity", { TS: "warning" });
        await comesTo("it is shown again", () => codes(document), ["TS00"]);
        await configure("severity", undefined);
        await comesTo("it is not shown", () => codes(document), []);
      });

      it("is what the Python extension selects, and follows it", async () => {
        await select("fakePython", path("first/python"));
        await runsIn(`${path("first/python")} (the Python extension)`);
        const [before] = await servers();
        await select("fakePython", path("second/python"));
        await newServer(before);
        await runsIn(`${path("second/python")} (the Python extension)`);
      });

      it("is rather what the Python Environments extension selects, and follows it", async () => {
        await select("fakeEnvironments", path("first/python"), "-I");
        await runsIn(`${path("first/python")} -I (the Python Environments extension)`);
        await select("fakeEnvironments", path("bin/python3"));
        await runsIn(`${path("bin/python3")} (the Python Environments extension)`);
      });

      it("is rather what the setting names", async () => {
        await configure("interpreter", ["${workspaceFolder}/chosen/python", "-I"]);
        await runsIn(`${path("chosen/python")} -I (the setting trainshift.interpreter)`);
        await configure("interpreter", undefined);
        await runsIn(`${path("bin/python3")} (the Python Environments extension)`);
      });

      it("is found further down where a selection is taken back", async () => {
        await select("fakeEnvironments");
        await runsIn(`${path("second/python")} (the Python extension)`);
        await select("fakePython");
        await runsIn("python3 (python3 on the PATH)");
      });

      it("has settings that say where it is in the words of VS Code", async () => {
        await configure("interpreter", ["${env:TRAINSHIFT_TEST_HERE}/chosen/python"]);
        await reports("State", /^No Python/);
        process.env.TRAINSHIFT_TEST_HERE = path();
        await vscode.commands.executeCommand("trainshift.restart");
        await runsIn(`${path("chosen/python")} (the setting trainshift.interpreter)`);
        assert.notEqual(path("chosen/python"), PYTHON);
        await configure("interpreter", undefined);
      });
    },
  },
];
