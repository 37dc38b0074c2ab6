"""Execution: conditions, exits and calls of a program, how often and in which mode they run."""
