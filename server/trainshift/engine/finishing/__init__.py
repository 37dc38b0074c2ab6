"""Finish an edited text: it compiles, and reads as a person would have written it."""
