"""Forward mode (SPEC-AD AD31)."""
