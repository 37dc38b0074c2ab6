"""Runs the restrictions, and the checks of static graphs, on one program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.restrictions import RESTRICTIONS
from trainshift.restrictions.restriction import Restriction
from trainshift.static_graphs.codes import STATIC_CODES, StaticCode

log = logging.getLogger(__name__)
ALL_CODES = frozenset(rule.code for rule in RESTRICTIONS)
ON_LOOPS = frozenset(code for code in ALL_CODES if code.startswith("TL"))
"""The restrictions on training loops, which are asked of a whole program."""
_LOGGED: set[tuple[str, str, str]] = set()


@dataclass(frozen=True)
class Judgement:
    """What the restrictions say of a program, in text order.

    `defects` say which restrictions failed and how, `failed` are their codes.
    """

    found: tuple[Finding, ...]
    defects: tuple[str, ...] = ()
    failed: frozenset[str] = frozenset()


def find(
    program: Program, codes: Collection[str] = ALL_CODES, pause: Callable[[], None] = lambda: None
) -> Judgement:
    """Check the restrictions `codes`; one that fails is a defect and does not sink the others.

    `pause` is called again and again, and may raise to give the check up.
    """
    found: list[Finding] = []
    defects: list[str] = []
    failed: set[str] = set()
    with program.names.memo.pausing(pause):
        rules: tuple[Restriction | StaticCode, ...] = (*RESTRICTIONS, *STATIC_CODES)
        for rule in rules:
            if rule.code not in codes:
                continue
            pause()
            try:
                found += rule.check(program)
            except RecursionError:
                raise
            except Exception as error:
                _log_once(rule.code, error)
                failed.add(rule.code)
                defects.append(f"{rule.code} failed on this script ({type(error).__name__}: {error})")
    found.sort(key=lambda each: (each.span, each.code))
    return Judgement(tuple(found), tuple(defects), frozenset(failed))


def _log_once(code: str, error: Exception) -> None:
    """Log how a restriction failed; while a script is edited it does so again and again."""
    known = code, type(error).__name__, str(error)
    if known in _LOGGED:
        log.debug("%s failed again: %s", code, error)
    else:
        _LOGGED.add(known)
        log.exception("%s failed", code)
