"""Report findings: the verdict by mode, the place, and one finding of a code for a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.script import Script
from trainshift.python.names.values import Library
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Statement, own_parts
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.static_graphs.domain.abstract_values import OPEN_SIZES, UNBOUND, AbstractValue
from trainshift.static_graphs.reading.function import Mode, StaticFunction, Truth
from trainshift.static_graphs.reading.reading import Reading

# The text about a function that is not converted from its source now, but when it is exported.
_LATER = {
    Mode.FULL: "",
    Mode.SOT: "Once it is saved, ",
    Mode.OPEN: "Once it is exported, ",
}


# Codes about statements in control flow on tensors: in doubt where it may be Python's.
_OF_CONTROL_FLOW = frozenset({"PD02", "PD04", "PD11", "PD12", "PD18", "PD19", "PD20", "PD22", "PD25", "PD27"})


class Judge:
    """Report the findings of one code in static functions: at most one for a statement."""

    def __init__(self, program: Program, code: str) -> None:
        self.program = program
        self.code = code
        self.report = Report(program, code)
        self.script = program.script
        self._said: set[Statement] = set()

    @property
    def functions(self) -> list[StaticFunction]:
        """The static functions of the file."""
        return self.program.fact(Reading).functions

    def reached(self) -> Iterator[tuple[StaticFunction, Statement]]:
        """Yield the reachable statements of the file's static functions, in text order."""
        for function in self.functions:
            yield from ((function, statement) for statement in reached(function))

    def loops(self) -> Iterator[tuple[StaticFunction, Statement]]:
        """The loops among these statements."""
        return ((function, each) for function, each in self.reached() if isinstance(each.node, LOOPS))

    def calls(self) -> Iterator[tuple[StaticFunction, Statement, ast.Call]]:
        """The calls that these statements themselves make."""
        return ((function, each, call) for function, each in self.reached() for call in calls(each))

    def say(
        self,
        statement: Statement,
        what: str,
        do: str,
        *,
        function: StaticFunction | None = None,
        at: ast.AST | Span | None = None,
        sure: bool = True,
        always: bool = False,
        related: Iterable[tuple[ast.AST, str]] = (),
        fix: Change | None = None,
    ) -> Iterator[Finding]:
        """Yield the finding for a problem and its remedy, unless the statement has one.

        It is in the function of the statement, or in `function`; at the statement's header, or at `at`.  With
        `sure`, it is certain; with `always`, both modes of conversion have it.
        """
        function = function or self.program.fact(Reading).of(statement.scope)
        assert function is not None
        sure = sure and not (self.code in _OF_CONTROL_FLOW and _is_doubtful(function, statement))
        verdict = verdict_in(function.mode, always=always) if sure else Verdict.UNKNOWN
        if statement in self._said or (not sure and function.mode is Mode.OPEN):
            return
        self._said.add(statement)
        later = "" if always or not sure else _LATER[function.mode]
        if later and not what.startswith(("Paddle", "Python")):
            what = what[:1].lower() + what[1:]
        problem = f"{later}{what}"
        others = tuple(Related(self.script.span(node, statement), text) for node, text in related)
        place = self.script.span(at, statement) if isinstance(at, ast.AST) else at or statement
        yield replace(self.report.finding(verdict, place, f"{problem}. {do}", others, fix), problem=problem)

    def between(self, first: Statement, last: Statement) -> Span:
        """The span from the beginning of a statement to the end of a later one's header."""
        return Span(self.script.statement_span(first).start, self.script.header_span(last).end)

    def fix(self, statement: Statement, title: str, edits: Iterable[Edit]) -> Change:
        """A fix of a statement."""
        return self.report.change(title, self.script.statement_span(statement), edits)

    def paddle(self) -> str:
        """The file's name for Paddle's module; empty if none."""
        return name_of_paddle(self.script)

    def code_of(self, node: ast.AST, within: Statement) -> str:
        """The text of a node on one line, shortened for a message."""
        text = " ".join(self.script.text(node, within).split())
        return text if len(text) <= 40 else f"{text[:37]}..."


def _is_doubtful(function: StaticFunction, statement: Statement) -> bool:
    """Return whether control flow that may or may not be the graph's is at or around a statement."""
    around = [statement, *function.graph_around(statement)]
    parts = [node for each in around for node in own_parts(each.node)]
    flow = [node for node in (*parts, *(each.node for each in around)) if function.may_be_graph(node)]
    return bool(flow) and not any(function.truth(node) is Truth.GRAPH for node in flow)


