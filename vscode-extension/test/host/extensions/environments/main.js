const vscode = require("vscode");

/** The command `fakeEnvironments.select` selects a command that starts an interpreter, or none. */
exports.activate = () => {
  const changed = new vscode.EventEmitter();
  let environment;
  vscode.commands.registerCommand("fakeEnvironments.select", (executable, ...args) => {
    environment = executable && { execInfo: { run: { executable, args } } };
    changed.fire({ new: environment });
  });
  return {
    getEnvironment: async () => environment,
    onDidChangeEnvironment: changed.event,
  };
};
