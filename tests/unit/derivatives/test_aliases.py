"""Aliases, exits of loops, and evaluation order: correct or refused, in both modes.

The functions are in ``fixtures/derivatives/aliases*.py`` with their points (``# at:``). A comment lists
refusals, shared objects for which the gradient transposes tangents, and run-time checks.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from types import ModuleType

import pytest

from support.derived import FOLDER, Trial, alone, answer, point, trials
from support.random_aliases import Author
from support.random_rows import Author as RowAuthor
from trainshift.derivatives import Derived, derive
from trainshift.derivatives.reading import analysis
from trainshift.derivatives.reading.result import Mode, Refusal
from trainshift.derivatives.reverse.control_flow import Ways
from trainshift.python.flow import solver
from trainshift.python.values import heap

TEXT = (FOLDER / "aliases.py").read_text(encoding="utf-8")
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("aliases*.py"))}
MODES: tuple[Mode, ...] = ("forward", "reverse")
EACH = 100


def _cases() -> dict[str, tuple[str, list[str]]]:
    """The functions that have a point: the file, and the lines with the comments above them."""
    found = {}
    for file, text in TEXTS.items():
        blocks = re.split(r"\n{3,}", text)
        for lines in (block.strip().splitlines() for block in blocks if "# at: " in block):
            (name, *_) = re.findall(r"^def (\w+)", "\n".join(lines), re.MULTILINE)
            found[name] = file, lines
    return found


CASES = _cases()


def _noted(lines: list[str], mode: Mode, what: str) -> set[str]:
    """The notes in comments about a mode: refused, or shared so that tangents are transposed."""
    notes = [note for line in lines if "# " in line for note in line.partition("# ")[2].split("; ")]
    return {note.partition(f"{what}: ")[2] for note in notes if re.match(rf"({mode} )?{what}: ", note)}


def _said(found: tuple[Refusal, ...]) -> set[str]:
    return {re.sub(r" \(line \d+\)", "", each.message) for each in found}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_derivative_is_right_or_refused_as_noted(name: str, mode: Mode) -> None:
    file, lines = CASES[name]
    text = alone(TEXTS[file], name)
    (at,) = (line for line in lines if line.startswith("# at: "))
    given = point(at[6:])
    fixed = tuple(each for each, value in given.items() if isinstance(value, int))
    wanted = _noted(lines, mode, "refused")
    found = derive(text, name, mode, [each for each in given if each not in fixed])
    if wanted:
        assert not isinstance(found, Derived)
        assert _said(found.refusals) == wanted
        return
    assert isinstance(found, Derived), found
    assert _said(found.shared) == _noted(lines, mode, "shared")
    asked = [line.partition(" asks: ")[2] for line in lines if line.startswith(f"# {mode} asks: ")]
    trial = Trial(text, name, copy.deepcopy(given), fixed)
    check = trial.forward if mode == "forward" else trial.reverse
    if asked:
        with pytest.raises(AssertionError, match=re.escape(asked[0])):
            check()
    else:
        check()


def _functions() -> Iterator[tuple[str, Trial, list[float]]]:
    return trials((Author(seed).file() for seed in range(10_000)), ("n",))


def test_random_functions_about_names_are_right_or_refused(quick: bool) -> None:
    each = EACH // 10 if quick else EACH
    answers = Counter(
        (mode, answer(trial, text, mode, slopes))
        for text, trial, slopes in islice(_functions(), each)
        for mode in MODES
    )
    assert answers["forward", "right"] > each * 0.6
    assert answers["reverse", "right"] > each * 0.6


def test_random_functions_that_share_rows_are_right_or_refused(quick: bool) -> None:
    each = EACH // 10 if quick else EACH // 2
    written = (RowAuthor(seed).file() for seed in range(10_000))
    answers = Counter(
        (mode, answer(trial, text, mode, slopes))
        for text, trial, slopes in islice(trials(written), each)
        for mode in MODES
    )
    assert answers["forward", "right"] > each * 0.8
    assert answers["reverse", "right"] > each * 0.8


def _chain(size: int) -> str:
    """A function whose value depends on its parameter only after as many iterations as there are names."""
    lines = ["def f(x):", *(f"    v{place} = 0.0" for place in range(size))]
    lines.append(f"    for i in range({size + 5}):")
    lines += [f"        v{place} = v{place + 1} * 1.0" for place in range(size - 1)]
    return "\n".join([*lines, f"        v{size - 1} = x * x", "    return v0"]) + "\n"


@pytest.mark.parametrize("mode", MODES)
def test_dependence_is_followed_through_any_number_of_names(mode: Mode) -> None:
    trial = Trial(_chain(60), "f", {"x": 1.5})
    trial.forward() if mode == "forward" else trial.reverse()


def test_readings_without_end_are_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "READINGS_FOR_A_NAME", 0)
    found = derive(_chain(3), "f")
    assert not isinstance(found, Derived)
    (refusal,) = found.refusals
    assert refusal.message == "f cannot be analysed: after 1 passes, its active variables are still unknown"


@pytest.mark.parametrize(("module", "bound"), [(solver, "_MOST"), (heap, "MOST_OBJECTS")])
def test_pairs_of_names_without_end_are_a_refusal(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, bound: str
) -> None:
    monkeypatch.setattr(module, bound, 1)
    found = derive(alone(TEXT, "chain_of_four"), "chain_of_four")
    assert not isinstance(found, Derived)
    (refusal,) = found.refusals
    said = (
        "Trainshift cannot tell which names of chain_of_four share an object: split it into smaller functions"
    )
    assert refusal.message == said


def _nested(depth: int) -> str:
    """Nested functions, each of which calls the next one."""
    lines = ["def f(x):"]
    for place in range(depth):
        lines.append(f"{'    ' * (place + 1)}def g{place}(v):")
    lines.append(f"{'    ' * (depth + 1)}return v * x")
    for place in reversed(range(depth)):
        lines.append(f"{'    ' * (place + 1)}return g{place}({'v' if place else 'x'})")
    return "\n".join(lines) + "\n"


def test_functions_inside_functions_are_gone_through_once_for_each_around_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = 0
    run = Ways.run

    def counted(way: Ways) -> None:
        nonlocal runs
        runs += 1
        run(way)

    monkeypatch.setattr(Ways, "run", counted)
    Trial(_nested(12), "f", {"x": 1.5}).reverse()
    assert runs < 12 * 12 * 2
