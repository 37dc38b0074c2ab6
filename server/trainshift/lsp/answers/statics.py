"""Statics: the actions and hovers in functions that Paddle turns into a static graph.

Imported when a document shows a sign of Paddle. The static functions of a program are computed on the desk's
thread, once for each version; their expansions on demand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from lsprotocol import types

from trainshift.core.program import Program
from trainshift.engine.conversion import MAGIC_IN_THE_WAY
from trainshift.engine.incremental import Live
from trainshift.lsp.answers.actions import STATIC, NotPossible, Wanted
from trainshift.lsp.scheduler import OpenProgram, Outdated
from trainshift.lsp.session import Session
from trainshift.lsp.text.documents import Paper, Part
from trainshift.lsp.text.edits import plain_edit
from trainshift.lsp.transport.capabilities import EXPAND, EXPAND_FILE, MAKE_STATIC
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Source, Span
from trainshift.static_graphs.decorate import Made, make_static, makeable, named
from trainshift.static_graphs.expanding.door import Expansion
from trainshift.static_graphs.expanding.explain import Told, headers, told_at
from trainshift.static_graphs.expanding.piecewise import expand_at
from trainshift.static_graphs.expanding.words import RULES
from trainshift.static_graphs.reading.function import Mode, title_of
from trainshift.static_graphs.reading.reading import Reading

log = logging.getLogger(__name__)

_EXPAND = "Expand to static graph code (for reading)"
_MOMENT = 0.1
"""The seconds that a menu waits at most for the refusals."""
_DEFECT = "this is a defect of Trainshift; please report it with the function and the server's log"
_MODES = {
    Mode.FULL: "All of it becomes a graph",
    Mode.SOT: "Code that cannot be compiled runs as Python until it is saved; then all becomes a graph",
    Mode.OPEN: "Nothing in the workspace makes it static; it becomes a graph once it is exported",
}
_MADE = {
    "cond": "becomes `paddle.static.nn.cond`",
    "while_loop": "becomes `paddle.static.nn.while_loop`",
    "assert": "becomes an operation that checks this when the graph runs",
    "print": "becomes an operation that prints when the graph runs",
    "cast": "becomes `paddle.cast`",
    "shape": "becomes `paddle.shape`: this size may differ from call to call",
    "array": "becomes the length of a TensorArray",
    "either": "becomes graph code where this is a tensor, and stays Python otherwise",
    "python": "stays Python: it runs once, while the graph is built",
}
T = TypeVar("T")


class Wish(NamedTuple):
    """A request ("make" or "expand") for a function (all if empty), or for the statement on a line."""

    what: str
    function: str = ""
    line: int | None = None


class _Reading:
    """The static functions of one version of a program; used on the desk's thread."""

    def __init__(self, program: OpenProgram) -> None:
        self.paper, self.round = program.paper, program.round
        self._live = program.live
        self._facts: Program | None = None
        self._expanded: dict[Wish, Expansion] = {}
        self._made: dict[Wish, Made] = {}
        self.menus: dict[int, list[tuple[str, str, Wish]]] = {}
        self.reasons: dict[Wish, str] = {}

    def facts(self) -> Program | None:
        """The program; None if it is not Python."""
        if self._facts is None:
            script = self._live.whole(self.paper.source)
            self._facts = Program(script) if script is not None else None
        return self._facts

    def menu(self, line: int) -> list[tuple[str, str, Wish]]:
        """The possible requests on a line (from 1): titles, kinds, requests."""
        if line not in self.menus:
            self.menus[line] = self._menu(line)
        return self.menus[line]

    def _menu(self, line: int) -> list[tuple[str, str, Wish]]:
        program = self.facts()
        if program is None:
            return []
        script, source = program.script, program.script.code.source
        found: list[tuple[str, str, Wish]] = []
        told = headers(program)
        here = [each for each in told if source.line_of(each.end) + 1 == line and each.becomes != "python"]
        for each in here[:1]:
            word = source.text[source.line_start(each.end) : each.end].split(None, 1)[0].strip(":(")
            found.append((f"{_EXPAND}: this {word}", EXPAND, Wish("expand", each.function.title, line)))
        function = makeable(script, line)
        reading = program.fact(Reading)
        static = reading.of(function) if function is not None else None
        if static is not None and any(each.function is static for each in told):
            found.append((f"{_EXPAND}: {static.name}", EXPAND, Wish("expand", static.title)))
        if told:
            found.append((f"{_EXPAND}: whole file", EXPAND_FILE, Wish("expand")))
        if function is not None and not any(
            each.function is function and not each.is_saved for each in reading.entries
        ):
            owner = function.owner()
            is_forward = owner is not None and function.name == "forward"
            if is_forward or owner is None:
                wish = Wish("make", title_of(function))
                found.append((f"Make static: {function.name}", MAKE_STATIC, wish))
        return found

    def edits(self, wish: Wish) -> list[Edit]:
        """The edits of a request; raises NotPossible."""
        found = self.made(wish).edits if wish.what == "make" else self.expanded(wish).edits
        reason = self._reason(wish)
        if reason:
            raise NotPossible(reason)
        return found

    def reason(self, wish: Wish) -> str:
        """Return the reason why a request is refused; empty if there is an edit."""
        if wish not in self.reasons:
            self.reasons[wish] = self._reason(wish)
        return self.reasons[wish]

    def _reason(self, wish: Wish) -> str:
        if wish.what == "make":
            made = self.made(wish)
            edits, reason, offset = made.edits, made.reason, made.offset
            reason = reason or ("" if edits else "it is static already")
        else:
            found = self.expanded(wish)
            edits, reason, offset = found.edits, "" if found.edits else "there is nothing to expand", -1
            if found.refused and not edits:
                reason, offset = found.refused[0].reason, found.refused[0].offset
        if not reason and self.paper.cells is not None and self.paper.cells.spoilt(edits):
            return MAGIC_IN_THE_WAY
        return f"{_line(self.paper, offset)}: {reason}" if reason and offset >= 0 else reason

    def expanded(self, wish: Wish) -> Expansion:
        """The result of expanding."""
        program = self.facts()
        if program is None:
            return Expansion(self.paper.text)
        if wish not in self._expanded:
            self._expanded[wish] = expand_at(program, wish.function, wish.line, self._read)
        return self._expanded[wish]

    def made(self, wish: Wish) -> Made:
        """The result of making a function static."""
        program = self.facts()
        function = named(program.script, wish.function) if program is not None else None
        if program is None or function is None:
            return Made(self.paper.text, reason=f"there is no function `{wish.function}`", offset=-1)
        if wish not in self._made:
            self._made[wish] = make_static(program, function, self._read)
        return self._made[wish]

    def _read(self, text: str) -> Program:
        script = Live(self._live.path, self._live.files).whole(Source(text))
        if script is None:
            raise SyntaxError("the text is not Python")
        return Program(script)


