"""The command line: reads files, asks the engine, shows and writes what it answers."""
