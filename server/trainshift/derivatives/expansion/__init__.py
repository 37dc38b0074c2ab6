"""What cannot stay in an expression or a statement, written as other statements (SPEC-AD 3.2)."""
