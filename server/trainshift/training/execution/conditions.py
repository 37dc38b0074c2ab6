"""Conditions: the tests of run-constant values that hold where code of a script runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import TypeAlias

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.flow.cfg import Cfg, Edge, Point
from trainshift.python.flow.solver import Analysis, Solution, solve
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import UNKNOWN, UserInstance
from trainshift.python.syntax.chunk_syntax import Binding, Statement, expression_path
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions

# A value is followed through at most this many names; beyond, it counts as one that may change.
_DEEPEST = 20
# Calls that return constants, and the prefixes of calls that make mutable objects, such as a list.
_VALUES = (ast.Constant, ast.Compare, ast.UnaryOp, ast.Attribute)
_OBJECT = re.compile(r"object \d+")
_Outcomes: TypeAlias = frozenset[tuple[Occurrence, bool]]
"""Tests, and whether they hold."""


class Condition(Struct, frozen=True):
    """A value that never changes is one of `values`, or (unless `among`) none of them.

    `of` identifies the value by the source from which the script reads it.
    """

    of: str
    values: frozenset[object]
    among: bool

    def contradicts(self, other: Condition) -> bool:
        """Return whether the two exclude each other."""
        if self.of != other.of or not (self.among or other.among):
            return False
        if self.among and other.among:
            return self.values.isdisjoint(other.values)
        few, many = (self, other) if self.among else (other, self)
        return few.values <= many.values


def contradict(some: Iterable[Condition], others: Iterable[Condition]) -> bool:
    """Return whether two collections of conditions exclude each other."""
    return any(one.contradicts(other) for one, other in product(some, list(others)))


class Conditions:
    """The conditions of one program's code."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._executions = program.fact(Executions)
        self._flow = program.fact(ControlFlow)
        self._solved: dict[Cfg, Solution[_Outcomes]] = {}

    def of(self, at: Occurrence) -> Iterator[Condition]:
        """Yield the conditions that hold wherever an expression is evaluated, as far as its
        function shows.
        """
        statement = at.statement
        assert statement is not None
        for outer, inner in pairwise(expression_path(statement.node, at.node)):
            if isinstance(outer, ast.IfExp) and inner is not outer.test:
                yield from self._read(at.part(outer.test), inner is outer.body)
            elif isinstance(outer, ast.BoolOp):
                for value in outer.values[: outer.values.index(inner)]:  # type: ignore[arg-type]
                    yield from self._read(at.part(value), isinstance(outer.op, ast.And))
        for test, holds in sorted(self._outcomes_at(statement), key=_place):
            yield from self._read(test, holds)

    def _outcomes_at(self, statement: Statement) -> _Outcomes:
        """The tests whose outcome is the same on every path to a statement."""
        if not self._flow.has_tests(statement):
            return frozenset()
        cfg = self._flow.graph(statement)
        if cfg not in self._solved:
            self._solved[cfg] = solve(cfg, _SureOutcomes(self._flow.decisions(cfg)))
        return self._solved[cfg].before(statement.node) or frozenset()

    def _read(self, test: Occurrence, holds: bool) -> Iterator[Condition]:
        """Yield the conditions that follow from a test that is true (or false, if not `holds`)."""
        node = test.node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._read(test.part(node.operand), not holds)
        elif isinstance(node, ast.BoolOp):
            if isinstance(node.op, ast.And) is holds:
                for value in node.values:
                    yield from self._read(test.part(value), holds)
        elif isinstance(node, ast.Compare):
            yield from self._compared(node, test, holds)
        elif (same := self._unchanging(test)) and not _OBJECT.fullmatch(same):
            yield Condition(f"bool({same})", frozenset({True}), holds)

    def _compared(self, node: ast.Compare, test: Occurrence, holds: bool) -> Iterator[Condition]:
        """Yield the conditions that follow from ``mode == "fit"``, ``mode in ("fit", "both")`` and similar
        tests.
        """
        if len(node.ops) != 1:
            return
        known: list[ast.expr]
        operator, right = node.ops[0], node.comparators[0]
        value = self._unchanging(test.part(node.left))
        if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) and isinstance(right, ast.Constant):
            known = [right]
        elif isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
            known = right.elts
        else:
            return
        constants = [each.value for each in known if isinstance(each, ast.Constant)]
        if value and len(constants) == len(known):
            positive = isinstance(operator, ast.Eq | ast.Is | ast.In)
            yield Condition(value, frozenset(constants), positive is holds)

    def _unchanging(self, at: Occurrence, depth: int = 0) -> str:
        """The source of a value that is constant throughout the run; empty if it may change."""
        node = at.node
        if depth > _DEEPEST:
            return ""
        if isinstance(node, ast.Attribute):
            return self._attribute(node, at, depth)
        if not isinstance(node, ast.Name):
            return ""
        bindings = self._names.lookup(node.id, at.scope, None)[1]
        return self._bound_to(bindings[0], depth) if len(bindings) == 1 else ""

    def _attribute(self, node: ast.Attribute, at: Occurrence, depth: int) -> str:
        """Like `_unchanging`, for an attribute that is never set, or only when a class's one object is
        created.
        """
        given = [each.binding for each in self._script.attribute_bindings(node.attr)]
        owners = self._names.values(node.value, at.scope, at.statement)
        if any(isinstance(each, UserInstance) for each in owners):
            if len(owners) != 1 or len(given) != 1 or self._names.bindings(at) != given:
                return ""
            made_once = given[0].scope.name == "__init__" and self._executions.entered_once(given[0].scope)
            return self._bound_to(given[0], depth) if made_once else ""
        bases = self._script.attribute_bindings(node.attr)
        own = all(self._names.is_self(each.base, each.binding.scope) for each in bases)
        if given and (UNKNOWN in owners or not own):
            return ""
        owner = self._unchanging(at.part(node.value), depth + 1)
        return f"{owner}.{node.attr}" if owner else ""

    def _bound_to(self, binding: Binding, depth: int) -> str:
        """Like `_unchanging`, for a name that has a single binding."""
        if binding.kind == "import":
            return f"import {binding.full_name}"
        step = self._names.source_of(binding) if binding.kind in ("value", "parameter") else None
        if step is None or step.unseen or len(step.sources) != 1 or binding.path:
            return ""
        (source,) = step.sources
        known = self._unchanging(source, depth + 1)
        if (
            known
            or source.site is not None
            or source.statement is None
            or self._flow.repeats(source.statement)
        ):
            return known
        kind = "value" if isinstance(source.node, _VALUES) else "object"
        return f"{kind} {id(source.node)}" if self._executions.entered_once(source.scope) else ""


def _place(outcome: tuple[Occurrence, bool]) -> tuple[int, int]:
    node = outcome[0].node
    return node.lineno, node.col_offset


class _SureOutcomes(Analysis[_Outcomes]):
    """The tests whose last outcome is the same on every path to a point."""

    at_raised = False

    def __init__(self, decisions: Iterable[tuple[Edge, Occurrence, bool]]) -> None:
        self._decisions = {edge: (test, holds) for edge, test, holds in decisions}

    def boundary(self, point: Point) -> _Outcomes:
        return frozenset()

    def join(self, left: _Outcomes, right: _Outcomes) -> _Outcomes:
        return left & right

    def transfer(self, point: Point, state: _Outcomes) -> _Outcomes:
        return state

    def refine(self, edge: Edge, state: _Outcomes) -> _Outcomes:
        found = self._decisions.get(edge)
        if found is None:
            return state
        test, holds = found
        return (state - {(test, not holds)}) | {found}