class Statics:
    """The static functions of open programs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._readings: WeakKeyDictionary[OpenProgram, _Reading] = WeakKeyDictionary()

    def _reading(self, program: OpenProgram) -> _Reading:
        known = self._readings.get(program)
        if known is None or known.paper is not program.paper or known.round != program.round:
            known = self._readings[program] = _Reading(program)
        return known

    async def _ask(self, program: OpenProgram, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._session.desk.errand(program, work))

    # The menu

    async def offered(self, program: OpenProgram, paper: Paper, wanted: Wanted) -> list[types.CodeAction]:
        """The actions for a place; refused ones are disabled, if that is known quickly."""
        if program.paper is not paper or not any(map(wanted.wants, (EXPAND, EXPAND_FILE, MAKE_STATIC))):
            return []
        reading = self._reading(program)
        line = paper.source.line_of(wanted.span.start) + 1
        try:
            found = await self._ask(program, lambda: reading.menu(line))
        except Outdated:
            return []
        except Exception:
            log.exception("the static functions could not be read")
            return []
        # The whole file is converted for a request by name, or for a client that lists all actions.
        wishes = [each for each in found if wanted.wants(each[1])]
        with contextlib.suppress(asyncio.TimeoutError, Outdated):
            work = self._ask(program, lambda: [reading.reason(wish) for _, _, wish in wishes])
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(_quiet(work))), _MOMENT)
        actions = (self._action(paper, wanted, reading, *each) for each in wishes)
        return [each for each in actions if each is not None]

    def _action(
        self, paper: Paper, wanted: Wanted, reading: _Reading, title: str, kind: str, wish: Wish
    ) -> types.CodeAction | None:
        action = types.CodeAction(f"Trainshift: {title}", kind=kind)
        reason = reading.reasons.get(wish, "")
        if reason:
            if not self._session.client.has_disabled:
                return None
            action.disabled = types.CodeActionDisabled(reason)
            return action
        if wish.what == "make" and wish in reading.reasons:
            action.title = f"Trainshift: {reading.made(wish).title}"
        action.data = {**wanted.data(STATIC, paper), "wish": list(wish)}
        return action

    # The edits behind it

    async def edit(self, program: OpenProgram, data: dict[str, Any]) -> types.WorkspaceEdit:
        """The edit of an action, for the version that it was offered for; raises NotPossible, or Outdated."""
        what, function, line = data.get("wish", ())
        if what not in ("make", "expand") or not isinstance(line, int | None):
            raise ValueError(f"{what!r} is not done with static functions")
        wish, reading = Wish(what, str(function), line), self._reading(program)
        edits = await self._ask(program, lambda: reading.edits(wish))
        return self._edit(reading.paper, edits)

    def _edit(self, paper: Paper, edits: list[Edit]) -> types.WorkspaceEdit:
        return plain_edit(map(paper.home, edits), self._session.client)

    # The commands

    async def command(
        self, program: OpenProgram, part: Part, what: str, given: dict[str, Any]
    ) -> dict[str, Any]:
        """The answer to `trainshift.expandStatic` and `trainshift.makeStatic`, except for the applied edit.

        Raises Outdated, and ValueError or TypeError for malformed arguments.
        """
        function, position = given.get("function") or "", given.get("position")
        if not isinstance(function, str):
            raise TypeError("`function` has to be a name")
        reading = self._reading(program)
        line = None
        if not function and isinstance(position, dict):
            at = part.offset((int(position["line"]), int(position["character"])))
            line = reading.paper.source.line_of(at) + 1
        return await self._ask(program, lambda: self._told(reading, what, function, line))

    def _told(self, reading: _Reading, what: str, function: str, line: int | None) -> dict[str, Any]:
        """The result of a command, in the format of a conversion; on the desk's thread."""
        program = reading.facts()
        if line is not None and program is not None:
            found = makeable(program.script, line)
            function = title_of(found) if found is not None else ""
        if program is None or (not function and what == "make"):
            reason = "the text is not Python" if program is None else "there is no function at this place"
            return {**NOTHING, "reason": reason}
        wish = Wish(what, function)
        told = {**NOTHING, "function": function, "reason": reading.reason(wish)}
        if what == "make":
            made = reading.made(wish)
            note = self._note(reading.paper, STATIC, made.offset, made.decorator)
            told["changes"] = [note] if made.edits else []
            told["rules"] = [_rule(STATIC, "Made static")]
            told["doubts"] = [
                self._note(reading.paper, each.code, each.offset, each.message) for each in made.in_the_way
            ]
        else:
            expansion = reading.expanded(wish)
            told["changes"] = [
                self._note(reading.paper, each.code, each.offset, f"in {each.function}")
                for each in expansion.applied
            ]
            told["rules"] = [_rule(code, RULES[code]) for code in {each.code for each in expansion.applied}]
            told["withheld"] = [
                self._note(reading.paper, each.code, each.offset, f"`{each.function}`: {each.reason}")
                for each in expansion.refused
            ]
        told["status"] = "refused" if told["reason"] else "expanded"
        edits = [] if told["reason"] else reading.edits(wish)
        told["files"] = 1 if edits else 0
        return {**told, "edit": self._edit(reading.paper, edits) if edits else None}

    def _note(self, paper: Paper, rule: str, offset: int, text: str) -> dict[str, Any]:
        part = paper.part_at(max(offset, 0))
        (line, character), _ = part.places(Span(max(offset, 0), max(offset, 0)))
        return {"rule": rule, "uri": part.uri, "line": line + 1, "column": character + 1, "text": text}

    # Reports

    async def hover(self, program: OpenProgram, paper: Paper, offset: int) -> str:
        """The graph operation of the word at an offset, and the reason; empty for any other."""
        reading = self._reading(program)

        def work() -> Told | None:
            facts = reading.facts()
            return told_at(facts, offset) if facts is not None else None

        found = await self._ask(program, work)
        return _said(paper, found) if found is not None else ""

    async def hints(self, program: OpenProgram, part: Part, span: Span) -> list[types.InlayHint]:
        """The graph operations of the `if`s and loops in a span of a document."""
        reading = self._reading(program)

        def work() -> list[tuple[int, str]]:
            facts = reading.facts()
            return [(each.end, each.becomes) for each in headers(facts)] if facts is not None else []

        found = []
        for end, becomes in await self._ask(program, work):
            if span.start <= end <= span.end:
                label = "stays Python" if becomes == "python" else becomes
                label = label if " " in label else f"→ {label}"
                place = types.Position(*part.places(Span(end, end))[0])
                found.append(types.InlayHint(place, label, padding_left=True))
        return found


