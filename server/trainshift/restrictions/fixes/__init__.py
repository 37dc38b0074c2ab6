"""Edits that fix a hazard: moved statements, replaced texts, and factors."""
