"""Python code: text, syntax, names, control flow and values. It does not know about training."""
