"""The command line: reads files, calls the engine, and shows or writes the results."""
