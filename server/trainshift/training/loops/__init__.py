"""Training loops and steps: which code trains, by which pattern, and in which order it runs."""
