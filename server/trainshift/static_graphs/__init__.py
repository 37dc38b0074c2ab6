"""What Paddle's conversion to a static graph makes of Python code (SPEC-STATIC): reading, findings."""
