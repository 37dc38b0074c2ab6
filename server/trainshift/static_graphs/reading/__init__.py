"""Facts about functions that become a static graph: why they do, and what their expressions are."""
