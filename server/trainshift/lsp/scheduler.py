"""Scheduler: the open programs, and the thread that checks them.

Every version of a program is checked in three steps: at once (the changed statements, a few milliseconds, on
the caller's thread), in full when typing pauses, and then for possible changes. A new version aborts a full
step in progress, so typing never waits.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.checking import CheckReport, Diagnostic, Weigh
from trainshift.engine.effects.outcomes import Effects
from trainshift.engine.incremental import Live, Shift, kept
from trainshift.engine.own_codes import SYNTAX_ERROR
from trainshift.lsp.options import Rules
from trainshift.lsp.text.documents import Paper
from trainshift.python.lazy import cached_property
from trainshift.python.source.source import Span

if TYPE_CHECKING:
    from trainshift.core.program import Program
    from trainshift.lsp.outline import Outline

log = logging.getLogger(__name__)
T = TypeVar("T")
Look = Callable[["OpenProgram", Paper, Callable[[], None]], "Outline"]
"""Gives the outline of a document; the function that it is given raises when that is to be given up."""

_PAUSE = 0.15
"""The seconds from the last edit of a program to its full check."""

_QUIET = 1.0
"""The seconds from the last edit of any program to the clean-up of memory."""

_PROMPT = 0.015
"""A short program that is checked in full in so many seconds is never checked otherwise."""

_SHORT = 12_000
"""The number of code points up to which a program gets all results at once, which is soon enough."""


class Superseded(BaseException):
    """Something more urgent than the current step has arrived."""


class Outdated(Exception):
    """A newer version has arrived, or the program was closed, before the answer to a question was ready."""


class State(Struct, frozen=True, dict=True):
    """The results about one version of a program.

    `outline` belongs to the last version that could be parsed. With `is_full`, `report` equals that of
    `trainshift check`. `kept` are the diagnostics of the last version that could be parsed, if this one
    cannot.
    """

    paper: Paper
    report: CheckReport
    is_full: bool
    outline: Outline | None
    kept: tuple[Diagnostic, ...] = ()

    @property
    def shown(self) -> tuple[Diagnostic, ...]:
        """The diagnostics shown for this version: an unclosed bracket does not remove them all."""
        return (*(each for each in self.report.diagnostics if each.severity), *self.kept)

    @property
    def is_settled(self) -> bool:
        """Return whether all results for this version are known."""
        return self.is_full and (self.has_outline or self.is_broken)

    @property
    def has_outline(self) -> bool:
        """Return whether `outline` belongs to this version, and to the current versions of the
        other files.
        """
        outline = self.outline
        return outline is not None and outline.paper is self.paper and not outline.whole.is_dated

    @property
    def syntax_error(self) -> Diagnostic | None:
        """Return the syntax error of the text; empty if there is none."""
        found = (each for each in self.report.diagnostics if each.code == SYNTAX_ERROR.code)
        return next(found, None)

    @property
    def is_broken(self) -> bool:
        """Return whether the text is not Python, so that nothing is found in it."""
        return self.syntax_error is not None

    def moved(self, span: Span) -> Span | None:
        """Map a span of the outline's text to this version; None if it was edited."""
        return self.shift.span(span) if self.outline is not None else None

    @cached_property
    def shift(self) -> Shift:
        """The edit from the outline's text to this version's."""
        assert self.outline is not None
        return Shift.between(self.outline.paper.text, self.paper.text)