NOTHING: dict[str, Any] = {
    "applied": False,
    "reason": "",
    "status": "refused",
    "function": "",
    "program": "",
    "files": 0,
    "changes": [],
    "decisions": [],
    "doubts": [],
    "withheld": [],
    "rules": [],
    "edit": None,
}
"""The commands' answers if there is no result."""


def _rule(code: str, title: str) -> dict[str, str]:
    return {"code": code, "name": "", "title": f"{title[:1].upper()}{title[1:]}", "url": ""}


async def _quiet(work: Any) -> None:
    """Return a future whose exception may go unread."""
    with contextlib.suppress(Outdated):
        try:
            await work
        except Outdated:
            raise
        except Exception:
            log.exception("a static function could not be expanded: %s", _DEFECT)


def _said(paper: Paper, told: Told) -> str:
    made = _MADE.get(told.becomes, f"becomes `paddle.{told.becomes}`")
    code = f" ({told.code})" if told.code else ""
    since = ""
    if told.name and told.becomes not in ("python", "either"):
        offset = paper.source.line_starts[told.line - 1] if told.line else -1
        where = f", since {_line(paper, offset)}" if told.line else ""
        since = f" `{told.name}` is a tensor{where}."
    first = f"**`{told.word}`** {made}{code}.{since}"
    return f"{first}\n\n`{told.function.title}` is static: {told.why}. {_MODES[told.function.mode]}."


def _line(paper: Paper, offset: int) -> str:
    if paper.cells is None:
        return f"line {paper.source.line_of(offset) + 1}"
    index, inside = paper.cells.at(offset)
    return f"line {paper.cells.sources[index].line_of(inside) + 1} of its cell"
