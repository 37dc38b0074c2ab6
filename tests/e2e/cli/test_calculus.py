"""The command `calculus`: its output, and the exit statuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from e2e.cli.conftest import Run
from trainshift.cli.main import cli


@pytest.fixture
def square(here: Path) -> str:
    (here / "square.txt").write_text("λx. x * x // by itself\n", encoding="utf-8")
    return "square.txt"


def test_a_term_is_shown_run_and_transformed(run: Run, square: str) -> None:
    assert run("calculus", "show", square).stdout == "λx. x * x\n"
    assert run("calculus", "show", square, "--ascii").stdout == "\\x. x * x\n"
    assert run("calculus", "run", square).stdout == "a function\n"
    assert run("calculus", "run", square, "--at", "-7/2").stdout == "49/4\n"
    assert run("calculus", "run", square, "--at", "3", "--dual").stdout == "(9, 6)\n"
    assert run("calculus", "run", square, "--at", "3", "--steps").stdout.splitlines()[0] == "9"
    assert run("calculus", "transform", "cps", square).stdout == "λx. λk. k (x * x)\n"
    assert run("calculus", "transform", "cps", square, "--at", "3").stdout == "9\n"


@pytest.mark.parametrize("rules", ["forward", "reverse-shift", "reverse-meta", "reverse"])
def test_derivatives(run: Run, square: str, rules: str) -> None:
    assert run("calculus", "transform", rules, square, "--at", "5").stdout == "10\n"
    text = run("calculus", "transform", rules, square).stdout
    assert run("calculus", "run", "-", "--at", "5", input=text.encode()).stdout == "10\n"


def test_terms_are_equal_but_for_bound_names(run: Run, square: str) -> None:
    same = run("calculus", "equal", square, "-", input=b"\\y. y * y")
    assert (same.exit_code, same.stdout) == (0, "equal\n")
    other = run("calculus", "equal", square, "-", input=b"\\y. y * (y + 1)")
    assert (other.exit_code, other.stdout) == (1, "")
    assert "square.txt has\n    x\nwhere standard input has\n    y + 1\n" in other.stderr
    assert run("calculus", "equal", "-", "-", input=b"1").exit_code == 2


@pytest.mark.parametrize(
    ("args", "term", "status", "said"),
    [
        (("run", "-"), "1 2", 1, "standard input: stuck: 1 is not a function, in\n    1 2\n"),
        (("transform", "reverse", "-"), "λx. y", 1, "standard input: refused: y is free"),
        (("transform", "forward", "-"), "λx. shift k in x", 1, "shift cannot be differentiated"),
        (("show", "-"), "let x = 1\n\tin )", 2, "standard input:2:5: error: A term is missing before ')'."),
        (("show", "-"), "let x = 1\n\tin )", 2, "\n    \tin )\n    \t   ^\n"),
        (("run", "-", "--at", "("), "λx. x", 2, "--at '(' is not a term"),
        (("run", "-", "--dual", "--at", "()"), "λx. x", 2, "--at '()' is not a number"),
        (("show", "missing.txt"), "", 2, "missing.txt: error: cannot be read: no such file or directory"),
        (("transform", "sideways", "-"), "1", 2, "'sideways' is not one of"),
        (("transform", "reverse", "-", "--at", "1"), "5", 1, "stuck"),
    ],
)
def test_what_goes_wrong_has_a_status(
    run: Run, here: Path, args: tuple[str, ...], term: str, status: int, said: str
) -> None:
    result = run("calculus", *args, input=term.encode())
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr


def test_the_help_teaches(run: Run) -> None:
    text = run("calculus", "--help").stdout
    assert "case e of x ⇒ e or y ⇒ e" in text
    assert "AD19" in run("calculus", "transform", "--help").stdout
    assert "calculus" in run("--help").stdout


def test_it_is_loaded_only_when_it_is_asked_for() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom trainshift.cli.main import cli\n"
        "print(CliRunner().invoke(cli, ['--help']).exit_code)\n"
        "names = {'calculus', 'derivatives', 'proving', 'static_graphs', 'engine'}\n"
        "print([each for each in sys.modules if names & {each.removeprefix('trainshift.').split('.')[0]}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n[]\n"


def test_the_help_has_the_first_sentence_of_each_command(run: Run) -> None:
    """They are complete, including those of unloaded commands."""
    text = " ".join(run("--help").stdout.split())
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command
        assert f"{name} {command.get_short_help_str(200)}" in text, name
