"""Expansion: static functions rewritten into the graph code that Paddle builds."""
