"""Weights between steps: the calls that set weights of a model between two steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence, Step, of_call
from trainshift.python.names.values import Function, Unknown
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, Scope, Site, Statement, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import statements_around
from trainshift.training.loops.steps import VARIABLE_LISTS
from trainshift.training.loops.what_trains import WhatTrains

# The attributes of layers that hold their weights.
_HELD = frozenset(
    {"bias", "beta", "depthwise_kernel", "embeddings", "gamma", "kernel", "pointwise_kernel"}
    | {"recurrent_kernel"}
)
_COPYING = ("Variable", "enumerate", "identity", "list", "reversed", "zip")
_HOOK = re.compile(r"on_(((train|test|predict)_)?batch|epoch|test|predict)_(begin|end)$")
# The methods of layers and models that run in each step.
_RUN = ("call", "train_step")


class WeightsBetweenSteps:
    """The calls of one program that set weights of a model."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def are_set_by(self, site: Site) -> bool:
        """Return whether a call sets weights while a training goes on."""
        return self._sets_weights(site) and (self._is_in_hook(site.scope) or self.trains_on(site.statement))

    def keep_state(self, site: Site, receiver: ast.expr) -> bool:
        """Return whether a layer or a model sets a variable of its own in each step, and reads it there."""
        function, cls = site.scope.function(), class_around(site.scope)
        if cls is None or function is None or not isinstance(receiver, ast.Attribute):
            return False
        if function.name not in _RUN or not self._names.descends(cls, *api.LAYER):
            return False
        if self._names.descends(cls, *api.METRIC):
            return False
        return any(
            isinstance(part, ast.Attribute) and part is not receiver and part.attr == receiver.attr
            for statement in self._script.statements
            if statement.scope.function() is function
            and statement is not site.statement
            and not _are_apart(statement, site.statement)
            for part in _parts(statement)
        )

    def _sets_weights(self, site: Site) -> bool:
        """Return whether a call sets the weights of a model, or copies of them that the script keeps."""
        if not isinstance(site.node.func, ast.Attribute):
            return False
        if site.name == "set_weights":
            return True
        step = self._names.steps_back
        listed = reachable(
            [of_call(site).part(site.node.func.value)],
            lambda at: self._elements_of(at, step(at)),
            lambda at: (at.node, at.scope),
        )
        return any(isinstance(at.node, ast.Attribute) and self._is_weight(at.node, at) for at in listed)

    def _is_weight(self, node: ast.Attribute, at: Occurrence) -> bool:
        """Return whether an attribute is a list of variables, or a weight of a layer."""
        owners = self._names.values(node.value, *at[1:3]) if node.attr in _HELD else ()
        return node.attr in VARIABLE_LISTS or any(
            isinstance(each, Unknown) or self._names.is_a(each, *api.LAYER) for each in owners
        )

    def _elements_of(self, at: Occurrence, step: Step | None) -> Iterator[Occurrence]:
        """Yield what an element comes from: the list that it is in, or the one whose copies it is in."""
        node = at.node
        if step is not None:
            yield from (*step.sources, *step.within)
        if isinstance(node, COMPREHENSIONS):
            yield from (Occurrence(each.iter, at.scope, at.statement) for each in node.generators)
        elif isinstance(node, ast.Subscript):
            yield at.part(node.value)
        elif isinstance(node, ast.Call) and last_name(node.func) in _COPYING:
            yield from map(at.part, node.args)

    def trains_on(self, statement: Statement) -> bool:
        """Return whether a statement runs between two steps: in a loop that trains, or between two."""
        trains = self._program.fact(WhatTrains).statement_trains
        for each in (statement, *statements_around(self._names, statement)):
            if self._is_in_hook(each.scope) or (isinstance(each.node, LOOPS) and trains(each)):
                return True
            beside = self._blocks.get((each.parent, each.scope.function()), [])
            at = beside.index(each) if each in beside else 0
            if any(map(trains, beside[:at])) and any(map(trains, beside[at + 1 :])):
                return True
        return False

    def _is_in_hook(self, scope: Scope) -> bool:
        """Return whether Keras calls code between two steps: ``on_epoch_end`` of a callback, or a function
        in its place.
        """
        function, cls = scope.function(), class_around(scope)
        return function in self._handed or (
            function is not None
            and cls is not None
            and _HOOK.match(function.name) is not None
            and self._names.descends(cls, *api.CALLBACK)
        )

    @cached_property
    def _handed(self) -> set[Scope]:
        """The functions that a callback calls between two steps: ``LambdaCallback(on_epoch_end=...)``."""
        return {
            value.scope
            for site in self._script.sites_named("LambdaCallback")
            for word in site.node.keywords
            if word.arg is not None and _HOOK.match(word.arg)
            for value in self._names.site_values(word.value, site)
            if isinstance(value, Function)
        }

    @cached_property
    def _blocks(self) -> dict[tuple[Statement | None, Scope | None], list[Statement]]:
        """The statements of each block, by the statement and the function around them."""
        found: dict[tuple[Statement | None, Scope | None], list[Statement]] = {}
        for each in self._script.statements:
            found.setdefault((each.parent, each.scope.function()), []).append(each)
        return found


def _parts(statement: Statement) -> Iterator[ast.AST]:
    """Yield the parts of a statement that has no blocks."""
    if not any(statement.branches.values()):
        yield from ast.walk(statement.node)


def _are_apart(one: Statement, other: Statement) -> bool:
    """Return whether two statements are in different branches of one test."""
    branches = {above: below.branch for below, above in pairwise(one.path())}
    return any(
        branches.get(above, below.branch) != below.branch and isinstance(above.node, ast.If)
        for below, above in pairwise(other.path())
    )
