"""Scopes, bindings, and the values that names stand for."""
