"""StaticFunction: a function that becomes a static graph, and the facts about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum, IntEnum
from itertools import takewhile

from msgspec import Struct, field

from trainshift.python.flow.cfg import Cfg
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.def_use import Names
from trainshift.python.flow.liveness import Liveness
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import is_decorated
from trainshift.python.names.scoping import owner_of
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, Function, UserInstance
from trainshift.python.syntax.chunk_syntax import FunctionNode, Scope, Statement
from trainshift.static_graphs.domain.abstract_values import NOTHING, UNKNOWN, AbstractValue, Env
from trainshift.static_graphs.reading.stores import Stores


class Mode(IntEnum):
    """The mode in which a function is made static, the strongest last."""

    OPEN = 0
    SOT = 1
    FULL = 2


class Truth(Enum):
    """The form of control flow: part of the graph, run by Python, or one of both."""

    GRAPH = "graph"
    PYTHON = "python"
    EITHER = "either"


class Why(Struct, frozen=True):
    """The reason why a function is static: code in a scope, or the calling function, `caller`."""

    node: ast.AST
    scope: Scope
    caller: StaticFunction | None = None


class StaticFunction(Struct, eq=False, dict=True):
    """A function that becomes a static graph.

    `parameters` are its possible arguments, `closure` the names of the enclosing function.  `kinds` are the
    values of each expression, `ends` the names after the body and the `else` of each `if` (None if that path
    leaves the block), `before` the names before each compound statement.
    """

    scope: Scope
    script: Script
    mode: Mode
    why: Why
    is_entry: bool = False
    has_spec: bool = False
    parameters: Env = field(default_factory=dict)
    closure: Env = field(default_factory=dict)
    returns: AbstractValue = NOTHING
    kinds: dict[ast.AST, AbstractValue] = field(default_factory=dict)
    truths: dict[ast.AST, Truth] = field(default_factory=dict)
    ends: dict[Statement, tuple[Env | None, Env | None]] = field(default_factory=dict)
    before: dict[Statement, Env] = field(default_factory=dict)
    after: dict[Statement, Env] = field(default_factory=dict)
    returned: dict[Statement, AbstractValue] = field(default_factory=dict)
    stored: Stores = field(default_factory=dict)
    """The stores by it and its callees into containers, attributes and names that are not its own."""
    bound: dict[str, AbstractValue] = field(default_factory=dict)
    """The possible values of its names, anywhere in it."""
    reached: set[Statement] = field(default_factory=set)
    at_first: dict[ast.AST, Truth] = field(default_factory=dict)
    """The value of a `while` test before its first iteration."""
    is_too_deep: bool = False
    """True if its code is nested too deeply to be read: nothing is known about it."""
    falls_through: bool = False
    """True if its end may be reached without a `return`."""
    calls: dict[ast.Call, tuple[StaticFunction, ...]] = field(default_factory=dict)
    unconverted: dict[ast.Call, str] = field(default_factory=dict)
    """The calls of functions with tensor control flow that Paddle does not convert, each with the reason."""
    named: dict[ast.Call, frozenset[str]] = field(default_factory=dict)
    """The possible full library names of each call; methods of tensors as ``paddle.Tensor.sum``."""

    @property
    def node(self) -> FunctionNode:
        """The function's own code."""
        assert isinstance(self.scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        return self.scope.node

    @property
    def takes_self(self) -> bool:
        """Return whether its first parameter is the object whose method it is."""
        return self.scope.owner() is not None and not is_decorated(self.scope, "staticmethod")

    @property
    def positional(self) -> list[ast.arg]:
        """The positional parameters, without `self`."""
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args][int(self.takes_self) :]

    def rebound_in(self, scope: Scope) -> list[str]:
        """The names of the function that a scope within it binds by ``nonlocal``."""
        return sorted(each for each in scope.declared_nonlocal if owner_of(each, scope) is self.scope)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.scope.name or "lambda"

    @property
    def title(self) -> str:
        """The function's name, with that of its class."""
        return title_of(self.scope)

    @cached_property
    def block(self) -> list[Statement]:
        """Its own statements."""
        statement = self.scope.statement
        if statement is None or statement.node is not self.scope.node:
            return []
        return statement.branches.get("body", [])

    @cached_property
    def statements(self) -> list[Statement]:
        """Every statement of its own, in text order, without those of inner functions."""
        return [each for top in self.block for each in top.walk() if each.scope is self.scope]

    @cached_property
    def statement_of(self) -> dict[ast.stmt, Statement]:
        """Every statement of its own, by its node."""
        return {each.node: each for each in self.statements}

    def callees(self) -> list[StaticFunction]:
        """The static functions that it calls."""
        return [each for called in self.calls.values() for each in called]

    @cached_property
    def own_nodes(self) -> frozenset[ast.AST]:
        """The nodes of its code, including inner functions, without its parameters."""
        body = self.node.body
        parts = body if isinstance(body, list) else [body]
        return frozenset(node for part in parts for node in ast.walk(part))

    @cached_property
    def cfg(self) -> Cfg:
        """The control-flow graph of its code."""
        return build(self.node, swallows=self._may_swallow)

    def _may_swallow(self, item: ast.withitem) -> bool:
        """Return whether a context manager may suppress exceptions: those of libraries do not, with one
        exception.
        """
        made = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
        full = self.script.names.full_names(made, self.scope)
        if full:
            return "contextlib.suppress" in full
        values = self.script.names.values(made, self.scope)
        return any(isinstance(each, Class | Function | UserInstance) for each in values)

    @cached_property
    def liveness(self) -> Liveness:
        """The liveness of names."""
        return Liveness(self.cfg)

    def live_after(self, statement: Statement) -> Names:
        """The names that may be read after a statement, before they are bound again."""
        return self.liveness.after(statement.node)

    def kind(self, node: ast.AST) -> AbstractValue:
        """The possible values of an expression at its place; unknown if it is unreachable."""
        return UNKNOWN if self.is_too_deep else self.kinds.get(node, NOTHING)

    def truth(self, node: ast.AST) -> Truth:
        """The form of an `if`, a loop, an `assert` or an operator; PYTHON if it is unreachable."""
        return Truth.EITHER if self.is_too_deep else self.truths.get(node, Truth.PYTHON)

    def may_be_graph(self, node: ast.AST) -> bool:
        """Return whether control flow is known to become part of the graph, at least on some path."""
        truth = self.truth(node)
        if truth is not Truth.EITHER:
            return truth is Truth.GRAPH
        asked = node.iter if isinstance(node, ast.For | ast.AsyncFor) else getattr(node, "test", node)
        value = self.kind(asked)
        element = value.element if value.python & {"range", "enumerate"} else None
        return value.may_be_tensor or (element is not None and element.may_be_tensor)

    def around(self, statement: Statement) -> Iterator[Statement]:
        """The compound statements of the function around one, innermost first."""
        return takewhile(lambda each: each.scope is self.scope, statement.ancestors())

    def graph_around(self, statement: Statement, *truths: Truth) -> list[Statement]:
        """Return the compound statements around one that may become part of the graph, innermost first.

        With `truths`, only statements with one of these forms count.
        """
        return [
            each
            for each in self.around(statement)
            if self.truth(each.node) in truths or (not truths and self.may_be_graph(each.node))
        ]

    def left_by(self, statement: Statement) -> list[Statement]:
        """The compound statements that a `return` leaves, or a `break` or `continue`; innermost first."""
        found, below = [], statement
        for each in statement.ancestors():
            if below.scope is not self.scope or each.scope is not self.scope:
                break
            found.append(each)
            if not isinstance(statement.node, ast.Return) and _is_loop_of(each, below):
                break
            below = each
        return found

    def loops_around(self, statement: Statement) -> list[Statement]:
        """The loops around a statement, innermost first, as `break` sees them."""
        around = [each for each in statement.ancestors() if each.scope is self.scope]
        return [
            each
            for each, below in zip(around, [statement, *around], strict=False)
            if _is_loop_of(each, below)
        ]


def _is_loop_of(around: Statement, below: Statement) -> bool:
    """Return whether a statement is a loop with another one in its body."""
    return isinstance(around.node, ast.For | ast.AsyncFor | ast.While) and below.branch == "body"


def title_of(function: Scope) -> str:
    """A function's name, with that of its class; a lambda has none."""
    owner, name = function.owner(), function.name or "lambda"
    return f"{owner.name}.{name}" if owner is not None else name
