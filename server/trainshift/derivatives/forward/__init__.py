"""Forward mode: each line's derivative next to the line (AD31)."""
