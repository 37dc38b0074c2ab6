import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The extension's folder; the test bundles are at several depths below it. */
export const EXTENSION = __dirname.slice(0, __dirname.lastIndexOf("/test/out"));

const OF_THIS_PLATFORM = join(EXTENSION, `trainshift-${process.platform}-${process.arch}.vsix`);
export const VSIX = existsSync(OF_THIS_PLATFORM) ? OF_THIS_PLATFORM : join(EXTENSION, "trainshift.vsix");
export const OUT = join(EXTENSION, "test", "out");
export const ARTIFACTS = join(EXTENSION, "test", "artifacts");
export const DRIVER = join(EXTENSION, "test", "host", "driver");
export const VSCODE = join(EXTENSION, "test", "code-server", "node_modules", "code-server", "lib", "vscode");
export const CHROMIUM = "/usr/bin/chromium";

/** An interpreter with the package `trainshift`. */
export const PYTHON = process.env.TRAINSHIFT_TEST_PYTHON ?? join(EXTENSION, "..", ".venv", "bin", "python");

/** The text of a file under `fixtures/`. */
export function fixture(path: string): string {
  return readFileSync(join(EXTENSION, "..", "fixtures", path), "utf8");
}

/** The keys of the extension's settings. */
export function settings(): string[] {
  const manifest = JSON.parse(readFileSync(join(EXTENSION, "package.json"), "utf8")) as {
    contributes: { configuration: { properties: Record<string, unknown> } };
  };
  return Object.keys(manifest.contributes.configuration.properties);
}
