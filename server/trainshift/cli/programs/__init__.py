"""What the commands have in common for programs of several files."""
