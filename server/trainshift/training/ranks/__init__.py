"""Ranks together: collectives, loops that all ranks share, and values that must agree."""
