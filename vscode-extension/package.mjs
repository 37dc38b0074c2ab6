// Packages what `node esbuild.mjs` has built, with the wheels of each platform: `node package.mjs [PLATFORM...]`.
// "universal" stands for all platforms that have no package of their own; its set-up downloads what it needs.
// TRAINSHIFT_REPOSITORY, the address of the repository, becomes `repository`, `homepage`, `bugs` and `badges` of the manifest.
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createVSIX } from "@vscode/vsce";

import { readme, repository } from "./readme.mjs";

/** What the marketplace's visitors download at most. */
const MOST_BYTES = 14_000_000;
const STAGE = "dist/package";
const FILES = [
  ".vscodeignore",
  "CHANGELOG.md",
  "LICENSE",
  "bundled",
  "dist/extension.js",
  "dist/ThirdPartyNotices.txt",
  "media",
  "python",
];

/** The manifest as a package has it: with the repository, without what only its developers need. */
function manifest() {
  const declared = JSON.parse(readFileSync("package.json", "utf8"));
  for (const key of ["devDependencies", "scripts", "vsce"]) delete declared[key];
  const url = repository();
  if (!url) return declared;
  const addresses = {
    repository: { type: "git", url, directory: "vscode-extension" },
    homepage: `${url}#readme`,
    bugs: { url: `${url}/issues` },
  };
  const checks = `${url}/actions/workflows/checks.yml`;
  // The marketplace takes badges of the sites that it trusts, GitHub among them.
  const badges = url.startsWith("https://github.com/")
    ? [{ url: `${checks}/badge.svg`, href: checks, description: "Checks" }]
    : [];
  return { ...declared, ...addresses, badges };
}

async function pack(platform) {
  const isUniversal = platform === "universal";
  rmSync(STAGE, { recursive: true, force: true });
  for (const path of FILES) cpSync(path, join(STAGE, path), { recursive: true });
  if (!isUniversal) {
    const wheels = join("wheels", platform);
    if (!existsSync(wheels)) throw new Error(`${wheels} is missing: make vsix`);
    cpSync(wheels, join(STAGE, "bundled"), { recursive: true });
  }
  writeFileSync(join(STAGE, "package.json"), JSON.stringify(manifest(), null, 2));
  writeFileSync(join(STAGE, "README.md"), readme(true));
  const packagePath = isUniversal ? "trainshift.vsix" : `trainshift-${platform}.vsix`;
  await createVSIX({
    cwd: STAGE,
    packagePath,
    dependencies: false,
    allowMissingRepository: true,
    rewriteRelativeLinks: repository() !== undefined,
    ...(isUniversal ? {} : { target: platform }),
  });
  rmSync(STAGE, { recursive: true });
  const { size } = statSync(packagePath);
  if (size > MOST_BYTES) throw new Error(`${packagePath} has ${size} bytes; ${MOST_BYTES} are allowed`);
}

const platforms = process.argv.slice(2);
for (const platform of platforms.length > 0 ? platforms : ["universal"]) await pack(platform);
