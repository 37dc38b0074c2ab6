const vscode = require("vscode");

/** The command `fakePython.select` selects an interpreter by its path, or none. */
exports.activate = () => {
  const changed = new vscode.EventEmitter();
  let selected = "";
  vscode.commands.registerCommand("fakePython.select", (path = "") => {
    selected = path;
    changed.fire({ id: path, path });
  });
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: selected, path: selected }),
      resolveEnvironment: async ({ path }) =>
        path === "" ? undefined : { id: path, path, executable: { uri: vscode.Uri.file(path) } },
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
