"""Divergence: the calls of libraries whose results differ from one process to the next.

Entries of libraries, and method names for unknown objects, state it.  Draws that a seed makes equal are not
included: `training/uniformity/draws.py` handles them.
"""

from __future__ import annotations

import re
from enum import Enum

from trainshift.libraries import entries
from trainshift.libraries.entries import Role
from trainshift.libraries.methods import named


class CauseKind(Enum):
    """The reason why a value may differ between ranks."""

    RANK = "depends on the rank"
    DATA = "comes from a rank's own data"
    DRAW = "is drawn at random"
    PERHAPS = "may be drawn at random"
    CLOCK = "comes from a rank's own clock"
    HOST = "comes from the machine"
    DISK = "comes from a rank's own disk"
    UNSURE = "may come from a rank's own disk"
    NET = "comes from a service"
    SIGNAL = "is set by a signal"


KINDS = {
    "clock": CauseKind.CLOCK,
    "disk": CauseKind.DISK,
    "draw": CauseKind.DRAW,
    "machine": CauseKind.HOST,
    "perhaps": CauseKind.PERHAPS,
    "service": CauseKind.NET,
}
"""The causes by the words of entries."""
_DRAWING = ("sklearn", "imblearn")
"""The libraries whose draws of rows an argument fixes."""


def _names(flag: str = "") -> frozenset[str]:
    drawing = (each for package in _DRAWING for each in entries.table(package).values())
    return frozenset(
        each.pattern.rpartition(".")[2]
        for each in drawing
        if each.role is Role.DRAWS and (not flag or each.data.get(flag))
    )


METHODS = dict.fromkeys(named("drawing"), CauseKind.DRAW) | dict.fromkeys(
    named("finding_files"), CauseKind.DISK
)
"""Methods that draw elements, or a hyperparameter in a search for the best, or that look for files."""
SPLITTING = _names("splits")
"""The functions of scikit-learn that split rows at random; an argument `random_state` fixes each."""
BY_STATE = _names()
"""These, and what scikit-learn and imbalanced-learn draw rows by, which is fixed in the same way."""
CHOOSING_ROWS = BY_STATE | named("choosing_rows")
"""These, and what else draws some rows out of those that it is given."""
UNLESS_TOLD = _names("told")
"""The splitting functions that draw only if their arguments ask for a shuffle."""
SIZED = named("sized")
"""The functions whose result has the requested number of elements."""
CHOOSING = named("choosing")
"""The functions that return the elements with some value, of at most two arguments."""
TESTING = named("testing")
"""The functions that return the elements for which a function holds."""
DROPPING = named("dropping")
"""The functions that drop elements at random."""
DRAWING_AS_MANY = named("choosing_rows") - DROPPING
"""The functions that draw a requested number of elements, or a fraction (`frac=`), from their argument or
receiver.
"""
CUTTING = named("cutting")
"""The functions that return a part, of a requested length, of their argument or receiver."""


_SPLITS = re.compile(r"(^|_)(split|k_?fold|train_test|train_val)|split(s|_data|_dataset)?$|(Split|Fold)$")
# Prefixes of functions that return a split which somebody else has made.
_READING = ("get_", "load_", "read_")
_BY_CHANCE = re.compile(r"random|shuffle", re.IGNORECASE)
_ASKS = re.compile(
    r"(ask|suggest|sample|draw|propose)(_|$)"
    r"|(get_)?(next|new|best|random)_(candidate|config|hyper_?param|param|point|suggestion|trial)\w*$"
    r"|rand(int|n|om)?$|(get_)?random_(choice|element|float|int|integer|number|uniform|value)s?$"
)


def may_draw(name: str) -> bool:
    """Return whether the name of an unknown library's function says that it splits rows, or that it chooses
    parameters.
    """
    is_read = name.startswith(_READING) and not _BY_CHANCE.search(name)
    return (_SPLITS.search(name) is not None and not is_read) or asks(name)


def asks(name: str) -> bool:
    """Return whether the name of a library's function says that it chooses parameters, or draws some."""
    return _ASKS.match(name) is not None


def is_by_chance(name: str) -> bool:
    """Return whether the name of a function says that it draws, whatever its object is."""
    return asks(name) or (_SPLITS.search(name) is not None and _BY_CHANCE.search(name) is not None)


def cause_of(full_name: str) -> CauseKind | None:
    """Return the reason why the result of a library's function differs between processes; None if it does
    not.
    """
    found = entries.fact(full_name, "differs")
    return None if found is None else KINDS[found]


def applies(full_name: str) -> bool:
    """Return whether a library's function returns the result of calling one of its arguments."""
    return entries.fact(full_name, "applies") is not None
