"""The syntax of a file, chunk by chunk, and the precedence of expressions."""
