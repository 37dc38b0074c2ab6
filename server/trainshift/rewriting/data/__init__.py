"""The data of each training loop: how they come to be, and where each rank gets its share."""
