"""Diffs on a terminal: the changed words, and both files if it is wide."""

from __future__ import annotations

import io
import sys

import pytest

from trainshift.cli.diff import unified_diff
from trainshift.cli.diff_view import WIDE, show
from trainshift.cli.terminal import Printer, Segment, width_of

OLD = b"import a\nlr = Adam(0.1)\ny = 2\n# " + b"z" * 200 + b"\nend\n"
NEW = b"import a\nimport b\nlr = Adam(0.1 * hvd.size())\nq = [1]\n# " + b"z" * 200 + b"\nend\n"


class Lines(Printer):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), False)
        self.lines: list[tuple[Segment, ...]] = []

    def line(self, *segments: Segment) -> None:
        self.lines.append(segments)


def shown(
    monkeypatch: pytest.MonkeyPatch, columns: int, diff: bytes | None = None
) -> list[tuple[Segment, ...]]:
    terminal = io.StringIO()
    terminal.isatty = lambda: columns > 0  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    printer = Lines()
    show(printer, unified_diff(OLD, NEW, "train.py") if diff is None else diff, "utf-8")
    return printer.lines


def text(line: tuple[Segment, ...]) -> str:
    return "".join(each for each, _ in line)


@pytest.mark.parametrize("columns", [0, 80, WIDE - 1])
def test_the_lines_are_those_of_the_diff(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    diff = unified_diff(OLD, NEW, "train.py")
    assert [text(each) for each in shown(monkeypatch, columns)] == diff.decode().splitlines()


def test_the_words_that_changed_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80)
    (changed,) = [each for each in lines if text(each).startswith("+lr")]
    assert "".join(each for each, style in changed if "reverse" in style) == " * hvd.size()"
    # Lines with nothing in common are shown as two.
    assert (("-y = 2", "red"),) in lines
    assert (("+q = [1]", "green"),) in lines


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("f(x)", "f(g(x))", ["g(", ")"]),
        ("opt = optimizers.SGD(0.1)", "opt = optimizers.SGD(0.1 * hvd.size())", [" * hvd.size()"]),
        ("print(loss)", "    print(loss)", []),
        ("  print(loss)", "    print(loss, flush=True)", [", flush=True"]),
    ],
)
def test_each_changed_word_is_marked_once_and_no_indentation(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, marked: list[str]
) -> None:
    diff = unified_diff(old.encode() + b"\n", new.encode() + b"\n", "train.py")
    changed = shown(monkeypatch, 80, diff)[-1]
    assert text(changed) == f"+{new}"
    assert [each for each, style in changed if "reverse" in style] == marked


def test_both_files_stand_side_by_side_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [text(each) for each in shown(monkeypatch, WIDE)][2:]
    assert all(width_of(each) <= WIDE for each in lines)
    halves = [tuple(half.strip() for half in each.split(" │ ")) for each in lines[1:]]
    assert halves[:4] == [
        ("1 import a", "1 import a"),
        ("", "2 import b"),
        ("2 lr = Adam(0.1)", "3 lr = Adam(0.1 * hvd.size())"),
        ("3 y = 2", "4 q = [1]"),
    ]
    # A long line continues below.
    assert sum("zz" in left for left, _ in halves) > 1
    assert halves[-1] == ("5 end", "6 end")


def test_a_file_without_a_last_line_feed_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    diff = unified_diff(b"a = 1", b"a = 2\n", "x.py")
    assert any("No newline" in text(each) for each in shown(monkeypatch, 80, diff))
    assert [text(each).strip() for each in shown(monkeypatch, WIDE, diff)][-1].split() == [
        "1",
        "a",
        "=",
        "1",
        "│",
        "1",
        "a",
        "=",
        "2",
    ]
