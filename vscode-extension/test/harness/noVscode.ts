// Replaces `vscode` where the data of a host suite are read outside the extension host.
export = {};
