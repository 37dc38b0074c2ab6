"""Derivatives: the actions in a function, their edits, and the hovers of made functions' comments.

A menu only needs the function at the cursor.  The result of differentiating it is computed on the desk's
thread, once for each version, and the modules for that are loaded on first use.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from lsprotocol import types

from trainshift.engine.conversion import MAGIC_IN_THE_WAY
from trainshift.lsp.answers.actions import NotPossible, Wanted
from trainshift.lsp.scheduler import Desk, OpenProgram, Outdated
from trainshift.lsp.session import Session
from trainshift.lsp.text.documents import Paper, Part
from trainshift.lsp.text.edits import plain_edit
from trainshift.lsp.transport.capabilities import FORWARD, REVERSE
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.code import Code

if TYPE_CHECKING:
    from trainshift.derivatives import Derived, Mode, NotFound, Refused

    Outcome = Derived | Refused | NotFound

log = logging.getLogger(__name__)

DO = "differentiate"
"""The key in an action's data for what it does."""
KINDS: dict[Mode, str] = {"forward": FORWARD, "reverse": REVERSE}

_AGAIN = "Make again"
_DEFECT = "this is a defect of Trainshift; please report it with the function and the server's log"
_MOMENT = 0.1
"""The seconds that a menu waits at most for the refusals."""
_LEISURE = 0.5
"""The seconds after a menu that did not wait until the search starts, so that the menu can be used first."""
_MADE = re.compile(
    r"^# Made by trainshift differentiate (?P<function>\w+) --mode (?P<mode>forward|reverse)"
    r"(?: --wrt (?P<wrt>[\w,]+))?(?: --name (?P<name>\w+))?[ \t]*$"
)
"""The comment of a made function; one that only serves another derivative does not say by what."""
_WORD = re.compile(r"\w+")


class Wish(NamedTuple):
    """A request: the function to derive from and the kind of derivative; all possible parameters if `wrt` is
    None.
    """

    function: str
    mode: Mode
    wrt: tuple[str, ...] | None = None
    name: str | None = None


class Function(NamedTuple):
    """A function at the top level of a program, its parameters, and its place."""

    name: str
    parameters: tuple[str, ...]
    span: Span


class _Reading:
    """The result of a request for one version of a program: computed once, on the desk's thread."""

    def __init__(self, desk: Desk, program: OpenProgram, wish: Wish) -> None:
        self._desk, self._program, self._wish = desk, program, wish
        self.paper = program.paper
        self._future: Future[Outcome] = Future()

    @property
    def known(self) -> Outcome | None:
        """The outcome, if it is known by now."""
        is_known = self._future.done() and self._future.exception() is None
        return self._future.result() if is_known else None

    async def outcome(self) -> Outcome:
        """The outcome, computed before anything else; Outdated if a newer version comes first."""
        if not self._future.done():
            await asyncio.wrap_future(self._desk.errand(self._program, self._run))
        return self._future.result()

    async def in_time(self, seconds: float) -> None:
        """Compute the outcome first, and wait at most this long."""
        if self._future.done():
            return
        self._desk.errand(self._program, self._run)
        waiting = asyncio.shield(asyncio.wrap_future(self._future))
        with contextlib.suppress(asyncio.TimeoutError, Outdated):
            await asyncio.wait_for(waiting, seconds)

    def at_leisure(self) -> None:
        """Compute the outcome in the background."""
        if not self._future.done() and self._program.paper is self.paper:
            self._desk.in_background(self._at_leisure)

    def _at_leisure(self, pause: Callable[[], None]) -> bool:
        self._run()
        return False

    def _run(self) -> None:
        if self._future.done():
            return
        if self._program.paper is not self.paper:
            self._future.set_exception(Outdated())
            return
        try:
            self._future.set_result(_derived(self.paper.text, self._wish))
        except Exception as error:
            self._future.set_exception(error)


