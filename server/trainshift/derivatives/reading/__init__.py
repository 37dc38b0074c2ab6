"""Reading: the functions of a file, their active variables, and the kinds of values."""
