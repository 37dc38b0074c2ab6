"""The table of derivatives, as data, and the helpers that its rows call."""