def name_of_paddle(script: Script) -> str:
    """The file's name for Paddle's module; empty if none."""
    for name, bindings in sorted(script.module_bindings.items()):
        if script.names.libraries.get(name) == {"paddle"} and bindings:
            return name
    return ""


def verdict_in(mode: Mode, *, always: bool = False) -> Verdict:
    """Return the verdict on a failure or mistake in a graph, by the mode of its function."""
    if mode is Mode.FULL or (always and mode is Mode.SOT):
        return Verdict.VIOLATED
    return Verdict.HARMLESS if mode is Mode.SOT else Verdict.UNKNOWN


def reached(function: StaticFunction) -> Iterator[Statement]:
    """Yield the reachable statements of a function, in text order."""
    for statement in function.statements:
        if statement in function.reached:
            yield statement


def loops(function: StaticFunction) -> Iterator[Statement]:
    """Yield the reachable loops of a function."""
    for statement in reached(function):
        if isinstance(statement.node, LOOPS):
            yield statement


def exits(function: StaticFunction, loop: Statement, *kinds: type[ast.stmt]) -> list[Statement]:
    """The statements of some kinds that leave a loop, or its function; without `break` in inner loops."""
    found = []
    for each in loop.walk():
        if each.scope is function.scope and isinstance(each.node, kinds):
            if loop in function.left_by(each) and loop in function.loops_around(each):
                found.append(each)
    return found


def drops_break(function: StaticFunction, node: ast.stmt) -> bool:
    """Return whether Paddle does not convert a `for`, and drops its `break` (PD07)."""
    return (
        isinstance(node, ast.For)
        and isinstance(node.iter, ast.Call)
        and not is_call_of(function, node.iter, "builtins.range", "builtins.enumerate")
    )


def may_be_unrolled(function: StaticFunction, loop: Statement) -> bool:
    """Return whether a loop iterates the rows of a tensor whose number Paddle may know.

    It then runs in Python while the graph is built, iteration by iteration, and is not part of it.
    """
    if not isinstance(loop.node, ast.For):
        return False
    rows = loop.node.iter
    if is_call_of(function, rows, "builtins.enumerate") and isinstance(rows, ast.Call) and rows.args:
        rows = rows.args[0]
    known = function.kind(rows).tensor
    if known is None or is_call_of(function, rows, "builtins.range"):
        return False
    return (known.shape[0] if known.shape else known.loose) not in OPEN_SIZES


def calls(statement: Statement) -> Iterator[ast.Call]:
    """The calls that a statement itself makes, without those in functions that it defines."""
    for node in own_parts(statement.node):
        if isinstance(node, ast.Call):
            yield node


def is_call_of(function: StaticFunction, node: ast.AST, *names: str) -> bool:
    """Return whether a call may be of one of some library functions."""
    return isinstance(node, ast.Call) and not function.named.get(node, frozenset()).isdisjoint(names)


def library_names(function: StaticFunction, node: ast.AST) -> set[str]:
    """The possible full library names of an expression."""
    return {each.name for each in function.kind(node).things if isinstance(each, Library)}


def bound_in(block: Iterable[Statement]) -> dict[str, Statement]:
    """The plain names that a block binds, in the order of first binding, with the places."""
    found: dict[str, Statement] = {}
    for top in block:
        for each in top.walk():
            if isinstance(each.node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                continue
            for node in own_parts(each.node):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.setdefault(node.id, each)
    return found


def merged(
    function: StaticFunction, statement: Statement
) -> Iterator[tuple[str, Statement, AbstractValue, AbstractValue]]:
    """Yield the names that an `if` binds and later code reads: the first read, and the value in each branch.

    There are none if only one path continues.
    """
    body, orelse = function.ends.get(statement, (None, None))
    if body is not None and orelse is not None:
        live = function.live_after(statement)
        for name, binding in bound_in(
            each for block in statement.branches.values() for each in block
        ).items():
            if name in live:
                yield name, binding, body.get(name, UNBOUND), orelse.get(name, UNBOUND)


def first_read(function: StaticFunction, after: Statement, name: str) -> tuple[Statement, ast.Name] | None:
    """The first read of a name in the text after a statement."""
    passed = False
    inside = set(after.walk())
    for statement in function.statements:
        if statement is after:
            passed = True
        elif passed and statement not in inside:
            for node in sorted(own_parts(statement.node), key=_place):
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                    return statement, node
    return None


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
