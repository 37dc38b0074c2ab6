"""Judgements on the observations: faults, and claims that hold, fail or were not seen."""
