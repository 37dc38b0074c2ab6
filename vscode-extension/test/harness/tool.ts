import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "./paths";

const run = promisify(execFile);

/** What `trainshift convert FILE -o OUT` writes, which is run in that folder. */
export async function converted(folder: string, file: string, ...options: string[]): Promise<string> {
  const out = join(tmpdir(), `trainshift-${String(process.pid)}-${file.replaceAll("/", "-")}`);
  try {
    await run(PYTHON, ["-m", "trainshift", "convert", ...options, file, "-o", out], { cwd: folder });
    return await readFile(out, "utf8");
  } finally {
    await rm(out, { force: true });
  }
}
