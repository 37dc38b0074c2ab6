"""What is made of what was observed: faults, and claims that hold, fail or were not seen."""
