"""The machine as the command line and the language server see it: files, folders, settings, declarations."""
