"""Chunks: the bounds of statements, and that a later edit re-reads only the changed ones."""

from __future__ import annotations

import ast
import random

import pytest

from support.fixtures import SCRIPTS
from trainshift.python.source.source import Source
from trainshift.python.syntax import chunks as statements
from trainshift.python.syntax import collect
from trainshift.python.syntax.chunk_syntax import ChunkSyntax
from trainshift.python.syntax.chunks import ChunkCache, ParseFailure, parse


def shape(text: str, cache: ChunkCache | None = None) -> list[tuple[int, str]] | ParseFailure:
    """Every statement with its span, independent of the division into chunks."""
    chunks = parse(text, cache)
    if isinstance(chunks, ParseFailure):
        return chunks
    assert "".join(chunk.text for chunk in chunks) == text
    return [
        (chunk.offset + chunk.facts.span(statement.node).start, ast.unparse(statement.node))
        for chunk in chunks
        for statement in chunk.facts.top
    ]


def test_comments_and_blank_lines_go_with_the_statement_above() -> None:
    chunks = parse("# a\n\nx = 1  # b\n# c\ny = 2; z = 3\n# end\n")
    assert not isinstance(chunks, ParseFailure)
    assert [chunk.text for chunk in chunks] == ["# a\n\n", "x = 1  # b\n# c\n", "y = 2; z = 3\n# end\n"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_do_for_python(newline: str) -> None:
    text = newline.join(["x = 1", "\fdef f():", "    return '\u2028'", "", "y = 2"])
    chunks = parse(text)
    assert not isinstance(chunks, ParseFailure)
    assert [chunk.text.strip() for chunk in chunks][::2] == ["x = 1", "y = 2"]
    assert len(chunks) == 3
    assert Source(text).position(text.index("y")) == (5, 1)


def test_columns_count_code_points() -> None:
    chunks = parse('name = "🚂é"; print(name)\n')
    assert not isinstance(chunks, ParseFailure)
    (site,) = chunks[0].facts.sites
    span = chunks[0].facts.span(site.node)
    assert chunks[0].text[span.start : span.end] == "print(name)"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("x = (\n", 1, 5), ("x = 1\n  y = 2\n", 2, 1), ("a = 'é' 1\n", 1, 9), ("x = 1\ny = '\0'\n", 2, 6)],
)
def test_a_failure_says_where(text: str, line: int, column: int) -> None:
    failure = parse(text)
    assert isinstance(failure, ParseFailure)
    assert failure.line == line
    assert abs(failure.column - column) <= 1


def test_deep_nesting_is_a_failure_and_not_a_crash() -> None:
    for text in ("(" * 5000 + ")" * 5000, "-" * 100_000 + "1", "x = " + "[" * 150 + "]" * 150):
        parse(text)
    blocks = "".join("\t" * level + "if x:\n" for level in range(500)) + "\t" * 500 + "pass\n"
    assert isinstance(parse(blocks), ParseFailure)


def test_an_edit_re_reads_the_changed_statement_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"def f{number}(x):\n    return x + {number}\n\n\n" for number in range(200))
    cache = ChunkCache()
    parse(text, cache)
    read: list[str] = []
    real = collect.read_facts

    def recorded(piece: str, body: list[ast.stmt]) -> ChunkSyntax:
        read.append(piece)
        return real(piece, body)

    monkeypatch.setattr(statements, "read_facts", recorded)
    for _ in range(2):
        parse(text.replace("x + 77", "x + 770"), cache)
    assert read == ["def f77(x):\n    return x + 770\n\n\n"]


@pytest.mark.parametrize(
    "folder",
    [*SCRIPTS[:2], *(pytest.param(folder, marks=pytest.mark.slow) for folder in SCRIPTS[2:])],
    ids=lambda folder: folder.name,
)
def test_cached_reading_equals_a_fresh_one_after_random_edits(folder) -> None:  # type: ignore[no-untyped-def]
    text = (folder / "before.py").read_bytes().decode("utf-8-sig")
    junk = [
        "x",
        "(",
        ")",
        '"',
        "'''",
        "\n",
        "    ",
        ":",
        "#",
        "\\",
        "else:\n",
        "@d\n",
        "\nif x:\n    pass\n",
        ";",
        "\r",
    ]
    order = random.Random(folder.name)
    cache = ChunkCache()
    parse(text, cache)
    for _ in range(40):
        at = order.randrange(len(text))
        edited = text[:at] + order.choice([*junk, ""]) + text[at + order.randrange(3) :]
        assert shape(edited, cache) == shape(edited)
        if order.random() < 0.3 and not isinstance(shape(edited), ParseFailure):
            text = edited
