"""The language server: a thin layer between the protocol and the engine."""
