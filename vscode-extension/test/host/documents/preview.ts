import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as vscode from "vscode";
import { fixture } from "../../harness/paths";
import { REFUSED } from "../../harness/scripts";
import { until } from "../../harness/until";
import {
  comesTo,
  converted,
  decide,
  decoded,
  findings,
  path,
  placeOf,
  preview,
  previews,
  replace,
  show,
  told,
  uri,
  type Part,
} from "../support";

const SCRIPT = fixture("scripts/mnist_tape/before.py");
const OTHER = fixture("scripts/keras_mnist_callbacks/before.py");

/** The documents that the previews show. */
function texts(): string[] {
  return previews().map(({ input }) =>
    input instanceof vscode.TabInputTextDiff ? input.modified.toString() : "",
  );
}

export const part: Part = {
  files: {
    "apply.py": SCRIPT,
    "discard.py": SCRIPT,
    "distributed.py": fixture("scripts/mnist_tape/after.py"),
    "edited.py": SCRIPT,
    "first.py": SCRIPT,
    "refused.py": REFUSED,
    "second.py": OTHER,
    "stale.py": SCRIPT,
    "statement.py": SCRIPT,
    "twice.py": SCRIPT,
  },
  tests() {
    afterEach(async () => {
      await vscode.commands.executeCommand("notifications.clearAll");
    });

    it("shows the conversion of the file in front and applies it", async () => {
      const document = await show("apply.py");
      await preview("apply.py");
      const wanted = decoded(await converted("apply.py"));
      const [tab] = previews();
      assert.ok(tab?.input instanceof vscode.TabInputTextDiff);
      assert.equal(tab.input.original.toString(), document.uri.toString());
      const shown = await vscode.workspace.openTextDocument(tab.input.modified);
      assert.equal(shown.getText(), wanted);
      assert.equal(document.getText(), SCRIPT);
      await decide("applyPreview");
      await comesTo("the file is converted", () => document.getText(), wanted);
      assert.ok(document.isDirty);
      assert.equal(await readFile(path("apply.py"), "utf8"), SCRIPT);
      await show("apply.py");
      await vscode.commands.executeCommand("undo");
      assert.equal(document.getText(), SCRIPT);
    });

    it("changes nothing where the conversion is discarded", async () => {
      const document = await show("discard.py");
      const { ended } = await preview("discard.py");
      await decide("discardPreview");
      await ended;
      assert.equal(document.getText(), SCRIPT);
      assert.ok(!document.isDirty);
    });

    it("changes nothing where the preview is closed, and can be asked again", async () => {
      const document = await show("discard.py");
      const { ended } = await preview("discard.py");
      await vscode.window.tabGroups.close(previews());
      await ended;
      await vscode.commands.executeCommand("trainshift.applyPreview");
      assert.equal(document.getText(), SCRIPT);
      await show("discard.py");
      await preview("discard.py");
      await decide("applyPreview");
      await until("the file is converted", () => document.getText() !== SCRIPT);
    });

    it("shows one preview at a time", async () => {
      const first = await show("first.py");
      await preview("first.py");
      await preview("second.py", uri("second.py"));
      await until("the first preview is closed", () => previews().length === 1);
      await decide("applyPreview");
      const second = await vscode.workspace.openTextDocument(uri("second.py"));
      const wanted = decoded(await converted("second.py"));
      await comesTo("the second file is converted", () => second.getText(), wanted);
      assert.equal(first.getText(), SCRIPT);
    });

    it("shows the preview anew where the same file is asked for again", async () => {
      const document = await show("twice.py");
      await preview("twice.py");
      const [before] = texts();
      void vscode.commands.executeCommand("trainshift.makeDistributed", document.uri);
      await until("the preview is another one", () => texts().length === 1 && texts()[0] !== before);
      await decide("applyPreview");
      const wanted = decoded(await converted("twice.py"));
      await comesTo("the file is converted", () => document.getText(), wanted);
    });

    it("does not overwrite what was typed meanwhile", async () => {
      const document = await show("edited.py");
      await preview("edited.py");
      await replace(document, "STEPS = 40", "STEPS = 41");
      await decide("applyPreview");
      // The next request is answered only after that.
      await show("edited.py");
      await preview("edited.py");
      assert.equal(document.getText(), SCRIPT.replace("STEPS = 40", "STEPS = 41"));
      await decide("discardPreview");
    });

    it("shows what it would do now, once a file has changed", async () => {
      const document = await show("stale.py");
      await preview("stale.py");
      const [tab] = previews();
      assert.ok(tab?.input instanceof vscode.TabInputTextDiff);
      const after = await vscode.workspace.openTextDocument(tab.input.modified);
      const before = after.getText();
      await replace(document, "STEPS = 40", "STEPS = 41\nmore = 1");
      await until("the preview is another one", () => after.getText() !== before);
      await decide("applyPreview");
      await until("the file is converted", () => document.getText() === after.getText());
      await document.save();
      assert.match(document.getText(), /STEPS = 41\nmore = 1\n[^]*hvd\.DistributedGradientTape/);
      assert.equal(document.getText().includes("STEPS = 40"), false);
    });

    for (const name of ["refused.py", "distributed.py"]) {
      it(`shows no preview of ${name}`, async () => {
        const opened: string[] = [];
        const watch = vscode.window.tabGroups.onDidChangeTabs((event) => {
          opened.push(...event.opened.map(({ label }) => label));
        });
        const document = await show(name);
        const before = document.getText();
        await told("trainshift.makeDistributed", { uri: document.uri.toString() });
        watch.dispose();
        assert.deepEqual(
          opened.filter((label) => label !== name),
          [],
        );
        assert.equal(document.getText(), before);
        assert.ok(!document.isDirty);
      });
    }

    it("converts the statement at the cursor", async () => {
      const document = await show("statement.py");
      await until("the file was read", () => findings(document).length > 0);
      const place = placeOf(document, "optimizer = tf.keras");
      const editor = vscode.window.activeTextEditor;
      assert.equal(editor?.document, document);
      editor.selection = new vscode.Selection(place, place);
      await vscode.commands.executeCommand("trainshift.makeStatementDistributed");
      const wanted = decoded(await converted("statement.py", `--at=${place.line + 1}`));
      await comesTo("the statement is converted", () => document.getText(), wanted);
    });
  },
};
