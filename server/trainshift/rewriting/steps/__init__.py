"""Training steps that are rewritten in terms of simpler calls."""
