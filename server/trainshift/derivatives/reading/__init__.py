"""Reading: the functions of a file, what is active in them, and of what kind values are."""
