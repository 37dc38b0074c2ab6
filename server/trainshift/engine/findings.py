"""Run the restrictions, and the checks of static graphs, on one program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.finding import Finding, Verdict
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.rule import Restriction
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.names.linked_program import LinkedProgram
from trainshift.python.source.edit import Change
from trainshift.python.source.source import Span
from trainshift.restrictions import HAZARDS, RESTRICTIONS
from trainshift.static_graphs.codes import STATIC_CODES, StaticCode
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.step_names import STEPPING

log = logging.getLogger(__name__)
ALL_CODES = frozenset(rule.code for rule in RESTRICTIONS)
ON_LOOPS = frozenset(code for code in ALL_CODES if code.startswith("TL"))
"""The restrictions on training loops, which are asked of a whole program."""
_HAZARD_CODES = frozenset(rule.code for rule in HAZARDS)
_HIDING_LOOPS = frozenset({"train", *STEPPING}) | api.last_names(
    *api.SESSION, *MONITORED, *api.ESTIMATOR, *api.STRATEGY
)
_LOGGED: set[tuple[str, str, str]] = set()


class Judgement(Struct, frozen=True):
    """The findings of the restrictions in a program, in text order.

    `defects` are the error messages of failed restrictions, `failed` their codes.  `by_hand` summarizes the
    existing distribution of a program that its own file starts.
    """

    found: tuple[Finding, ...]
    defects: tuple[str, ...] = ()
    failed: frozenset[str] = frozenset()
    by_hand: str = ""

    def joined(self, other: Judgement) -> Judgement:
        """Merge two judgements; only the other one has the summary of the existing distribution."""
        found = sorted((*self.found, *other.found), key=lambda each: (each.span, each.code))
        defects = (*self.defects, *other.defects)
        return Judgement(tuple(found), defects, self.failed | other.failed, other.by_hand)


def find(
    program: Program,
    codes: Collection[str] = ALL_CODES,
    pause: Callable[[], None] = lambda: None,
) -> Judgement:
    """Check the restrictions `codes`; a failing one is a defect and does not stop the others.

    Hazards are checked for the whole linked program, and reported if they are in the script's own file.
    `pause` is called repeatedly, and may raise to abort the check.
    """
    rules: tuple[Restriction | StaticCode, ...] = (*RESTRICTIONS, *STATIC_CODES)
    asked = [rule for rule in rules if rule.code in codes and rule.code not in _HAZARD_CODES]
    judgement = _asked(asked, program, pause)
    if _HAZARD_CODES.isdisjoint(codes) or not uses_horovod(program):
        return judgement
    linked = [program.script] if program.script.workspace is None else program.script.linked
    joins = len(linked) > 1 and program.script.scripts == (program.script,)
    asked_of = Program(LinkedProgram(linked), choices=program.choices) if joins else program
    hazards = hazards_of(asked_of, codes, pause)
    starts = asked_of.script.scripts[0].path == program.script.path and _HAZARD_CODES.issubset(codes)
    by_hand = _by_hand(asked_of, hazards) if starts else ""
    if joins:
        hazards = replace(hazards, found=tuple(own_of(asked_of, hazards.found, program.script.path)))
        asked_of.forget_facts()
    return judgement.joined(replace(hazards, by_hand=by_hand))


def _by_hand(whole: Program, hazards: Judgement) -> str:
    """A summary of how a program was distributed by hand, with the number of its mistakes."""
    from trainshift.training.distribution_summary import ByHand
    from trainshift.training.ranks.branches import Branches

    if not whole.fact(Branches).is_judged or hazards.defects:
        return ""
    done = whole.fact(ByHand).text
    number = sum(each.verdict is Verdict.VIOLATED for each in hazards.found)
    return f"already distributed: {done}; {number or 'no'} hazard{'' if number == 1 else 's'}" if done else ""


def uses_horovod(program: Program) -> bool:
    """Return whether the program's script, or one that it imports, imports Horovod."""
    workspace = program.script.workspace
    return any(
        binding.full_name.partition(".")[0] == "horovod"
        for script in (*program.script.scripts, *(workspace.reachable if workspace is not None else ()))
        for binding in script.imports
    )


def may_train(program: Program) -> bool:
    """Return whether a program has a loop, or a call that the conversion may refuse as a hidden one."""
    if program.fact(Loops).all:
        return True
    calls = program.script.sites_named(*_HIDING_LOOPS)
    return any(True for _ in (*calls, *program.fact(Libraries).sites(Role.TRAINS)))


def hazards_of(
    program: Program,
    codes: Collection[str] = _HAZARD_CODES,
    pause: Callable[[], None] = lambda: None,
) -> Judgement:
    """The hazards of a whole program, with places in its joined text; none without Horovod."""
    from trainshift.training.ranks.branches import Branches

    if not program.fact(Branches).is_judged:
        return Judgement(())
    return _asked([rule for rule in HAZARDS if rule.code in codes], program, pause)


def own_of(whole: Program, found: Collection[Finding], path: str) -> Iterator[Finding]:
    """The findings of a program of several files that are in the file at `path`, with offsets in
    that file.
    """
    for each in found:
        script, _ = whole.script.at(each.span.start)
        if script.path != path:
            continue
        start = whole.script.start_of(script)
        related = []
        for other in each.related:
            home, _ = whole.script.at(other.span.start)
            span = _moved(other.span, whole.script.start_of(home))
            related.append(replace(other, span=span, script=None if home is script else home))
        fix = _of_file(each.fix, start, len(script.source.text)) if each.fix is not None else None
        yield replace(each, span=_moved(each.span, start), related=tuple(related), fix=fix, concerns=())


def _moved(span: Span, start: int) -> Span:
    return Span(span.start - start, span.end - start)


def _of_file(change: Change, start: int, size: int) -> Change | None:
    """A change whose edits are all in one file, with that file's offsets; None for any other."""
    edits = (*change.edits, *change.requires)
    if not all(start <= edit.start and edit.end <= start + size for edit in edits):
        return None
    return replace(
        change,
        target=_moved(change.target, start),
        edits=tuple(edit.moved(-start) for edit in change.edits),
        requires=tuple(edit.moved(-start) for edit in change.requires),
    )


def _asked(
    rules: Collection[Restriction | StaticCode], program: Program, pause: Callable[[], None]
) -> Judgement:
    """The findings of some restrictions in a program."""
    found: list[Finding] = []
    defects: list[str] = []
    failed: set[str] = set()
    with program.names.memo.pausing(pause):
        for rule in rules:
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
    """Log the failure of a restriction once, because it repeats while a script is edited."""
    known = code, type(error).__name__, str(error)
    if known in _LOGGED:
        log.debug("%s failed again: %s", code, error)
    else:
        _LOGGED.add(known)
        log.exception("%s failed", code)