class Derivatives:
    """The derivatives of functions in open programs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._readings: WeakKeyDictionary[OpenProgram, dict[Wish, _Reading]] = WeakKeyDictionary()

    def _reading(self, program: OpenProgram, wish: Wish) -> _Reading:
        """The result of a request in the present version."""
        readings = self._readings.setdefault(program, {})
        if wish not in readings or readings[wish].paper is not program.paper:
            readings[wish] = _Reading(self._session.desk, program, wish)
        return readings[wish]

    # The menu

    async def offered(
        self, program: OpenProgram, paper: Paper, wanted: Wanted, *, is_alone: bool
    ) -> list[types.CodeAction]:
        """The actions for a place; those known to be refused are disabled or left out.

        The result is awaited briefly, and only if these are the only actions (`is_alone`) or are requested by
        name.  Other actions never wait.
        """
        if program.paper is not paper or not any(map(wanted.wants, KINDS.values())):
            return []
        code = program.live.code(paper.source)
        wishes = {} if code is None else dict(_wishes(code, wanted))
        readings = {title: self._reading(program, wish) for title, wish in wishes.items()}
        if is_alone or any(map(wanted.names, KINDS.values())):
            await asyncio.gather(*(each.in_time(_MOMENT) for each in readings.values()))
        else:
            for each in readings.values():
                asyncio.get_running_loop().call_later(_LEISURE, each.at_leisure)
        actions = (
            self._action(title, wishes[title], wanted, reading.paper, reading.known)
            for title, reading in readings.items()
        )
        return [each for each in actions if each is not None]

    def _action(
        self, title: str, wish: Wish, wanted: Wanted, paper: Paper, known: Outcome | None
    ) -> types.CodeAction | None:
        action = types.CodeAction(f"Trainshift: {title}", kind=KINDS[wish.mode])
        reason = _reason(paper, known) if known is not None else ""
        if reason:
            # An action that is always refused should not clutter every menu.
            if not self._session.client.has_disabled or title == _AGAIN:
                return None
            action.disabled = types.CodeActionDisabled(reason)
        else:
            said = [wish.function, wish.mode, wish.wrt, wish.name]
            action.data = {**wanted.data(DO, paper), "wish": said}
        return action

    # The edits behind it

    async def edit(self, program: OpenProgram, data: dict[str, Any]) -> types.WorkspaceEdit:
        """The edit of an action, for the version that it was offered for; raises NotPossible, or Outdated."""
        function, mode, wrt, name = data.get("wish", ())
        if mode not in KINDS:
            raise ValueError(f"{mode!r} is not a mode")
        by = None if wrt is None else tuple(map(str, wrt))
        wish = Wish(str(function), mode, by, None if name is None else str(name))
        reading = self._reading(program, wish)
        return self._edit(program, reading.paper, await reading.outcome())

    def _edit(self, program: OpenProgram, paper: Paper, outcome: Outcome) -> types.WorkspaceEdit:
        derived = _to_be_made(paper, outcome)
        code = program.live.code(paper.source)
        assert code is not None, "only Python can be differentiated"
        return plain_edit(_homes(code, paper, derived), self._session.client)

    # The contents of a comment

    async def hover(self, program: OpenProgram, paper: Paper, offset: int) -> str:
        """The text about the comment of a made function at an offset; empty elsewhere."""
        wish = _made_at(paper.source, offset)
        if wish is None:
            return ""
        mode = f"**{wish.mode.capitalize()} mode.**"
        if wish.wrt is None:
            return f"{mode} A part of the derivative of `{wish.function}`."
        outcome = await self._reading(program, wish).outcome()
        what = "derivative along a direction of" if wish.mode == "forward" else "gradient with respect to"
        by = ", ".join(f"`{each}`" for each in wish.wrt)
        told = f"{mode} Returns the value of `{wish.function}` and its {what} {by}."
        return f"{told}\n\n{_since(paper, wish, outcome)}"

    # The command

    async def command(self, program: OpenProgram, part: Part, given: dict[str, Any]) -> dict[str, Any]:
        """The answer to `trainshift.differentiate`, except for whether the edit was applied.

        Raises Outdated, and ValueError or TypeError for malformed arguments.
        """
        wish = _wish_of(program.live.code(program.paper.source), part, given)
        if wish is None:
            return {**NOTHING, "reason": "there is no function at this place"}
        reading = self._reading(program, wish)
        outcome, paper = await reading.outcome(), reading.paper
        told = {**NOTHING, **_told(paper, outcome), "reason": _reason(paper, outcome)}
        told |= {"function": wish.function, "mode": wish.mode}
        return {**told, "edit": None if told["reason"] else self._edit(program, paper, outcome)}


NOTHING: dict[str, Any] = {
    "applied": False,
    "reason": "",
    "function": "",
    "mode": "",
    "made": "",
    "added": [],
    "wrt": [],
    "leftOut": [],
    "refusals": [],
    "edit": None,
}
"""The command's answers if there is no result."""


