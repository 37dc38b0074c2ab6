import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as vscode from "vscode";
import { convertedProgram, NAMES, PROGRAM } from "../../harness/program";
import { until } from "../../harness/until";
import {
  action,
  apply,
  codeOf,
  comesTo,
  decide,
  hints,
  path,
  placeOf,
  preview,
  previews,
  replace,
  show,
  uri,
  type Part,
} from "../support";

const WHOLE = "train.py and 2 more files";
/** The converted files of a folder's program, or of its statement at a line, by file name. */
function wanted(folder: string, name = "train.py", line = 0): Promise<Record<string, string>> {
  return convertedProgram(path(folder), name, line);
}

/** The texts that VS Code has for the files of a folder, open or not. */
async function texts(folder: string): Promise<Record<string, string>> {
  const documents = NAMES.map((name) => vscode.workspace.openTextDocument(uri(`${folder}/${name}`)));
  const read = await Promise.all(documents);
  return Object.fromEntries(NAMES.map((name, index) => [name, read[index]?.getText() ?? ""]));
}

const COPIES = ["apply", "discard", "edited", "module", "statement"];

export const part: Part = {
  files: Object.fromEntries([
    ...COPIES.flatMap((copy) => NAMES.map((name) => [`${copy}/${name}`, PROGRAM[name] ?? ""])),
    ...COPIES.map((copy) => [`${copy}/trainshift.toml`, ""]),
  ]) as Record<string, string>,
  tests() {
    afterEach(async () => {
      await vscode.commands.executeCommand("notifications.clearAll");
    });

    it("shows the conversion of all files and applies it at once", async () => {
      await show("apply/train.py");
      await preview(WHOLE);
      const [tab] = previews();
      assert.equal(tab?.label, `${WHOLE} ↔ made distributed (3 files)`);
      assert.deepEqual(await texts("apply"), PROGRAM);
      const after = await wanted("apply");
      await decide("applyPreview");
      await comesTo("all files are converted", () => texts("apply"), after);
      assert.equal(await readFile(path("apply/model.py"), "utf8"), PROGRAM["model.py"]);
      for (const name of NAMES) {
        const document = await vscode.workspace.openTextDocument(uri(`apply/${name}`));
        assert.ok(await document.save());
      }
      assert.equal(await readFile(path("apply/model.py"), "utf8"), after["model.py"]);
      assert.equal(await readFile(path("apply/steps.py"), "utf8"), after["steps.py"]);
    });

    it("changes no file where the conversion is discarded", async () => {
      await show("discard/train.py");
      const { ended } = await preview(WHOLE);
      await decide("discardPreview");
      await ended;
      assert.deepEqual(await texts("discard"), PROGRAM);
    });

    it("converts the program from one of its modules, which shows its own part", async () => {
      const document = await show("module/steps.py");
      await comesTo(
        "its part is shown",
        () => hints(document).map((each) => `${codeOf(each)} ${each.range.start.line}`),
        ["HV01 2", "HV04 6", "HV05 9"],
      );
      const after = await wanted("module");
      await preview(WHOLE);
      await decide("applyPreview");
      await comesTo("all files are converted", () => texts("module"), after);
    });

    it("overwrites nothing where one of the files was edited meanwhile", async () => {
      await show("edited/train.py");
      await preview(WHOLE);
      const model = await vscode.workspace.openTextDocument(uri("edited/model.py"));
      await replace(model, "rate=0.001", "rate=0.002");
      await decide("applyPreview");
      const model2 = PROGRAM["model.py"]?.replace("rate=0.001", "rate=0.002");
      // The next request is answered only after that, and counts unsaved files.
      await show("edited/train.py");
      await preview(WHOLE);
      assert.deepEqual(await texts("edited"), { ...PROGRAM, "model.py": model2 });
      await decide("applyPreview");
      const after = await wanted("edited");
      const model3 = after["model.py"]?.replace("rate=0.001", "rate=0.002");
      await comesTo("all files are converted", () => texts("edited"), { ...after, "model.py": model3 });
    });

    it("converts a statement with what it needs in other files", async () => {
      const document = await show("statement/steps.py");
      await until("the file was read", () => hints(document).length > 0);
      const place = placeOf(document, "with tf.GradientTape()");
      const range = new vscode.Range(place, place);
      const chosen = await action(document, range, "Trainshift: Make distributed: ", "refactor.rewrite");
      const after = await wanted("statement", "steps.py", place.line + 1);
      await apply(chosen);
      await comesTo("the statement is converted", () => texts("statement"), after);
      assert.notEqual(after["train.py"], PROGRAM["train.py"]);
    });
  },
};
