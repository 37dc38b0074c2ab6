// The README of a package, whose pictures are where its reader can see them.
import { readFileSync } from "node:fs";

/** The address of the repository: the setting of the build, else that of the manifest; undefined where there is none. */
export function repository() {
  const { repository: declared } = JSON.parse(readFileSync("package.json", "utf8"));
  const address = process.env.TRAINSHIFT_REPOSITORY || (declared?.url ?? declared);
  return address?.replace(/^git\+/, "").replace(/(\.git)?\/?$/, "");
}

/**
 * The README.  Pictures come from the repository.  Where there is none they are in the text (`isLocal`), which
 * VS Code shows and the marketplace does not take, or left out.
 */
export function readme(isLocal) {
  const home = repository();
  return readFileSync("README.md", "utf8").replaceAll(
    /!\[(.*?)\]\((media\/.+?\.png)\)\n*/g,
    (_, text, path) => {
      const data = `data:image/png;base64,${readFileSync(path, "base64")}`;
      const address = home ? `${home}/raw/HEAD/vscode-extension/${path}` : data;
      return home || isLocal ? `![${text}](${address})\n\n` : "";
    },
  );
}
