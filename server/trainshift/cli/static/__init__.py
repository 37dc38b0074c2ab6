"""The command `static`: writes out Paddle's static functions."""
