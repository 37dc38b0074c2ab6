import assert from "node:assert/strict";
import * as vscode from "vscode";
import { inGraphCode } from "../../harness/tool";
import { until } from "../../harness/until";
import { comesTo, path, placeOf, show, type Part } from "../support";

const SCRIPT = `import paddle


@paddle.jit.to_static
def halve(x):
    # until it is small
    while x.max() > 1:
        x = x / 2
    return x


def double(x):
    if x.max() < 1:
        x = x * 2
    return x
`;

function tab(title: string): vscode.Tab | undefined {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.find(({ label }) => label === title);
}

/** Put the cursor at some words, run a command, and apply the previewed changes. */
async function applied(document: vscode.TextDocument, words: string, command: string, title: string) {
  const editor = await vscode.window.showTextDocument(document);
  const place = placeOf(document, words);
  editor.selection = new vscode.Selection(place, place);
  void vscode.commands.executeCommand(command);
  await until(`${title} is shown`, () => tab(title) !== undefined);
  await vscode.commands.executeCommand("trainshift.applyPreview");
  await until(`${title} is closed`, () => tab(title) === undefined);
}

export const part: Part = {
  files: { "model.py": SCRIPT },
  tests() {
    it("shows what a function of Paddle's becomes, and writes it", async () => {
      const document = await show("model.py");
      const wanted = await inGraphCode(path(), "model.py", "--function", "halve");
      assert.notEqual(wanted, SCRIPT);
      await applied(document, "x = x / 2", "trainshift.expandStatic", "model.py ↔ graph code, for reading");
      await comesTo("the function is expanded", () => document.getText(), wanted);
      // Undo applies to the focused editor.
      await vscode.window.showTextDocument(document);
      await vscode.commands.executeCommand("undo");
      assert.equal(document.getText(), SCRIPT);
    });

    it("makes a function static", async () => {
      const document = await show("model.py");
      await applied(document, "x = x * 2", "trainshift.makeStatic", "model.py ↔ made static");
      const wanted = SCRIPT.replace("def double", "@paddle.jit.to_static(full_graph=True)\ndef double");
      await comesTo("the function is static", () => document.getText(), wanted);
    });
  },
};
