"""Proving: a script and its conversion, run on real processes and compared (spec.md 10)."""
