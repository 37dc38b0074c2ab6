import type { HostSuite } from "../harness/suite";
import { part as language } from "./documents/language";
import { part as notebook } from "./documents/notebook";
import { part as preview } from "./documents/preview";
import { part as program } from "./documents/program";
import { part as statics } from "./documents/statics";
import { joined } from "./support";

export const suites: HostSuite[] = [
  { ...joined("documents", { language, notebook, preview, program, statics }), open: "language/train.py" },
];
