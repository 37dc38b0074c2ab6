"""Optimizers: where they are made, who applies them, and whether their gradients are averaged."""