def _derived(text: str, wish: Wish) -> Outcome:
    from trainshift.derivatives import NotFound, derive

    try:
        return derive(text, wish.function, wish.mode, wish.wrt, wish.name)
    except NotFound as problem:
        return problem
    except Exception:
        log.exception("%s could not be differentiated", wish.function)
        return NotFound(_DEFECT)


# Where the cursor is


def _wishes(code: Code, wanted: Wanted) -> Iterator[tuple[str, Wish]]:
    """Yield the possible requests at a place, by title."""
    source, span = code.source, wanted.span
    function = function_at(code, span)
    made = _made_at(source, span.start)
    if made is None and function is not None:
        made = _made_at(source, source.line_start(function.span.start) - 1)
    if made is not None and made.wrt is not None and wanted.wants(KINDS[made.mode]):
        yield _AGAIN, made
    if function is None:
        return
    for mode, kind in KINDS.items():
        if wanted.wants(kind):
            yield f"Differentiate ({mode} mode)", Wish(function.name, mode)
    word = _word_at(source, span)
    if word in function.parameters and wanted.wants(REVERSE):
        yield f"Differentiate by {word} (reverse mode)", Wish(function.name, "reverse", (word,))


def function_at(code: Code, span: Span) -> Function | None:
    """The function that contains the cursor, or the only one that a selection touches."""
    last = max(bisect_right(code.chunks, span.end, key=lambda chunk: chunk[0]) - 1, 0)
    first = max(bisect_right(code.chunks, span.start, key=lambda chunk: chunk[0]) - 1, 0)
    found = [
        each
        for each in _functions(code, first, last + 1)
        if each.span.start <= span.end and span.start <= each.span.end
    ]
    return found[0] if len(found) == 1 else None


def _functions(code: Code, first: int, end: int) -> Iterator[Function]:
    """The functions of some chunks, in order, including decorators."""
    chunks = zip(code.facts[first:end], code.chunks[first:end], strict=True)
    for facts, (offset, _) in chunks:
        for node in (statement.node for statement in facts.top):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                start = min(facts.span(each).start for each in (node, *node.decorator_list))
                span = Span(code.source.line_start(offset + start), offset + facts.span(node).end)
                yield Function(node.name, _parameters(node.args), span)


