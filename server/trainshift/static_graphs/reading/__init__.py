"""What is known of functions that become a static graph: why they do, and what their expressions are."""
