"""Uniform and divergent values: which are the same on all ranks, which are not, and why."""