class OpenProgram:
    """An open program: its newest version, and the results about it."""

    def __init__(self, uri: str, paper: Paper, live: Live, rules: Rules) -> None:
        self.uri = uri
        self.paper = paper
        self.live = live
        self.rules = rules
        self.state: State | None = None
        self.is_closed = False
        self.answered: object = None
        """The diagnostics that the client last pulled."""
        self.lensed: Outline | None = None
        """The state for which the client's lenses were last refreshed."""
        self.starts: tuple[str, ...] = ()
        """The files that start the programs it belongs to; none as long as nobody has looked for them."""
        self.surveyed = -1
        """After how many changes of files they were looked for."""
        self.round = 0
        """The number of changes of the rules, or of other files of its programs."""
        self._due = 0.0
        self._wants_outline = False
        self._spent: list[Program] = []
        """Data of earlier versions for conversions, which the thread frees."""
        self._took = _PROMPT
        self._waiting: list[tuple[Callable[[State], bool], Future[State]]] = []

    def reads(self, path: str) -> bool:
        """Return whether the conversion of the program depends on a file."""
        outline = _outline(self)
        return outline is not None and (path in outline.whole.paths or path in outline.whole.sources)

    @property
    def is_of_several(self) -> bool:
        """Return whether its program is known to have several files."""
        outline = _outline(self)
        return outline is not None and len(outline.whole.sources) > 1

    @property
    def is_prompt(self) -> bool:
        """Return whether a full check is as quick as any other."""
        return self._took < _PROMPT and self.is_short

    @property
    def is_short(self) -> bool:
        """Return whether all that is to be known is known as soon as anything."""
        return len(self.paper.text) <= _SHORT


