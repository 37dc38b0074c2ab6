"""Uses: every place in which a program creates or uses a `tf.distribute` strategy."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct, field

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Instance, Value
from trainshift.python.syntax import call_binding
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    alternatives,
    arguments,
    children,
    last_name,
)
from trainshift.training.execution.executions import is_of_one_branch

# Functions that return the current strategy, which is the default strategy of one replica otherwise.
GET_STRATEGY = "tensorflow.distribute.get_strategy"
# The strategies that replicate a model, by the last parts of their names.
REPLICATING = frozenset({"MirroredStrategy", "OneDeviceStrategy", "MultiWorkerMirroredStrategy"})


class Use(Struct, eq=False):
    """An expression for a strategy, with the nodes around it, innermost first.

    Not `sure` if it may have another value too.
    """

    node: ast.expr
    around: list[ast.AST]
    statement: Statement
    scope: Scope
    made: frozenset[Instance]
    sure: bool = True

    @property
    def parent(self) -> ast.AST:
        """The node around the expression."""
        return self.around[0]


class _Parts(Struct, eq=False):
    """The parts of one statement's own expressions."""

    statement: Statement
    above: dict[ast.AST, ast.AST] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)


class Reading(NamedTuple):
    """A read of a name, and the expression around it."""

    node: ast.Name
    parent: ast.AST
    scope: Scope
    statement: Statement


