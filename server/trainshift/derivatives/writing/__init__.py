"""Writing: the expressions of derivatives, and their text."""
