"""Reverse mode (SPEC-AD AD32 to AD39)."""
