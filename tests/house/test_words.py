"""Messages say what, why and what to do, in at most two short sentences, as a person would say them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from import_graph import PACKAGE, ROOT
from support.finding_fixtures import RESTRICTION_FILES
from support.fixtures import TRANSFORM_FILES

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "dev" not in path.parts)
FOLDERS = [PACKAGE, *sorted(path for path in PACKAGE.iterdir() if path.is_dir()), ROOT / "tests"]
# Words of translated prose; and names that no reader knows.
STRANGE = re.compile(
    r"[Nn]obody (?:can )?sees?\b|\ball the same\b|cannot be (?:seen|told)|\bwhat it is of\b|is taken to be"
    r"|\bbut such\b|\bonly such\b|\bis no (?:Python|code|setting|notebook)\b|\bSPEC\b|correction C\d|\(C\d+\)"
)
# Patterns of translated prose in messages: old words for common ones, "is no" for "is not a", passives
# that hide who cannot see something, and clauses that stand for a noun.
TRANSLATED = re.compile(
    r"\bin silence\b|\bmend(?:s|ed)?\b|\bknows? no\b|\bcopes? with\b|\btrains? apart\b|\bworked out\b"
    r"|\brightly\b"
    r"|\b(?:is|are) not (?:seen|known|told)\b|(?<![Tt]here )\bis no (?!longer|more|such)\w"
    r"|\b(?:of|by|to|from|with) what\b|^[Ww]hat (?:is|it|the|a|was)\b|\bgives? (?:back|on)\b|\bturns? of\b"
    r"|\banother (?:order|thing|type|class)\b|\btells? (?:of|that|if)\b|\bgo(?:es)? through\b"
    r"|\bhand(?:s|ed)? (?:on|over)\b"
)
# For docs: prose without its code.
STALE = re.compile(
    r"\bin silence\b|\bmend(?:s|ed)?\b|\bknows? no\b|\bcopes? with\b|\btrains? apart\b|\bworked out\b"
    r"|\ball the same\b"
)
DOCS = [
    ROOT / "README.md",
    ROOT / "vscode-extension" / "README.md",
    *sorted((ROOT / "server" / "docs").rglob("*.md")),
]
# Docstrings begin with an imperative or name the thing; a test begins with "Return whether".
BEGINNINGS = re.compile(
    r"(?:Whether|What|Where|How|Which|Why|Of|By|That|Those|Who|Whoever|Whatever|Such)\b"
    r"|So (?:many|often|deep)\b"
    r"|Tells? (?:that|whether|if|of)\b"
)
# A message longer than this is not read.
MOST = 260


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts in a module that users may see: all except docstrings, with `x` for inserted values."""
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


# Texts for developers: errors that no one sees, and the reasons that a hover joins to a line of its own.
_FOR_DEVELOPERS = {"engine/packing.py", "engine/verdicts.py", "python/flow/cfg.py", "python/values/heap.py"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_message_reads_as_a_colleague_says_it(path: Path) -> None:
    if str(path.relative_to(PACKAGE)) in _FOR_DEVELOPERS:
        return
    found = [
        (line, text)
        for line, text in messages(path)
        if len(text.split()) > 2 and "\n" not in text.strip() and not text.startswith(("%", "(?", "^"))
        if TRANSLATED.search(re.sub(r"`[^`]*`", "x", text))
    ]
    assert found == []


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module and those below its assignments, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield getattr(node, "lineno", 1), text
            for target, below in pairwise(node.body):
                match target, below:
                    case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                        yield below.lineno, text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_docstring_begins_as_the_style_page_says(folder: Path) -> None:
    found = [
        (str(path.relative_to(ROOT)), line, text.partition("\n")[0])
        for path in sorted(folder.rglob("*.py") if folder != PACKAGE else folder.glob("*.py"))
        for line, text in docstrings(path)
        if BEGINNINGS.match(text)
    ]
    assert found == []


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_a_page_has_no_stale_words(path: Path) -> None:
    text = re.sub(r"^```(?:.*\n)*?```$|^ {4}.*$|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.M)
    assert STALE.findall(text) == []


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
        own = re.sub(r"`[^`]*`", "x", message)  # code may have any length
        assert len(own) <= MOST, message
        assert len(re.findall(r"[.!?](?= [A-Z])", own)) <= 1, message
        assert not STRANGE.search(own), message
