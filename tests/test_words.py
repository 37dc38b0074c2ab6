"""Messages say what, why and what to do, in at most two short sentences, as a person would say them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from finding_fixtures import RESTRICTION_FILES
from fixtures import TRANSFORM_FILES
from import_graph import PACKAGE

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "dev" not in path.parts)
# Words of somebody who translates; and names that no reader knows.
STRANGE = re.compile(
    r"[Nn]obody (?:can )?sees?\b|\ball the same\b|cannot be (?:seen|told)|\bwhat it is of\b|is taken to be"
    r"|\bbut such\b|\bonly such\b|\bis no (?:Python|code|setting|notebook)\b|\bSPEC\b|correction C\d|\(C\d+\)"
)
# Longer than this a message is not read.
MOST = 260


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that people may see: all but docstrings, with `x` for what is put in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docs and id(node) not in parts:
                yield node.lineno, node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_message_has_no_strange_words(path: Path) -> None:
    found = [
        (line, text) for line, text in messages(path) if not text.startswith("%") and STRANGE.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("path", [*RESTRICTION_FILES, *TRANSFORM_FILES], ids=lambda path: path.stem)
def test_what_is_said_of_a_script_is_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:findings|refused|withheld|decisions|doubts)\n(.*?)^```$", text, re.M | re.S)
    said = [
        message
        for block in blocks
        for message in re.findall(
            r"^\d+:\d+ (?:(?:TF|TL|HV)\d\d:? (?:violated |harmless |unknown )?)?(.*)$", block, re.M
        )
    ]
    for message in said:
        own = re.sub(r"`[^`]*`", "x", message)  # code may be as long as it is
        assert len(own) <= MOST, message
        assert len(re.findall(r"[.!?](?= [A-Z])", own)) <= 1, message
        assert not STRANGE.search(own), message
