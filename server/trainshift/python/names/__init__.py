"""Scopes, bindings, and the values of names."""
