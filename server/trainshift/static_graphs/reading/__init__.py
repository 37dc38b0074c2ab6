"""Facts about functions that become a static graph: the reasons, and the types of their expressions."""
