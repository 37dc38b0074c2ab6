"""The datasets, optimizers and checkpoints that a script creates, and their holders."""
