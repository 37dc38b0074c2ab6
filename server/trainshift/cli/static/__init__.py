"""The command `static`: expands Paddle's static functions."""
