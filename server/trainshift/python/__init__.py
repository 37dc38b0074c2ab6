"""Python code as it says itself: text, syntax, names, control flow and values.  It knows no training."""
