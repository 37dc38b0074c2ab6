"""Forward mode: the derivative of each line, written beside it (AD31)."""
