"""Turns: of many inputs that are much alike, a commit tries a share, and the next commit another one.

`pytest --all-turns` tries every input.  The header of a run names the commit whose turn it is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

_T = TypeVar("_T")
_ROOT = Path(__file__).parents[1]


@cache
def commit() -> str:
    """The commit that is checked out, in hexadecimal digits; `0` where there is none."""
    asked = subprocess.run(
        ["git", "rev-parse", "--quiet", "--verify", "HEAD"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "0"


def _turn(name: str, one_in: int) -> int:
    """A number below `one_in` for a name, another one with each commit."""
    return (crc32(name.encode()) + int(commit(), 16)) % one_in


def has_turn(name: str, one_in: int) -> bool:
    """True for one in so many names, which ones depends on the commit."""
    return _turn(name, one_in) == 0


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
        return row[_turn(self._test, one_in) :: one_in]
