"""Whole-program analyses that build on names: the sources of values, and the call graph."""
