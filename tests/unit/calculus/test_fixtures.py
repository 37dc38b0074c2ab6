"""The cases of ``fixtures/calculus``: the answer of each command to a term."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.fixtures import ROOT, rewrite_blocks
from trainshift.calculus import parse
from trainshift.cli.main import cli
from trainshift.dev.examples import Example, read_examples
from unit.calculus.random_terms import parts_of

FILES = sorted((ROOT / "calculus").glob("ad*.md"))
CASES = [(path, example) for path in FILES for example in read_examples(path)]


def answer(command: str, term: str) -> str:
    """The output of `trainshift calculus COMMAND -` for a term."""
    result = CliRunner().invoke(cli, ["calculus", *shlex.split(command), "-"], input=term.encode())
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


@pytest.mark.parametrize(
    ("path", "example"), CASES, ids=[f"{path.stem}: {each.heading}" for path, each in CASES]
)
def test_case_is_answered_as_it_says(path: Path, example: Example, update_fixtures: bool) -> None:
    term = example.blocks["text term"]
    expected = {kind: text for kind, text in example.blocks.items() if kind != "text term"}
    assert expected
    blocks = {kind: answer(kind.removeprefix("text "), term) for kind in expected}
    if update_fixtures:
        rewrite_blocks(path, example.heading, blocks)
    else:
        assert blocks == expected


def test_the_case_of_each_clause_has_its_construct() -> None:
    """For each set of rules every construct has a row, which names a case with it in its term."""
    table = (ROOT.parent / "server" / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| S4 ([\d.]+) \| `D?⟦(.*)⟧` \|[^|]*\| (ad[012]\d): (.*?) \|", table, re.M)
    terms = {(path.stem[:4], each.heading): each.blocks["text term"] for path, each in CASES}
    told: dict[str, set[type]] = {}
    for section, clause, *case in rows:
        construct = type(parse("0" if clause == "c" else clause))
        assert construct in {*map(type, parts_of(parse(terms[case[0], case[1]])))}, (section, clause)
        told.setdefault(section, set()).add(construct)
    assert {section: len(each) for section, each in told.items()} == {
        **dict.fromkeys(("1.1", "1.2", "1.3"), 18),
        **dict.fromkeys(("2.1", "3.1", "3.3"), 16),
    }
