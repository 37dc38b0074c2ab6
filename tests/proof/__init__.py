"""The proof: original and converted scripts are run on real processes and compared (spec.md 6.7)."""
