import { PYTHON } from "../harness/paths";
import type { UiSuite } from "../harness/suite";
import { convert } from "./project/convert";
import { derivatives, writeGradient } from "./project/derivatives";
import { PROJECT } from "./project/files";
import { menus } from "./project/menus";
import type { Part } from "./project/part";
import { problems } from "./project/problems";
import { program } from "./project/program";
import { welcome } from "./project/welcome";

const PARTS: Record<string, Part> = { convert, menus, problems, welcome, derivatives, program };

export const suites: UiSuite[] = [
  {
    name: "project",
    workspace: Object.values(PARTS).reduce((all, { files }) => ({ ...all, ...files }), PROJECT),
    prepare: writeGradient,
    open: "train.py",
    settings: {
      "trainshift.interpreter": [PYTHON],
      "editor.occurrencesHighlight": "off",
    },
    tests(workbench) {
      for (const [name, { open, tests }] of Object.entries(PARTS)) {
        describe(name, () => {
          before(async () => {
            await workbench.tidy();
            await workbench.openFile(open);
          });
          tests(workbench);
        });
      }
    },
  },
];
