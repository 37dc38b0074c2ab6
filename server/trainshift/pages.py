"""Pages: where the generated page of each code is, and what it says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
# An installed package carries the pages; a checkout has them where they are generated.
_HOMES = (_PACKAGE / "pages", _PACKAGE.parent / "docs" / "rules")


def page(code: str) -> str:
    """The page of a code, Markdown; empty when there is none."""
    path = _path(code)
    return path.read_text(encoding="utf-8") if path else ""


@cache
def page_url(code: str) -> str:
    """Where the page of a code can be opened; empty when there is none."""
    path = _path(code)
    return path.as_uri() if path else ""


@cache
def _path(code: str) -> Path | None:
    candidates = [home / f"{code}.md" for home in _HOMES]
    return next((path for path in candidates if path.is_file()), None)
