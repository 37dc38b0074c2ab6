"""Static graphs of Paddle: how Python functions are read for them, findings, and expansions."""
