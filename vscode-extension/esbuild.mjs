// Bundles the extension into one file, and makes the other files of the package: `node esbuild.mjs [--watch]`.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { build, context } from "esbuild";

import { readme } from "./readme.mjs";

const isWatching = process.argv.includes("--watch");
const options = {
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  target: "node18",
  format: "cjs",
  external: ["vscode"],
  minify: !isWatching,
  sourcemap: isWatching,
  metafile: true,
  logLevel: "warning",
};

/** The licences of the packages that a bundle holds. */
function notices(inputs) {
  const packages = new Set(
    inputs.map((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]).filter(Boolean),
  );
  return [...packages].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "License.txt", "license.txt"]
      .map((each) => join(folder, each))
      .find((each) => existsSync(each));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(file, "utf8").trim() : "No licence text."}\n`;
  });
}

if (isWatching) {
  await (await context(options)).watch();
} else {
  const { metafile } = await build(options);
  const text = notices(Object.keys(metafile.inputs)).join("\n----------------------------------------\n\n");
  writeFileSync("dist/ThirdPartyNotices.txt", text);
  writeFileSync("dist/README.md", readme(false));
  copyFileSync("../LICENSE", "LICENSE");
}