class Desk:
    """A thread that checks programs; calls `told` there with every new state.

    `prepare` is called there before every step; `look` computes the possible changes.
    """

    def __init__(
        self, told: Callable[[OpenProgram, State], None], prepare: Callable[[], None], look: Look
    ) -> None:
        self._told = told
        self._prepare = prepare
        self._outlined = look
        self._programs: list[OpenProgram] = []
        self._errands: deque[Callable[[], None]] = deque()
        self._background: deque[Callable[[Callable[[], None]], bool]] = deque()
        self._changed = threading.Condition()
        self._is_urgent = False
        self._is_over = False
        self._is_idle = False
        self._is_untidy = False
        self._quiet = 0.0
        self._busy: OpenProgram | None = None
        self._thread: threading.Thread | None = None

    # Requests from other threads

    def put(self, program: OpenProgram) -> None:
        """Judge a program that was opened."""
        with self._changed:
            self._programs.append(program)
            self._wake()

    def touch(self, program: OpenProgram, paper: Paper) -> None:
        """Judge a new version."""
        with self._changed:
            _retire(program)
            self._programs.sort(key=lambda each: each is program)
            program.paper = paper
            program._due = time.monotonic() + (0 if program.is_prompt else _PAUSE)
            _dismiss(program)
            # Everything in progress stops; the thread wakes when the immediate answer is sent.
            self._is_urgent = True
            self._quiet = time.monotonic() + _QUIET

    def at_once(self, program: OpenProgram) -> State | None:
        """Check the current version by the changed statements; None if the thread checks it at once."""
        paper, rules, number = program.paper, program.rules, program.round
        weigh = _weigh(_outline(program), paper)
        report = None if program.is_prompt else program.live.at_once(paper.source, rules.settings, weigh)
        if report is None:
            with self._changed:
                program._due = time.monotonic()
                self._wake(urgent=False)
            return None
        state = _state(program, paper, report, is_full=False)
        if state.is_broken:
            state = replace(state, is_full=True)
        return state if self._keep(program, state, number) else None

    def renew(
        self, program: OpenProgram, rules: Rules | None = None, *, soon: bool = True, checks: bool = True
    ) -> None:
        """Check the current version again: the rules, or other files of its programs, have changed.

        Not `soon` if they may change again.  Unless it `checks`, the findings stay.
        """
        with self._changed:
            program.round += 1
            _retire(program)
            state = program.state
            if rules is not None:
                program.rules = rules
                state = state and replace(state, outline=None, kept=())
            if checks:
                program.state = state and replace(state, is_full=False)
            program._due = time.monotonic() + (0 if soon else _PAUSE)
            self._wake()

    def close(self, program: OpenProgram) -> None:
        """Forget a program."""
        with self._changed:
            program.is_closed = True
            self._programs = [each for each in self._programs if each is not program]
            self._is_untidy = True
            _dismiss(program)

    def known(
        self, program: OpenProgram, is_enough: Callable[[State], bool], *, wants_outline: bool = False
    ) -> Future[State]:
        """A future with the state of the current version, once it is sufficient or final.

        With `wants_outline`, the outline is computed before the full check. The future raises Outdated if a
        newer version comes first.
        """
        future: Future[State] = Future()
        with self._changed:
            state = program.state if program.state and program.state.paper is program.paper else None
            if program.is_closed:
                future.set_exception(Outdated())
            elif state is not None and (state.is_settled or is_enough(state)):
                future.set_result(state)
            else:
                # A step with a waiting request continues, or a series of questions would never let it
                # finish.
                is_awaited = self._busy is not None and (self._busy is program or self._busy._waiting)
                program._waiting.append((is_enough, future))
                program._wants_outline = program._wants_outline or wants_outline
                self._wake(urgent=not is_awaited)
        return future

    def go_on(self) -> None:
        """Let the idle thread process the changes from `touch`."""
        if self._is_idle:
            with self._changed:
                self._wake(urgent=False)

    def errand(self, program: OpenProgram, work: Callable[[], T]) -> Future[T]:
        """Run `work` before anything else and return its result; Outdated if a newer version comes first."""
        future: Future[T] = Future()
        paper = program.paper

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                if program.paper is not paper:
                    raise Outdated
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

        with self._changed:
            self._errands.append(run)
            self._wake()
        return future

    def in_background(self, work: Callable[[Callable[[], None]], bool]) -> None:
        """Run a task repeatedly while the desk is idle, until it returns False.

        It is called with a function that raises when something urgent arrives.
        """
        with self._changed:
            self._background.append(work)
            self._wake(urgent=False)

    def end(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._is_over = True
            self._wake()

    def _wake(self, urgent: bool = True) -> None:
        self._is_urgent = self._is_urgent or urgent
        if self._thread is None and not self._is_over:
            self._thread = threading.Thread(target=self._run, name="trainshift-desk", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    # The thread

    def _run(self) -> None:
        while True:
            with self._changed:
                step = None
                while not self._is_over and step is None:
                    step, delay = self._next()
                    if step is None:
                        self._is_idle = delay is None
                        self._changed.wait(delay)
                        self._is_idle = False
                if self._is_over or step is None:
                    return
                self._is_urgent = False
            try:
                self._prepare()
                step()
            except Superseded:
                continue
            except Exception:
                log.exception("a step failed")

    def _next(self) -> tuple[Callable[[], None] | None, float | None]:
        """The most urgent step, or the time to wait for one (None: until something happens)."""
        if self._errands:
            return self._errands.popleft(), None
        now = time.monotonic()
        soonest: float | None = None
        for program in reversed(self._programs):
            if _is_settled(program):
                continue
            if program._waiting or program._due <= now:
                return partial(self._rest, program), None
            soonest = min(program._due, soonest or program._due)
        # A program that was just edited is checked before anything else.
        if self._background and soonest is None:
            work = self._background[0]
            return partial(self._toil, work), None
        if soonest is None and self._is_untidy:
            if self._quiet <= now:
                return self._tidy, None
            soonest = self._quiet
        return None, None if soonest is None else soonest - now

    def _toil(self, work: Callable[[Callable[[], None]], bool]) -> None:
        try:
            goes_on = work(self._pause)
        except Exception:
            log.exception("work in the background failed")
            goes_on = False
        with self._changed:
            if not goes_on and self._background and self._background[0] is work:
                self._background.popleft()

    def _pause(self) -> None:
        """Abort the current work if something urgent has arrived."""
        if self._is_urgent:
            raise Superseded

    def _rest(self, program: OpenProgram) -> None:
        """Check a version in full, then compute its possible changes."""
        with self._changed:
            state, number = program.state, program.round
            self._busy = program
        while program._spent:
            program._spent.pop().forget()
        try:
            if state is None or state.paper is not program.paper:
                self._check(program, number)
            elif state.is_full or (program._wants_outline and not state.has_outline):
                self._look(program, state, number)
            else:
                self._check(program, number)
        finally:
            self._busy = None

    def _check(self, program: OpenProgram, number: int) -> None:
        paper, rules = program.paper, program.rules
        began = time.perf_counter()
        weigh = _weigh(_outline(program), paper)
        report = program.live.in_full(paper.source, rules.settings, self._pause, rules.runtime, weigh)
        program._took = time.perf_counter() - began
        state = _state(program, paper, report, is_full=True)
        if program.is_short and not state.is_settled:
            self._look(program, state, number)
        else:
            self._tell(program, state, number)

    def _look(self, program: OpenProgram, state: State, number: int) -> None:
        outline = self._outlined(program, state.paper, self._pause)
        if outline.starts != program.starts:  # That was just found out.
            outline.whole.is_dated = True
        program._wants_outline = False
        state = replace(state, outline=outline)
        effects = Effects(outline.outcomes)
        report = program.live.weighed(state.paper.source, program.rules.settings, lambda: effects)
        self._tell(program, replace(state, report=report) if report is not None else state, number)

    def _tidy(self) -> None:
        """Collect garbage, and exempt the remaining objects until the next time.

        A collection examines all objects of programs, which takes longer than an edit may; so it runs when
        the user does not type, and in between only new objects are examined.
        """
        self._is_untidy = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _tell(self, program: OpenProgram, state: State, number: int) -> None:
        self._is_untidy = True
        if self._keep(program, state, number):
            self._told(program, state)

    def _keep(self, program: OpenProgram, state: State, number: int) -> bool:
        """Record a round's results, and answer the waiters; return False if a newer version has arrived."""
        with self._changed:
            if program.is_closed or program.paper is not state.paper or program.round != number:
                return False
            known = program.state
            if known is not None and known.paper is state.paper and known.is_full and not state.is_full:
                return False
            program.state = state
            done = [each for each in program._waiting if state.is_settled or each[0](state)]
            program._waiting = [each for each in program._waiting if each not in done]
        for _, future in done:
            if future.set_running_or_notify_cancel():
                future.set_result(state)
        return True


def _weigh(outline: Outline | None, paper: Paper) -> Weigh | None:
    """Return the function that looks up effects in an earlier version's outline, if there is one."""
    if outline is None:
        return None
    known, before = outline.outcomes, outline.paper.text

    @cache
    def effects() -> Effects:
        shift = Shift.between(before, paper.text) if known else None
        moved = ((each, shift.span(each.span)) for each in known) if shift is not None else ()
        return Effects(each._replace(span=span) for each, span in moved if span is not None)

    return effects


def _state(program: OpenProgram, paper: Paper, report: CheckReport, *, is_full: bool) -> State:
    """The state of a version after a report."""
    state, before = State(paper, report, is_full, _outline(program)), program.state
    if state.is_broken and before is not None:
        found = kept(before.shown, report.path, before.paper.source, paper.source)
        state = replace(state, kept=found)
    return state


def _is_settled(program: OpenProgram) -> bool:
    state = program.state
    return state is not None and state.paper is program.paper and state.is_settled


def _outline(program: OpenProgram) -> Outline | None:
    return program.state.outline if program.state is not None else None


def _retire(program: OpenProgram) -> None:
    """Have the thread free a changed program's conversion data."""
    outline = _outline(program)
    if outline is not None:
        program._spent += outline.whole.retire()


def _dismiss(program: OpenProgram) -> None:
    """Fail the requests that wait for an older version."""
    program._waiting, waiting = [], program._waiting
    for _, future in waiting:
        if future.set_running_or_notify_cancel():
            future.set_exception(Outdated())
