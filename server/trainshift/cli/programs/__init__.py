"""Shared parts of the commands for programs of several files."""
