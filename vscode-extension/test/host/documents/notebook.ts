import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as vscode from "vscode";
import { until } from "../../harness/until";
import {
  action,
  apply,
  codeOf,
  codes,
  comesTo,
  converted,
  decide,
  decoded,
  findings,
  path,
  preview,
  uri,
  type Part,
} from "../support";

const CELLS = [
  "import tensorflow as tf",
  "# A model\nopt = tf.keras.optimizers.Adam(1e-3)\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])",
  "model.compile(opt, loss='mse')",
  "model.fit(tf.ones([8, 2]), tf.ones([8, 1]), epochs=4)\nprint('done')",
];
const ALIAS = "Adam = tf.keras.optimizers.Adam\noptimizer = Adam(1e-3)";

function notebook(...sources: string[]): string {
  const code = sources.map((source) => ({
    cell_type: "code",
    execution_count: null,
    metadata: {},
    outputs: [],
    source: source.split(/(?<=\n)/),
  }));
  const prose = { cell_type: "markdown", metadata: {}, source: ["# Not Python: (("] };
  const metadata = { language_info: { name: "python" } };
  return JSON.stringify({ cells: [prose, ...code], metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

/** Show a notebook; returns its code cells. */
async function showNotebook(name: string): Promise<vscode.TextDocument[]> {
  const opened = await vscode.workspace.openNotebookDocument(uri(name));
  await vscode.window.showNotebookDocument(opened);
  return opened
    .getCells()
    .filter((cell) => cell.kind === vscode.NotebookCellKind.Code)
    .map((cell) => cell.document);
}

function texts(cells: vscode.TextDocument[]): string[] {
  return cells.map((cell) => cell.getText());
}

/** The lines that are not empty. */
function written(parts: string[]): string[] {
  return parts.flatMap((part) => part.split("\n")).filter((line) => line !== "");
}

export const part: Part = {
  files: {
    "alias.ipynb": notebook("import tensorflow as tf", ALIAS),
    "train.ipynb": notebook(...CELLS),
    "train.py": CELLS.join("\n\n"),
  },
  tests() {
    it("reports and fixes what is found in a cell", async () => {
      const [first, second] = await showNotebook("alias.ipynb");
      assert.ok(first && second);
      await comesTo("the violation is reported", () => codes(second), ["TF03"]);
      assert.deepEqual(codes(first), []);
      const [found] = findings(second).filter((each) => codeOf(each) === "TF03");
      assert.ok(found);
      assert.deepEqual(found.range, new vscode.Range(0, 0, 0, 4));
      await apply(
        await action(second, found.range, "Trainshift: Write tf.keras.optimizers.Adam instead of Adam"),
      );
      assert.equal(second.getText(), "optimizer = tf.keras.optimizers.Adam(1e-3)");
      await comesTo("nothing is reported", () => codes(second), []);
    });

    it("changes no cell where the conversion is discarded", async () => {
      const cells = await showNotebook("train.ipynb");
      await preview("train.ipynb", uri("train.ipynb"));
      await decide("discardPreview");
      assert.deepEqual(texts(cells), CELLS);
    });

    it("converts the notebook in front as it would a script", async () => {
      const cells = await showNotebook("train.ipynb");
      const before = await readFile(path("train.ipynb"), "utf8");
      await until("the notebook was read", () => cells.some((cell) => findings(cell).length > 0));
      await preview("train.ipynb");
      assert.deepEqual(texts(cells), CELLS);
      await decide("applyPreview");
      const wanted = written([decoded(await converted("train.py"))]);
      await comesTo("the cells are converted", () => written(texts(cells)), wanted);
      assert.equal(await readFile(path("train.ipynb"), "utf8"), before);
    });
  },
};
