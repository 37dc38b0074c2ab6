// Stands for `vscode` where the data of a host suite are read outside of the extension host.
export = {};
