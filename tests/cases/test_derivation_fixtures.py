"""The cases of ``fixtures/derivatives/ad*.md``: the derivative of a function, and its values."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.derived import FOLDER, loaded
from support.fixtures import rewrite_blocks
from trainshift.cli.main import cli
from trainshift.dev.examples import Example, read_examples

CASES = [(path, example) for path in sorted(FOLDER.glob("ad*.md")) for example in read_examples(path)]


def differentiated(source: str, arguments: str) -> tuple[str, str]:
    """The output of `trainshift differentiate model.py:ARGUMENTS -o -`; a refusal prints nothing."""
    Path("model.py").write_text(source, encoding="utf-8")
    words = shlex.split(arguments)
    result = CliRunner().invoke(cli, ["differentiate", f"model.py:{words[0]}", *words[1:], "-o", "-"])
    assert result.exit_code == (0 if result.stdout else 1), result.output
    return result.stdout, result.stderr


def made(source: str, text: str) -> str:
    """The functions of a file that were made from `source`, without imports and helpers."""
    blocks = [each.strip("\n") + "\n" for each in re.split(r"\n{3,}", text)]
    return "\n\n".join(each for each in blocks if each.startswith("# Made by ") and each not in source)


@pytest.mark.parametrize(
    ("path", "example"), CASES, ids=[f"{path.stem}: {each.heading}" for path, each in CASES]
)
def test_case_is_answered_as_it_says(
    path: Path, example: Example, update_fixtures: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block named like a call contains its value, any other the output of `differentiate`.

    The made functions are shown, and with `-o -` the whole file.
    """
    monkeypatch.chdir(tmp_path)
    source = text = example.blocks["python"]
    expected = {kind: text for kind, text in example.blocks.items() if kind != "python"}
    assert expected
    found: dict[str, str] = {}
    for kind in expected:
        said = kind.partition(" ")[2]
        if said.endswith(")"):
            found[kind] = f"{eval(said, vars(loaded(text)))!r}\n"
        else:
            text, report = differentiated(source, said.removesuffix(" -o -"))
            shown = text if said.endswith(" -o -") else made(source, text)
            found[kind] = shown if text else report
    if update_fixtures:
        rewrite_blocks(path, example.heading, found)
    else:
        assert found == expected
