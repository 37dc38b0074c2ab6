"""The badge of a proof: a picture for a README, and the line that shows it there."""

from __future__ import annotations

from html import escape
from typing import Any

from trainshift.proving.words import headline

_COLOURS = {"holds": "#2b8a3e", "fails": "#c92a2a", "not seen": "#946200", "error": "#946200"}
_HEIGHT, _EDGE = 20, 8
# The width of letters in the badge's font, in pixels.
_NARROW, _USUAL = frozenset("fijlrt.,' "), 6.6


def badge(result: dict[str, Any]) -> str:
    """The badge for the JSON result of `prove`, as SVG that needs no network."""
    name, what = "Trainshift", headline(result)
    left, right = _width(name), _width(what)
    whole = left + right
    texts = [
        f'<text x="{start + _EDGE}" y="14" textLength="{wide - 2 * _EDGE}">{escape(text)}</text>'
        for start, wide, text in ((0, left, name), (left, right, what))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f'aria-label="{name}: {escape(what)}">\n'
        f"<title>{name}: {escape(what)}</title>\n"
        f'<clipPath id="r"><rect width="{whole}" height="{_HEIGHT}" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{_HEIGHT}" fill="#14323f"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLOURS[result["verdict"]]}"/></g>\n'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        + "\n".join(texts)
        + "\n</g>\n</svg>\n"
    )


def line(result: dict[str, Any], picture: str, page: str = "") -> str:
    """The README line that shows a badge, with a link to the page if there is one."""
    shown = f"![Trainshift: {headline(result)}]({picture})"
    return f"[{shown}]({page})" if page else shown


def _width(text: str) -> int:
    """The width of a part of the badge, in pixels."""
    return round(sum(_USUAL * (0.6 if letter in _NARROW else 1) for letter in text)) + 2 * _EDGE
