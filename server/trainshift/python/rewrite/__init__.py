"""Rewrites of Python code into simpler Python code that does the same."""
