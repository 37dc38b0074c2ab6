import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fixture, PYTHON } from "./paths";

export const NAMES = ["train.py", "model.py", "steps.py"] as const;

/** A program of three files, by name; the first one starts it. */
export const PROGRAM = Object.fromEntries(
  NAMES.map((name) => [name, fixture(`editors/three_files/${name}`)]),
) as Record<string, string>;

const CONVERT = `
import json, sys
from pathlib import Path
from trainshift.engine.conversion import convert_program
from trainshift.host.disk import files_on_disk
start, at, line = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = Path(start).read_bytes().decode()
conversion = convert_program(text, start, files_on_disk(), at=(at, line) if line else None)
print(json.dumps({Path(each.path).name: each.text for each in conversion.files}))
`;

/** The converted files of a folder's program, or of its statement at a line of a file, by name. */
export async function convertedProgram(
  folder: string,
  name: string = NAMES[0],
  line = 0,
): Promise<Record<string, string>> {
  const places = [join(folder, NAMES[0]), join(folder, name), String(line)];
  const { stdout } = await promisify(execFile)(PYTHON, ["-I", "-c", CONVERT, ...places]);
  return JSON.parse(stdout) as Record<string, string>;
}
