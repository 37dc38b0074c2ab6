"""Data on Paddle's API."""
