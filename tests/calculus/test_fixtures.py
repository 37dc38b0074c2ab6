"""The cases of ``fixtures/calculus``: what each command answers for a term."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fixtures import ROOT, rewrite_blocks
from trainshift.cli.main import cli
from trainshift.dev.examples import Example, read_examples

FILES = sorted((ROOT / "calculus").glob("ad*.md"))
CASES = [(path, example) for path in FILES for example in read_examples(path)]


def answer(command: str, term: str) -> str:
    """What `trainshift calculus COMMAND -` prints for a term."""
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
