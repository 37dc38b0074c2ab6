"""Random functions of lists, dicts, arrays, helpers and functions inside, against central differences.

A derivative is right in all that SPEC-AD 3.1 says, or refused: nothing else. Some are refused by an assertion
when they run, where only the values tell whether two names are one array.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest
from derived import Trial, alike, loaded, numbers
from random_containers import Author

from trainshift.derivatives import Derived, derive

EACH = 50
ASKED = (
    "are one array, which is changed",
    "are one, which is changed",
    "where it is added or repeated",
    "where it is added to",
)


def functions(arrays: bool) -> Iterator[tuple[str, Trial, list[float]]]:
    """Texts with a trial at a point where the function is smooth, and the difference along its direction."""
    for seed in count():
        text, args = Author(seed, arrays).file()
        try:
            trial = Trial(text, "f", args)
            found = trial.differences(loaded(text).f, 1e-4)
            again = trial.differences(loaded(text).f, 3e-5)
        except (ArithmeticError, LookupError, TypeError, ValueError, NameError):
            continue
        pairs = list(zip(found, again, strict=True))
        if numbers(trial.value) and all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs):
            yield text, trial, found


def answer(trial: Trial, text: str, mode: Any, slopes: list[float]) -> str:
    """`refused` or `right`, of one mode."""
    made = derive(text, "f", mode, trial.wrt)
    if not isinstance(made, Derived):
        assert not any("mistake of Trainshift" in each.message for each in made.refusals), text
        return "refused"
    args, after = copy.deepcopy(trial.args), copy.deepcopy(trial.args)
    loaded(text).f(**after)
    given = trial.along() if mode == "forward" else {"value_bar": 1.0}
    try:
        value, found = getattr(loaded(made.text), made.made)(**args, **given)
    except AssertionError as asked:
        if str(asked).endswith(ASKED):
            return "refused"
        raise
    assert numbers(value) == numbers(trial.value), text
    assert repr(args) == repr(after), text
    if mode == "reverse":
        assert all(alike(bar, trial.args[name]) for name, bar in zip(trial.wrt, found, strict=True)), text
        steps = [step for name in trial.wrt for step in trial.steps[name]]
        found = sum(a * b for a, b in zip(numbers(list(found)), steps, strict=True))
    assert numbers(found) == pytest.approx(slopes, rel=1e-5, abs=1e-5), text
    return "right"


@pytest.mark.parametrize("arrays", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_a_derivative_of_containers_is_right_or_refused(arrays: bool, quick: bool) -> None:
    each = EACH // 5 if quick else EACH
    answers = Counter(
        (mode, answer(trial, text, mode, slopes))
        for text, trial, slopes in islice(functions(arrays), each)
        for mode in ("forward", "reverse")
    )
    assert answers["forward", "right"] > each * 0.8
    assert answers["reverse", "right"] > each * 0.4
