"""Reasons that many rules give, each said in one way."""

from __future__ import annotations


def in_f_string(what: str = "the call is") -> str:
    """The reason of an edit inside an f-string; `what` is the subject with its verb."""
    return f"{what} inside an f-string; give it a statement of its own"


def in_stars(what: str, remedy: str = "") -> str:
    """The reason of an argument that `*` or `**` may hold; `what` is the subject with its verb."""
    return f"{what} hidden in * or ** arguments{f'; {remedy}' if remedy else ''}"
