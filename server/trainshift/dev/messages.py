"""The page of all messages on the documentation's site, by code, from the fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(r"^```(?:findings|refused|withheld|decisions|doubts)\n(.*?)^```$", re.M | re.S)
_MESSAGE = re.compile(
    r"^(?:cell \d+:)?(?:[\w./]+:)?\d+:\d+ (?:((?:TF|TL|HV|HZ|PD|TS|AD)\d\d):? )?"
    r"(?:(?:violated|harmless|unknown) )?(.*)$",
    re.M,
)
_REFUSED = re.compile(r"# (?:\w+ )?refused: (.*)$", re.M)
_FOLDERS = ("restrictions", "hazards", "static_graphs", "transforms", "expansions", "derivatives")
REFUSALS = "Refusals of differentiate"
_HEAD = """# Messages

The messages of `check`, `convert`, `static` and `differentiate`, by code. The names in them are those of the
tests' scripts: search for the other words of a message. The page of its code says what to do.
"""


def messages() -> dict[str, list[str]]:
    """Return the messages by code ("" without one), each once, with its names replaced."""
    found: dict[str, dict[str, str]] = {}
    for code, message in _all():
        key = re.sub(r"\d+", "0", re.sub(r"`[^`]*`", "`x`", message))
        found.setdefault(code, {}).setdefault(key, message)
    return {code: list(found[code].values()) for code in sorted(found)}


def messages_page() -> str:
    """Return the page, Markdown, with links to the pages of the codes."""
    parts = [_HEAD]
    # Refusals without a code come last.
    for code, listed in sorted(messages().items(), key=lambda item: (not item[0], item[0])):
        parts.append(f"## {code}\n\n[The page of {code}](rules/{code}.md)\n" if code else f"## {REFUSALS}\n")
        parts += ["\n".join(f"- {_escaped(message)}" for message in listed) + "\n"]
    return "\n".join(parts)


def _all() -> Iterator[tuple[str, str]]:
    for folder in _FOLDERS:
        for path in sorted((ROOT / "fixtures" / folder).glob("*.*")):
            text = path.read_text(encoding="utf-8")
            of_file = re.match(r"[a-z]{2}\d\d(?=_)", path.stem)
            for block in _BLOCK.findall(text):
                for code, message in _MESSAGE.findall(block):
                    yield code or (of_file[0].upper() if of_file else ""), message
            if path.suffix == ".py":
                yield from (("", message) for message in _REFUSED.findall(text))


def _escaped(message: str) -> str:
    """A message as Markdown: text outside code is escaped."""
    parts = re.split(r"(`[^`]*`)", message)
    texts = (re.sub(r"([*_\[])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2])
    return "".join(text + code for text, code in zip(texts, [*parts[1::2], ""], strict=True))
