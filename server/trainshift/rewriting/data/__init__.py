"""The data of each training loop: their sources, and the place where each rank takes its share."""
