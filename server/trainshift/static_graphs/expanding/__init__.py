"""Expanding: static functions rewritten into the graph code that Paddle builds (SPEC-STATIC §5)."""
