"""The messages on the site, by code or subject: from the fixtures, the code and the libraries' entries."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PACKAGE = ROOT / "server" / "trainshift"
_BLOCK = re.compile(r"^```(?:findings|refused|withheld|decisions|doubts)\n(.*?)^```$", re.M | re.S)
_MESSAGE = re.compile(
    r"^(?:cell \d+:)?(?:[\w./]+:)?\d+:\d+ (?:((?:TF|TL|HV|HZ|PD|TS|AD)\d\d):? )?"
    r"(?:(?:violated|harmless|unknown) )?(.*)$",
    re.M,
)
_REFUSED = re.compile(r"# (?:\w+ )?refused: (.*)$", re.M)
_FOLDERS = ("restrictions", "hazards", "static_graphs", "transforms", "expansions", "derivatives")
_ENTRY = re.compile(r'\b(?:reason|says) = "([^"\n]+)"')
# A pattern, a format, markup or a command.
_NO_MESSAGE = re.compile(r"\(\?|%[s(]|</?\w|^[A-Z_]+=")
_CODED = re.compile(r"[a-z]{2}\d\d(?=_)")
# Code whose strings are rows of tables, or descriptions of settings.
_SILENT = {"dev", "libraries", "tables"}
# What stands for a value of the script in a message, and the words and lines that a message has.
GAP = "…"
_FEWEST_WORDS = 3
_MOST_LINES = 4
# The subjects of messages without a code, by the folder that they come from, with a page that says more.
CONVERT = "Refusals, doubts and decisions of convert"
STATIC = "Refusals of static"
DIFFERENTIATE = "Refusals of differentiate"
COMMANDS = "Errors of the commands"
_SUBJECTS = {
    CONVERT: "[The command line](command-line.md#common-questions)",
    STATIC: "[Static graphs](static.md)",
    DIFFERENTIATE: "[What is refused](differentiate.md#what-is-refused)",
    "Claims and errors of prove": "[What it says](proving.md#what-it-says)",
    "Errors of calculus": "[The calculus](command-line.md#the-calculus-of-differentiation)",
    COMMANDS: "[The command line](command-line.md)",
    "Messages of editors": "[Editors](editors.md)",
}
_BY_FOLDER = {
    "static_graphs": STATIC, "derivatives": DIFFERENTIATE, "proving": "Claims and errors of prove",
    "calculus": "Errors of calculus", "cli": COMMANDS, "host": COMMANDS, "lsp": "Messages of editors",
}  # fmt: skip
_OF_FIXTURES = {"expansions": STATIC, "derivatives": DIFFERENTIATE}
_HEAD = f"""# Messages

The messages that have no code, by subject; those with a code are at the end of [its page](codes.md).
A {GAP} stands for a name or a number of your script. Long messages are listed in parts.
"""


def messages() -> dict[str, list[str]]:
    """Return the messages by code or subject, each once."""
    found: dict[str, dict[str, str]] = {}
    for topic, message in _of_fixtures():
        key = re.sub(r"\d+", "0", re.sub(r"`[^`]*`", "`x`", message))
        found.setdefault(topic, {}).setdefault(key, message)
    shown = "\n".join(message for each in found.values() for message in each.values())
    for topic, message in _of_code():
        pattern = ".+".join(re.escape(part) for part in message.split(GAP))
        if not re.search(pattern, shown):
            found.setdefault(topic, {}).setdefault(message, message)
    return {topic: list(found[topic].values()) for topic in sorted(found)}


def listed(topic: str, found: dict[str, list[str]]) -> str:
    """Return the list of a topic's messages, Markdown; each has the anchor of `anchor`."""
    return "".join(
        f'- <span id="{anchor(topic, at)}"></span>{_escaped(message)}\n'
        for at, message in enumerate(found.get(topic, ()))
    )


def anchor(topic: str, at: int) -> str:
    """Return the anchor of a message."""
    return f"{topic.split()[-1].lower()}-message-{at}"


def messages_page(found: dict[str, list[str]]) -> str:
    """Return the page of the messages without a code, Markdown."""
    parts = [
        f"## {subject}\n\nRead more: {more}.\n\n{listed(subject, found)}"
        for subject, more in _SUBJECTS.items()
    ]
    return "\n".join([_HEAD, *parts])


def is_code(topic: str) -> bool:
    """True for a code, not a subject."""
    return topic not in _SUBJECTS


def _of_fixtures() -> Iterator[tuple[str, str]]:
    for folder in _FOLDERS:
        for path in sorted((ROOT / "fixtures" / folder).glob("*.*")):
            text = path.read_text(encoding="utf-8")
            of_file = _CODED.match(path.stem)
            otherwise = of_file[0].upper() if of_file else _OF_FIXTURES.get(folder, CONVERT)
            for block in _BLOCK.findall(text):
                for code, message in _MESSAGE.findall(block):
                    yield code or otherwise, message
            if path.suffix == ".py":
                yield from ((DIFFERENTIATE, message) for message in _REFUSED.findall(text))


def _of_code() -> Iterator[tuple[str, str]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        place = path.relative_to(_PACKAGE)
        if _SILENT.isdisjoint(place.parts):
            coded = _CODED.match(path.stem)
            topic = coded[0].upper() if coded else _BY_FOLDER.get(place.parts[0], CONVERT)
            yield from ((topic, text) for text in _strings(ast.parse(path.read_bytes())) if _is_message(text))
    for path in sorted((_PACKAGE / "libraries" / "data").glob("*.toml")):
        yield from ((CONVERT, text) for text in _ENTRY.findall(path.read_text(encoding="utf-8")))


def _strings(node: ast.AST) -> Iterator[str]:
    """The strings of code, without its docstrings and the help of options; a gap stands for each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _lines(node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [str(each.value) if isinstance(each, ast.Constant) else GAP for each in node.values]
        yield from _lines("".join(parts))
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                yield from _strings(each.value)
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.keyword) and child.arg == "help"):
                yield from _strings(child)


def _lines(text: str) -> list[str]:
    """The lines of a string, unless it is a template of code."""
    lines = text.strip().splitlines()
    return [] if text.startswith("\n") or len(lines) > _MOST_LINES else lines


def _is_message(text: str) -> bool:
    """True for words that a user reads, and not code, a pattern or a template."""
    if (
        _NO_MESSAGE.search(text)
        or len(re.findall(r"[A-Za-z]{2,}", text)) < _FEWEST_WORDS
        or " " not in text.strip()
    ):
        return False
    try:
        ast.parse(text.replace(GAP, "x").strip())
    except SyntaxError:
        return True
    return False


def _escaped(message: str) -> str:
    """A message as Markdown: text outside code is escaped."""
    parts = re.split(r"(`[^`]*`)", message)
    texts = (re.sub(r"([\\*_\[\]`#])", r"\\\1", html.escape(part, quote=False)) for part in parts[::2])
    return "".join(text + code for text, code in zip(texts, [*parts[1::2], ""], strict=True))
