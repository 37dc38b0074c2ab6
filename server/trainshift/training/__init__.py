"""The model of a training program, by subject; restrictions, hazards, rules, hovers and the prover ask it.

The folders build on each other in the order of the contract in `pyproject.toml`.
"""
