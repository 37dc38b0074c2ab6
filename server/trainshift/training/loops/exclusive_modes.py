"""Exclusive modes: pairs of code in a program that never run for the same object.

Two calls belong to exclusive modes if every path to one parts from every path to the other: in two branches
of an `if` or a `match`, after a branch that exits, in calls of different functions, or under contradictory
conditions.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import pairwise, product
from typing import TypeAlias

from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, expression_path, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import callers_around
from trainshift.training.execution.conditions import Conditions, contradict
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.loops.loops import Loops

# The code that runs, the call that runs its function, and so on outwards.
_Way: TypeAlias = tuple[Occurrence, ...]
# Beyond this many paths, or this many calls on one path, nothing is excluded.
_MOST_WAYS = 64
_DEEPEST = 60


class Modes:
    """The pairs of places in one program of which each run reaches at most one."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._conditions = program.fact(Conditions)
        self._flow = program.fact(ControlFlow)
        self._ways = Questions[list[_Way]]([], [()], deepest=_DEEPEST)

    def exclude(self, one: Occurrence, other: Occurrence, made: Collection[Site]) -> bool:
        """Return whether two expressions are never both evaluated for one object created by the
        calls `made`.
        """
        ways, others = self._to(one), self._to(other)
        makers = self._makers(made)
        few = len(ways) * len(others) <= _MOST_WAYS
        return few and all(self._part(way, by, makers) for way, by in product(ways, others))

    def runs_once(self, at: Occurrence, made: Collection[Site]) -> bool:
        """Return whether an expression is evaluated at most once for each object created by the
        calls `made`.
        """
        return self._once(at, self._makers(made))

    # The paths to an expression

    def _to(self, at: Occurrence) -> list[_Way]:
        """The paths on which an expression is reached, back to a function with unknown callers."""
        return [(at, *way) for way in self._into(at.scope.function())]

    def _into(self, function: Scope | None) -> list[_Way]:
        if function is None:
            return [()]
        # Its recursive calls lead to nothing new.
        return self._ways.ask((function,), self._found_into, function)

    def _found_into(self, function: Scope) -> list[_Way]:
        sites, all_seen = self._callers(function)
        ways = [way for site in sites for way in self._to(of_call(site))]
        return ways if all_seen and len(ways) <= _MOST_WAYS else [()]

    def _callers(self, function: Scope) -> tuple[list[Site], bool]:
        """The calls that run a function, and whether these are all."""
        found, elsewhere = self._program.names.callers(function)
        if not elsewhere:
            return found, True
        found = self._program.fact(Loops).callers(function)
        reads = sum(script.loads(function.name) for script in self._script.home(function).users)
        return found, bool(found) and reads == len(found)

    # Where two paths part

    def _part(self, way: _Way, other: _Way, makers: Collection[Site]) -> bool:
        """Return whether two paths exclude each other, so that no run reaches both ends."""
        for (depth, one), (level, two) in product(enumerate(way), enumerate(other)):
            if one.scope.function() is two.scope.function() and self._apart(one, two, makers):
                return True
            # One call runs one function, whichever it may be.
            if depth and level and one.node is two.node and self._once(one, makers):
                if way[depth - 1].scope.function() is not other[level - 1].scope.function():
                    return True
        some, others = ([each for at in path for each in self._conditions.of(at)] for path in (way, other))
        return contradict(some, others)

    def _apart(self, one: Occurrence, two: Occurrence, makers: Collection[Site]) -> bool:
        """Return whether each call of a function evaluates only one of two expressions."""
        if one.statement is two.statement:
            return _in_two_arms(one, two) and self._once(one, makers)
        for first, second in product(_within(one), _within(two)):
            block, place = self._script.siblings(first)
            others, index = self._script.siblings(second)
            if first is not second and block is others:
                at, before, after = (one, first, second) if place < index else (two, second, first)
                assert at.statement is not None
                return self._flow.never_falls(at.statement, before) and self._once(_of(after), makers)
            above = first.parent
            if above is not None and above is second.parent and first.branch != second.branch:
                return isinstance(above.node, ast.If | ast.Match) and self._once(_of(above), makers)
        return False

    # How often code runs

    def _makers(self, made: Collection[Site]) -> set[Site]:
        """The calls that return a new object each time: constructors, and calls of functions that return
        their results.
        """

        def handed_on(site: Site) -> list[Site]:
            return [caller for caller in callers_around(self._program.names, site) if _gives_new(caller)]

        return set(reachable(filter(_gives_new, made), handed_on))

    def _once(self, at: Occurrence, makers: Collection[Site], seen: frozenset[Scope] = frozenset()) -> bool:
        """Return whether an expression is evaluated at most once for each object of the `makers`."""
        assert at.statement is not None
        if at.scope.kind == "comprehension" or isinstance(at.statement.node, ast.While):
            return False
        for below, above in pairwise(_within(at)):
            if isinstance(above.node, LOOPS) and below.branch == "body":
                return any(_always_in(site, above) for site in makers)
        function = at.scope.function()
        if function is None:
            return True
        if any(site.scope.function() is function and _always_in(site, None) for site in makers):
            return True
        sites, all_seen = self._callers(function)
        alone = all_seen and len(sites) == 1 and not sites[0].deferred and function not in seen
        return alone and self._once(of_call(sites[0]), makers, seen | {function})


def _of(statement: Statement) -> Occurrence:
    """The occurrence of a statement's first evaluated expression."""
    return Occurrence(ast.Constant(None), statement.scope, statement)


def _within(at: Occurrence) -> Iterator[Statement]:
    """Yield the statement of an expression and the statements around it, out to the body of its function."""
    assert at.statement is not None
    for each in at.statement.path():
        if each.scope.function() is not at.statement.scope.function():
            return
        yield each


def _in_two_arms(one: Occurrence, two: Occurrence) -> bool:
    """Return whether two expressions of one statement are in different arms of a conditional expression."""
    assert one.statement is not None
    paths = (pairwise(expression_path(one.statement.node, each.node)) for each in (one, two))
    for (above, left), (_, right) in zip(*paths, strict=False):
        if left is not right:
            return isinstance(above, ast.IfExp) and above.test not in (left, right)
    return False


def _always_in(site: Site, loop: Statement | None) -> bool:
    """Return whether a call is made in each iteration of a loop, or (None) in each call of its function."""
    for below, above in pairwise(_within(of_call(site))):
        if above is loop:
            return below.branch == "body"
        if not isinstance(above.node, ast.With):
            return False
    return loop is None


def _gives_new(site: Site) -> bool:
    """Return whether a call creates an object that is not kept for the next time: it is named, or
    returned.
    """
    node, function = site.statement.node, site.scope.function()
    if site.deferred or not isinstance(node, ast.Return | ast.Assign):
        return False
    around = expression_path(node, site.node)[1:-1]
    if any(isinstance(each, ast.Call) and not last_name(each.func)[:1].isupper() for each in around):
        return False
    if function is None or isinstance(node, ast.Return):
        return not getattr(function and function.node, "decorator_list", None)
    lasting = function.declared_global | function.declared_nonlocal
    return all(
        (isinstance(each, ast.Name) and each.id not in lasting)
        or (isinstance(each, ast.Attribute) and function.name == "__init__")
        for each in node.targets
    )
