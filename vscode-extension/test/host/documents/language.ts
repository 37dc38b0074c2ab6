import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import * as vscode from "vscode";
import { fixture } from "../../harness/paths";
import { until } from "../../harness/until";
import {
  action,
  ALIAS,
  apply,
  checked,
  codeOf,
  codes,
  comesTo,
  converted,
  decoded,
  findings,
  lenses,
  path,
  placeOf,
  replace,
  show,
  type Part,
} from "../support";

const WHOLE = ["dcgan", "crlf_tabs", "emoji_bom", "keras_mnist_callbacks"];
const WARNED = `import tensorflow as tf
text = "🎉"; Adam = tf.keras.optimizers.Adam
${fixture("scripts/keras_gan_train_step/before.py")}`;
const SOURCE = "source.makeDistributed.trainshift";

interface Checked {
  files: { diagnostics: { code: string; severity: string; line: number; column: number }[] }[];
}

export const part: Part = {
  files: {
    "alias.py": ALIAS,
    "saved.py": ALIAS,
    "clean.py": fixture("scripts/mnist_tape/before.py"),
    "train.py": fixture("scripts/mnist_tape/before.py"),
    "warned.py": WARNED,
    ...Object.fromEntries(WHOLE.map((name) => [`${name}.py`, fixture(`scripts/${name}/before.py`)])),
  },
  tests() {
    it("is active once a Python file is open, with all of its commands", async () => {
      const extension = vscode.extensions.getExtension("trainshift.trainshift");
      assert.ok(extension);
      await until("the extension is active", () => extension.isActive);
      const { contributes } = extension.packageJSON as {
        contributes: { commands: { command: string }[] };
      };
      const known = new Set(await vscode.commands.getCommands(true));
      const listed = contributes.commands.map(({ command }) => command);
      assert.ok(listed.length >= 10);
      assert.deepEqual(
        listed.filter((command) => !known.has(command)),
        [],
      );
    });

    it("says what the command line says, with links to pages", async () => {
      const document = await show("warned.py");
      const [file] = ((await checked("warned.py")) as Checked).files;
      const said = (file?.diagnostics ?? []).map(({ code, severity, line, column }) => {
        const before = [...document.lineAt(line - 1).text].slice(0, column - 1).join("");
        return [code, severity, line, before.length + 1].join(" ");
      });
      assert.ok(said.some((each) => each.startsWith("TF03 warning 2 14")));
      assert.ok(said.some((each) => each.startsWith("TF05 warning")));
      const shown = (): vscode.Diagnostic[] =>
        findings(document).filter((each) => !codeOf(each).startsWith("HV"));
      const listed = (): string[] =>
        shown().map((each) => {
          const { line, character } = each.range.start;
          const severity = vscode.DiagnosticSeverity[each.severity].toLowerCase();
          return [codeOf(each), severity, line + 1, character + 1].join(" ");
        });
      await comesTo("all is said", () => listed().sort(), said.sort());
      for (const { code } of shown()) {
        assert.ok(typeof code === "object");
        assert.ok(existsSync(code.target.fsPath), code.target.fsPath);
      }
    });

    it("says what changes as a person types", async () => {
      const document = await show("clean.py");
      const before = document.getText();
      await until("the file was read", () => findings(document).length > 0);
      assert.ok(!codes(document).includes("TF03"));
      await replace(document, "xent =", "Adam = tf.keras.optimizers.Adam\nxent =");
      await until("the violation is reported", () => codes(document).includes("TF03"));
      await vscode.commands.executeCommand("undo");
      assert.equal(document.getText(), before);
      await until("the violation is gone", () => !codes(document).includes("TF03"));
    });

    it("fixes a finding", async () => {
      const document = await show("alias.py");
      await comesTo("the violation is reported", () => codes(document), ["TF03"]);
      const [{ range }] = findings(document).filter((each) => codeOf(each) === "TF03") as [vscode.Diagnostic];
      const fix = await action(document, range, "Trainshift: Write tf.keras.optimizers.Adam instead of Adam");
      assert.equal(fix.kind?.value, vscode.CodeActionKind.QuickFix.value);
      await apply(fix);
      assert.equal(
        document.getText(),
        "import tensorflow as tf\n\noptimizer = tf.keras.optimizers.Adam(1e-3)\n",
      );
      await comesTo("nothing is reported", () => codes(document), []);
    });

    it("fixes what is found on save", async () => {
      const document = await show("saved.py");
      await comesTo("the violation is reported", () => codes(document), ["TF03"]);
      const settings = vscode.workspace.getConfiguration("editor");
      const onSave = { "source.fixAll.trainshift": "explicit" };
      await settings.update("codeActionsOnSave", onSave, vscode.ConfigurationTarget.Workspace);
      await replace(document, "Adam(1e-3)", "Adam(1e-4)");
      assert.ok(await document.save());
      const fixed = "import tensorflow as tf\n\noptimizer = tf.keras.optimizers.Adam(1e-4)\n";
      assert.equal(await readFile(path("saved.py"), "utf8"), fixed);
      await settings.update("codeActionsOnSave", undefined, vscode.ConfigurationTarget.Workspace);
    });

    it("converts a statement, which can be undone", async () => {
      const document = await show("train.py");
      const before = await readFile(path("train.py"));
      const place = placeOf(document, "optimizer = tf.keras");
      await apply(await action(document, new vscode.Range(place, place), "Trainshift: Make distributed: "));
      assert.equal(document.getText(), decoded(await converted("train.py", `--at=${place.line + 1}`)));
      assert.notEqual(document.getText(), decoded(before));
      await vscode.commands.executeCommand("undo");
      assert.equal(document.getText(), decoded(before));
    });

    for (const name of WHOLE) {
      it(`converts ${name} as the command line does`, async () => {
        const document = await show(`${name}.py`);
        const before = await readFile(path(`${name}.py`));
        const wanted = await converted(`${name}.py`);
        assert.notDeepEqual(before, wanted);
        const all = new vscode.Range(0, 0, document.lineCount, 0);
        await apply(await action(document, all, "Trainshift: Make distributed (whole file)", SOURCE));
        assert.equal(document.getText(), decoded(wanted));
        assert.ok(await document.save());
        assert.deepEqual(await readFile(path(`${name}.py`)), wanted);
        await vscode.commands.executeCommand("undo");
        assert.ok(await document.save());
        assert.deepEqual(await readFile(path(`${name}.py`)), before);
      });
    }

    it("has a lens above the training loop, which converts the file", async () => {
      const document = await show("train.py");
      await until("there is a lens", async () => (await lenses(document)).length > 0);
      const [lens] = await lenses(document);
      assert.equal(lens?.command?.title, "GradientTape loop · Make distributed");
      assert.equal(lens.command.command, "trainshift.makeDistributed");
      assert.deepEqual(lens.command.arguments, [{ uri: document.uri.toString() }]);
      assert.match(document.lineAt(lens.range.start.line).text, /^for images, labels in dataset/);
    });

    it("explains a finding where the mouse rests", async () => {
      const document = await show("warned.py");
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
        "vscode.executeHoverProvider",
        document.uri,
        placeOf(document, "Adam ="),
      );
      const texts = hovers.flatMap(({ contents }) =>
        contents.map((each) => (typeof each === "string" ? each : each.value)),
      );
      assert.match(texts.join("\n"), /TF03/);
    });
  },
};
