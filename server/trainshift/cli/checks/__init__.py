"""The check of many files, and its report."""
