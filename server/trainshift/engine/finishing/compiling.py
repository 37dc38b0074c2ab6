"""Compile a text, so that no rewrite and no fix breaks it."""

from __future__ import annotations

import warnings


def compiles(text: str) -> bool:
    """Return whether Python accepts a script; it is not run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<script>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
