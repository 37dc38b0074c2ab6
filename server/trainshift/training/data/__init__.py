"""The data of each training loop, and the place where each rank takes its share."""
