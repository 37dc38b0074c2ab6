"""The proof: original and converted scripts are run on real processes and compared (SPEC 6.7)."""
