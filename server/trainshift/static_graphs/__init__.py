"""Static graphs of Paddle: reading Python functions, findings, and expansions."""