def _parameters(given: ast.arguments) -> tuple[str, ...]:
    return tuple(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _word_at(source: Source, span: Span) -> str:
    """The identifier that a cursor touches, or that is selected in full or in part."""
    start, end = source.line_start(span.start), source.line_end(span.start)
    words = _WORD.finditer(source.text, start, end)
    return next((each[0] for each in words if each.start() <= span.start and span.end <= each.end()), "")


def _made_at(source: Source, offset: int) -> Wish | None:
    """The request that the comment on an offset's line records for the function below it."""
    if offset < 0:
        return None
    made = _MADE.match(source.text[source.line_start(offset) : source.line_end(offset)])
    if made is None:
        return None
    wrt = tuple(made["wrt"].split(",")) if made["wrt"] else None
    return Wish(made["function"], "forward" if made["mode"] == "forward" else "reverse", wrt, made["name"])


def _wish_of(code: Code | None, part: Part, given: dict[str, Any]) -> Wish | None:
    """The request of a command, by the name of a function or a position; None if there is none.

    Raises ValueError, or TypeError, for malformed arguments.
    """
    function, position = given.get("function"), given.get("position")
    mode, wrt, name = given.get("mode", "reverse"), given.get("wrt"), given.get("name")
    if mode not in KINDS:
        raise ValueError(f"`mode` is {mode!r}, neither 'forward' nor 'reverse'")
    if wrt is not None and not (isinstance(wrt, list) and all(isinstance(each, str) for each in wrt)):
        raise ValueError("`wrt` has to be a list of names")
    if not isinstance(name, str | None):
        raise ValueError("`name` has to be a name")
    if function is None and code is not None:
        if not isinstance(position, dict):
            raise ValueError("a `function` or a `position` is needed")
        at = part.offset((int(position["line"]), int(position["character"])))
        found = function_at(code, Span(at, at))
        function = found.name if found is not None else None
    return Wish(str(function), mode, None if wrt is None else tuple(wrt), name) if function else None


# The text for an outcome


def _to_be_made(paper: Paper, outcome: Outcome) -> Derived:
    """The derivative with edits; raises NotPossible if there is none."""
    from trainshift.derivatives import Derived, Refused

    if isinstance(outcome, Refused):
        first = outcome.refusals[0]
        raise NotPossible(f"{_line(paper, first.line, first.column)}: {first.message}")
    if not isinstance(outcome, Derived):
        raise NotPossible(outcome.message)
    if not outcome.edits:
        raise NotPossible(f"{outcome.made} is up to date")
    if paper.cells is not None and paper.cells.spoilt(outcome.edits):
        raise NotPossible(MAGIC_IN_THE_WAY)
    return outcome


def _reason(paper: Paper, outcome: Outcome) -> str:
    """Return the reason why there is no edit; empty if there is one."""
    try:
        _to_be_made(paper, outcome)
    except NotPossible as reason:
        return str(reason)
    return ""


def _line(paper: Paper, line: int, column: int) -> str:
    if paper.cells is None:
        return f"line {line}"
    index, inside = paper.cells.at(paper.source.line_starts[line - 1] + column - 1)
    return f"line {paper.cells.sources[index].line_of(inside) + 1} of its cell"


def _since(paper: Paper, wish: Wish, outcome: Outcome) -> str:
    """The change of the original function since a derivative was made, in words."""
    from trainshift.derivatives import Derived

    if isinstance(outcome, Derived):
        if not outcome.edits:
            return f"`{wish.function}` has not changed since."
        return f"`{wish.function}` has changed since, or this function was edited. Choose *Make again*."
    return f"`{wish.function}` has changed since, and this can't be made again: {_reason(paper, outcome)}."


def _told(paper: Paper, outcome: Outcome) -> dict[str, Any]:
    """An outcome for programs; lines and columns are those of the documents, from 1."""
    from trainshift.derivatives import Derived, Refused

    if isinstance(outcome, Derived):
        return {
            "made": outcome.made,
            "added": list(outcome.added),
            "wrt": list(outcome.wrt),
            "leftOut": [{"name": name, "reason": reason} for name, reason in outcome.left_out],
        }
    if not isinstance(outcome, Refused):
        return {}
    told = []
    for each in outcome.refusals:
        offset = paper.source.line_starts[each.line - 1] + each.column - 1
        part = paper.part_at(offset)
        (line, character), _ = part.places(Span(offset, offset))
        told.append({"uri": part.uri, "line": line + 1, "column": character + 1, "message": each.message})
    return {"refusals": told}


# Where the edits go


def _homes(code: Code, paper: Paper, outcome: Derived) -> list[tuple[Part, Edit]]:
    """The edits with their documents; in a notebook, code below the function goes to the end of its cell."""
    if paper.cells is None:
        return [(paper.parts[0], each) for each in outcome.edits]
    (*_, function) = (each for each in _functions(code, 0, len(code.facts)) if each.name == outcome.function)
    part = paper.part_at(function.span.start)
    return [
        (part, _at_end(part, each))
        if each.start == each.end and each.start > function.span.start
        else paper.home(each)
        for each in outcome.edits
    ]


def _at_end(part: Part, edit: Edit) -> Edit:
    """Insert functions at the end of a cell, two lines below its code."""
    text = part.text
    lines = text[len(text.rstrip()) :].count("\n")
    body = edit.text.strip("\r\n")
    end = "\n" if text.endswith("\n") else ""
    return Edit(part.end, part.end, "\n" * max(3 - lines, 0) + body + end)
