"""Random functions of lists, dicts, arrays, helpers and functions inside, against central differences.

A derivative is correct as its page describes, or refused. Some are refused by an assertion at run time, if
only the values show whether two names are one array.
"""

from __future__ import annotations

from collections import Counter
from itertools import count, islice

import pytest

from support.derived import answer, trials
from support.random_containers import Author

EACH = 50


@pytest.mark.parametrize("arrays", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_a_derivative_of_containers_is_right_or_refused(arrays: bool, quick: bool) -> None:
    each = EACH // 5 if quick else EACH
    answers = Counter(
        (mode, answer(trial, text, mode, slopes))
        for text, trial, slopes in islice(trials(Author(seed, arrays).file() for seed in count()), each)
        for mode in ("forward", "reverse")
    )
    assert answers["forward", "right"] > each * 0.8
    assert answers["reverse", "right"] > each * 0.4
