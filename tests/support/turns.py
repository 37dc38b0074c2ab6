"""Turns: of many similar inputs, a commit tries a share, and the next commit another one.

`by_kind` shares the cases of a test so that at least one of each kind has its turn.

`pytest --all-turns` tries every input.  The header of a run names the commit whose turn it is.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import pytest

_T = TypeVar("_T")
_ROOT = Path(__file__).parents[2]


@cache
def commit() -> str:
    """The current commit, in hexadecimal digits; `0` if there is none."""
    asked = subprocess.run(
        ["git", "rev-parse", "--quiet", "--verify", "HEAD"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "0"


def _turn(name: str, one_in: int) -> int:
    """A number below `one_in` for a name and the commit; different names are independent."""
    return int(sha256(f"{commit()} {name}".encode()).hexdigest(), 16) % one_in


def has_turn(name: str, one_in: int, place: int = 0) -> bool:
    """True for one in this many names, or places of one name; the selection depends on the commit."""
    return (_turn(name, one_in) + place) % one_in == 0


def by_kind(
    cases: Iterable[_T], kind: Callable[[_T], Hashable], one_in: int, name: Callable[[_T], str]
) -> pytest.MarkDecorator:
    """Parametrize a test by `case`: of the cases of one kind, one in so many has its turn, of fewer all."""
    row = list(cases)
    sizes, places = Counter(map(kind, row)), Counter[Hashable]()
    found = []
    for case in row:
        of = kind(case)
        marks = [pytest.mark.in_turns(one_in, str(of), places[of])] if sizes[of] >= one_in else []
        places[of] += 1
        found.append(pytest.param(case, id=name(case), marks=marks))
    return pytest.mark.parametrize("case", found)


class Turns:
    """The inputs of one test that this commit tries: all of them, or a share."""

    def __init__(self, test: str, every: bool) -> None:
        self._test = test
        self._every = every

    def of(self, inputs: Iterable[_T], one_in: int) -> list[_T]:
        """One in so many of the inputs, as they lie in a row; all where every turn is taken."""
        row = list(inputs)
        if self._every:
            return row
        return row[_turn(f"inputs of {self._test}", one_in) :: one_in]
