"""The GPU of each rank: pinning, and the places where a script chooses devices itself."""
