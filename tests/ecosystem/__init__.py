"""The command `make ecosystem`: checks and converts public files, and reports violated properties."""
