"""Exact text, edits of it, and maps between the offsets of two texts."""
