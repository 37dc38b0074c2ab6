"""Rank regions: prints, writes, callbacks and hooks that one rank alone runs, and reads that wait for it."""
