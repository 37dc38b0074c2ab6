"""Codes: everything with a code, for clients that list it."""

from __future__ import annotations

from trainshift.engine.registry import RULES
from trainshift.pages import page_url


def listed() -> list[dict[str, str]]:
    """All codes, in the format for the client."""
    return [
        {"code": each.code, "name": each.name, "title": each.title, "url": page_url(each.code)}
        for each in RULES
    ]
