"""What `check` does with many files, and how it reports what it finds."""
