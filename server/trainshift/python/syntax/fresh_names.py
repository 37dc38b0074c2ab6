"""Fresh names: the one rule for finding an unused name."""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import count
from keyword import iskeyword


def fresh_name(
    base: str,
    taken: Container[str] | Callable[[str], bool],
    *,
    first: int = 1,
    numbered: bool = False,
    separator: str = "_",
) -> str:
    """`base` if it is free, else `base` with the first number from `first` on that makes it so.

    `taken` holds the names that are not free, or answers whether one is not.  With `numbered`, the name
    always has a number.
    """
    is_taken = taken if callable(taken) else taken.__contains__
    if not numbered and not is_taken(base) and not iskeyword(base):
        return base
    found = (f"{base}{separator}{number}" for number in count(first))
    return next(name for name in found if not is_taken(name) and not iskeyword(name))
