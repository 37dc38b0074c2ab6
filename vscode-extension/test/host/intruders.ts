import { readdir } from "node:fs/promises";
import { path } from "./support";

/** A module that leaves a file with its name in the folder `imported` of the workspace. */
const MODULE = `import os, pathlib
here = pathlib.Path(__file__).resolve()
name = here.stem if here.stem != "__init__" else here.parent.name
root = here.parent if here.stem == name else here.parent.parent
(root / "imported").mkdir(exist_ok=True)
(root / "imported" / name).touch()
raise SystemExit("an intruder was imported")
`;

/** Files of a workspace that would shadow the server's own modules. */
export const INTRUDERS = {
  "json.py": MODULE,
  "libcst.py": MODULE,
  "pygls.py": MODULE,
  "trainshift/__init__.py": MODULE,
};

/** The names of the intruders that were imported. */
export async function imported(): Promise<string[]> {
  return readdir(path("imported")).catch(() => []);
}