class Strategies:
    """The strategies of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    @cached_property
    def needed(self) -> list[Site]:
        """The `makers`, without those of a strategy that only one branch of an `if` uses."""
        return [site for site in self.makers if not self._is_beside(site)]

    def uses(self, makers: Sequence[Site]) -> list[Use]:
        """The uses of the strategies that some calls create, in text order, including the creations."""
        found: set[ast.AST] = set()
        made: set[ast.AST] = {site.node for site in makers}
        while not made <= found:  # An expression that may be one of two strategies is a use of both.
            found |= made
            together = (use.made for use in self._uses if any(each.node in found for each in use.made))
            made = {each.node for instances in together for each in instances}
        return [use for use in self._uses if any(each.node in found for each in use.made)]

    @cached_property
    def readings(self) -> dict[str, list[Reading]]:
        """The reads of each name."""
        found: dict[str, list[Reading]] = {}
        for reading in self._readings:
            for node, scope in reading.scopes.items():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    found.setdefault(node.id, []).append(
                        Reading(node, reading.above[node], scope, reading.statement)
                    )
        return found

    def name_of(self, site: Site) -> str:
        """The full name of the strategy class that a call instantiates; empty if it is none."""
        names = self._program.names.full_names(site.node.func, site.scope, site.statement)
        return next((name for name in names if api.is_subclass(name, *api.STRATEGY)), "")

    @cached_property
    def own_classes(self) -> list[Scope]:
        """The strategy classes of the program itself."""
        if not self._is_named:
            return []
        return [
            scope
            for scope in self._script.scopes
            if scope.kind == "class" and self._program.names.descends(scope, *api.STRATEGY)
        ]

    @cached_property
    def _is_named(self) -> bool:
        return any("trategy" in name for name in self._script.identifiers)

    @cached_property
    def calls(self) -> set[ast.AST]:
        """The calls that return a strategy, including the current one."""
        current = (
            site.node
            for site in self._script.sites_calling({"get_strategy"})
            if self._program.names.calls(site, GET_STRATEGY)
        )
        return {*current, *(site.node for site in self.makers)}

    @cached_property
    def makers(self) -> list[Site]:
        """The calls that make a strategy."""
        if not self._is_named:
            return []
        calls = self._script.sites_calling(api.last_names(*api.STRATEGY))
        return [site for site in calls if self.name_of(site)]

    def _is_beside(self, maker: Site) -> bool:
        """Return whether a strategy is created and used in one branch only, and the others work without
        it.
        """
        if not is_of_one_branch(maker):
            return False
        below, above = next(
            (below, above)
            for below, above in pairwise(maker.statement.path())
            if isinstance(above.node, ast.If) and above.branches.get("orelse") and below.branch != "header"
        )
        branch = above.branches[below.branch]
        uses = [use for use in self._uses if any(each.node is maker.node for each in use.made)]
        return all(any(each in branch for each in use.statement.path()) for use in uses)

    @cached_property
    def _uses(self) -> list[Use]:
        if not self.makers:
            return []
        names, makers = self._names, self.calls
        found: dict[ast.expr, Use] = {}
        for reading in self._readings:
            for node in reading.above:
                if not isinstance(node, ast.expr) or not self._may_be(node, names, makers):
                    continue
                use = self._use(node, reading)
                if use is not None and use.node not in found:
                    found[use.node] = use
        return sorted(found.values(), key=lambda use: self._script.span(use.node, use.statement).start)

    def _use(self, node: ast.expr, reading: _Parts) -> Use | None:
        values = self._values(node, reading)
        if not any(map(_is_strategy, values)):
            return None
        while isinstance(above := reading.above[node], ast.expr) and node in alternatives(above):
            node = above
            values = self._values(node, reading)
        around = []
        current: ast.AST = node
        while current in reading.above:
            current = reading.above[current]
            around.append(current)
        made = frozenset(each for each in values if isinstance(each, Instance) and _is_strategy(each))
        sure = len(made) == len(values)
        return Use(node, around, reading.statement, reading.scopes[node], made, sure)

    def _values(self, node: ast.expr, reading: _Parts) -> frozenset[Value]:
        return self._program.names.values(node, reading.scopes[node], reading.statement)

    @cached_property
    def _names(self) -> set[str]:
        """The names that may hold a strategy, or return one when called."""
        found: set[str] = set()
        makers = self.calls
        scripts = self._script.scripts
        size = -1
        while size < len(found):
            size = len(found)
            for facts in (facts for script in scripts for facts in script.facts):
                for scope in (facts.module, *facts.scopes):
                    for name, bindings in scope.bindings.items():
                        if any(
                            each.full_name.rpartition(".")[2] in found
                            or (each.value is not None and self._may_be(each.value, found, makers))
                            for each in bindings
                        ):
                            found.add(name)
                    if any(self._may_be(value, found, makers) for value, _ in scope.returns):
                        found.add(scope.name)
                for name, given in facts.attributes.items():
                    values = (each.binding.value for each in given)
                    if any(value is not None and self._may_be(value, found, makers) for value in values):
                        found.add(name)
            for site in self._script.sites:
                if any(self._may_be(each, found, makers) for each in arguments(site.node)):
                    for function in self._program.names.called_functions(site):
                        found.update(each.arg for each in parameters(function))
        return found

    def _may_be(self, node: ast.expr, names: set[str], makers: set[ast.AST]) -> bool:
        """Return whether an expression may be a strategy, by the names in it."""
        if isinstance(node, ast.Call):
            return node in makers or last_name(node.func) in names
        if isinstance(node, ast.Tuple | ast.List):
            return any(self._may_be(each, names, makers) for each in node.elts)
        parts = alternatives(node)
        if parts:
            return any(self._may_be(each, names, makers) for each in parts)
        return last_name(node) in names and isinstance(getattr(node, "ctx", None), ast.Load)

    @cached_property
    def _readings(self) -> list[_Parts]:
        return [_read(statement) for statement in self._script.statements]


def parameters(function: Scope) -> list[ast.arg]:
    """The parameters of a function that only get values from arguments."""
    node = function.node
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    return call_binding.parameters(node.args)


def _read(statement: Statement) -> _Parts:
    """The statement's own expressions, with the parents and the scope of each."""
    reading = _Parts(statement)
    inner = statement.scope.facts.scope_of
    waiting: list[tuple[ast.AST, Scope]] = [(statement.node, statement.scope)]
    for node, scope in waiting:
        for child in _children(node):
            reading.above[child] = node
            reading.scopes[child] = scope
            waiting.append((child, inner.get(child, scope)))
    return reading


def _children(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in children(node) if not isinstance(each, ast.stmt))


def _is_strategy(value: Value) -> bool:
    return isinstance(value, Instance) and (
        value.cls == GET_STRATEGY or api.is_subclass(value.cls, *api.STRATEGY)
    )
