"""What `make ecosystem` runs: checks and converts any public files, and says what is not as it must be."""
