"""Frame: the place of an evaluation: its scope, its statement, and the names that are known there."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.static_graphs.domain.abstract_values import AbstractValue, Env
from trainshift.static_graphs.reading.function import StaticFunction, Truth

Words = Mapping[str, AbstractValue]
"""The values of a call's keyword arguments."""


class Frame(Struct, frozen=True):
    """A place of evaluation; `function` is None outside static functions, for which nothing is recorded."""

    scope: Scope
    statement: Statement | None
    env: Env
    function: StaticFunction | None = None

    def note(self, node: ast.AST, value: AbstractValue) -> AbstractValue:
        """Record the value of an expression."""
        if self.function is not None:
            self.function.kinds[node] = value
        return value

    def judge(self, node: ast.AST, truth: Truth) -> Truth:
        """Record the form of control flow."""
        if self.function is not None:
            self.function.truths[node] = truth
        return truth

    def inside(self, scope: Scope, env: Env) -> Frame:
        """The frame of a comprehension or a lambda."""
        return replace(self, scope=scope, env=env)


class Call(Struct, frozen=True):
    """A call under evaluation: the values that it passes, and its place."""

    node: ast.Call
    given: tuple[AbstractValue, ...]
    words: Words
    frame: Frame


def at_site(site: Site) -> Frame:
    """The frame of a call outside static functions."""
    return Frame(site.scope, site.statement, {})


def truth_of(value: AbstractValue) -> Truth:
    """The form of control flow on a value."""
    if value.is_tensor:
        return Truth.GRAPH
    if value.tensor is not None or value.unknown:
        return Truth.EITHER
    return Truth.PYTHON
