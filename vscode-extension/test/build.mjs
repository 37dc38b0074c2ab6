// Bundle the tests into test/out: inside/ is for the extension host, the rest for the process outside of it.
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL(".", import.meta.url));
const options = {
  absWorkingDir: folder,
  bundle: true,
  outbase: ".",
  packages: "external",
  platform: "node",
  sourcemap: "inline",
  target: "node20",
  logLevel: "warning",
};

await rm(new URL("out", import.meta.url), { recursive: true, force: true });
await build({ ...options, entryPoints: ["harness/inside.ts", "host/*.test.ts"], outdir: "out/inside" });
await build({
  ...options,
  entryPoints: ["run.ts", "host/*.test.ts", "ui/*.test.ts"],
  outdir: "out",
  alias: { vscode: "./harness/noVscode.ts" },
});
