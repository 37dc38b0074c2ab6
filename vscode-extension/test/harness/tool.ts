import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "./paths";

const run = promisify(execFile);

/** The output of `trainshift convert FILE -o OUT`, run in that folder. */
export function converted(folder: string, file: string, ...options: string[]): Promise<string> {
  return written(folder, "convert", file, ...options);
}

/** The output of `trainshift differentiate FILE.py:FUNCTION -o OUT`, run in that folder. */
export function differentiated(folder: string, target: string, ...options: string[]): Promise<string> {
  return written(folder, "differentiate", target, ...options);
}

/** The output of `trainshift static FILE -o OUT`, run in that folder. */
export function inGraphCode(folder: string, file: string, ...options: string[]): Promise<string> {
  return written(folder, "static", file, ...options);
}

async function written(folder: string, command: string, what: string, ...options: string[]): Promise<string> {
  const out = join(tmpdir(), `trainshift-${String(process.pid)}-${what.replaceAll(/[/:]/g, "-")}`);
  try {
    await run(PYTHON, ["-m", "trainshift", command, ...options, what, "-o", out], { cwd: folder });
    return await readFile(out, "utf8");
  } finally {
    await rm(out, { force: true });
  }
}
