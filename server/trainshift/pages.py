"""Pages: the generated page of each code, and the guides."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
# An installed package carries the pages; a checkout has them where they are generated.
_HOMES = (_PACKAGE / "pages", _PACKAGE.parent / "docs" / "rules")
_GUIDES = (_PACKAGE / "guides", _PACKAGE.parent / "docs")
# The guides for people who use the tool; the wheel carries them.
GUIDES = (
    "command-line.md",
    "checking.md",
    "proving.md",
    "editors.md",
    "differentiate.md",
    "static.md",
    "clusters.md",
    "glossary.md",
)
_LINK_TO_A_FILE = re.compile(r"\[([^\]\n]*)\]\(\.\./[^)\n]*\)")


def page(code: str) -> str:
    """The page of a code in Markdown, without its links to other files; empty if there is none."""
    path = _path(code)
    return _LINK_TO_A_FILE.sub(r"\1", path.read_text(encoding="utf-8")) if path else ""


def guides() -> dict[str, Path]:
    """The available guides, by name."""
    home = next((home for home in _GUIDES if (home / GUIDES[0]).is_file()), None)
    return {name: home / name for name in GUIDES} if home else {}


def section(doc: str, heading: str) -> str:
    """The first paragraph below a heading of a code's documentation, in one line; empty without one."""
    _, found, text = doc.partition(f"\n## {heading}\n\n")
    return " ".join(text.partition("\n\n")[0].split()) if found else ""


@cache
def page_url(code: str, site: str = "") -> str:
    """The address of a code's page, on the site at `site` if given; "" for no page."""
    path = _path(code)
    if path is None:
        return ""
    return f"{site.rstrip('/')}/rules/{code}.html" if site else path.as_uri()


@cache
def _path(code: str) -> Path | None:
    candidates = [home / f"{code}.md" for home in _HOMES]
    return next((path for path in candidates if path.is_file()), None)
