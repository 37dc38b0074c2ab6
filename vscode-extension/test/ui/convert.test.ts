import assert from "node:assert/strict";
import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";

const SCRIPT = `import tensorflow as tf

Adam = tf.keras.optimizers.Adam
optimizer = Adam(1e-3)
`;

export const suites: UiSuite[] = [
  {
    name: "convert",
    workspace: { "train.py": SCRIPT },
    open: "train.py",
    settings: { "trainshift.interpreter": [PYTHON] },
    tests(workbench) {
      it("marks a violated restriction", async () => {
        await workbench.waitForSquiggle();
        assert.match(await (await workbench.problem("TF03")).innerText(), /trainshift/i);
      });
    },
  },
];
