"""Holders: the first holder of a created object, and the conditions around its creation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise

from msgspec import Struct

from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Site,
    Statement,
    argument,
    dotted,
    is_main_guard,
)
from trainshift.python.syntax.slotted_ast import kind_of


class Held(Enum):
    """The first holder of a created object: a name, an argument, a container or a similar place."""

    NAME = "assigned to a name"
    UNPACKED = "unpacked into names"
    ANNOTATED = "assigned with an annotation"
    ATTRIBUTE = "assigned to an attribute"
    ITEM = "assigned to an item"
    SEVERAL = "assigned to several names"
    WALRUS = "named inside an expression"
    COMPILED = "passed to `compile`"
    ARGUMENT = "written inside a call"
    RECEIVER = "used without a name"
    CONTAINER = "put in a container"
    RETURNED = "returned"
    CONTEXT = "made in a `with`"
    ITERATED = "iterated without a name"
    DEFAULT = "the default of a parameter"
    DISCARDED = "not kept"
    EXPRESSION = "part of an expression"


class Condition(Struct, frozen=True):
    """A condition around a creation: `word` names it; it is a compound `statement`, or an expression.

    `decides` is false for a condition in form only, which always lets the code run once.
    """

    word: str
    statement: Statement | None
    decides: bool


def held_by(whole: ast.expr, path: list[ast.AST]) -> tuple[Held, str, ast.Call | None]:
    """The kind of holder of an object, its name, and the call around the creation."""
    child: ast.AST = whole
    for index in range(len(path) - 1, -1, -1):
        parent = path[index]
        if isinstance(parent, ast.IfExp | ast.BoolOp | ast.Starred):
            child = parent
            continue
        if isinstance(parent, ast.keyword):
            above = path[index - 1]
            call = above if isinstance(above, ast.Call) else None
            compiled = parent.arg == "optimizer" and call is not None and _compiles(call)
            return Held.COMPILED if compiled else Held.ARGUMENT, "", call
        if isinstance(parent, ast.Call):
            compiled = _compiles(parent) and argument(parent, 0) is child
            return Held.COMPILED if compiled else Held.ARGUMENT, "", parent
        if isinstance(parent, ast.Attribute):
            above = path[index - 1]
            call = above if isinstance(above, ast.Call) and above.func is parent else None
            return Held.RECEIVER, "", call
        if isinstance(parent, ast.Assign):
            return _assigned(parent)
        if isinstance(parent, ast.AnnAssign):
            held = Held.ANNOTATED if isinstance(parent.target, ast.Name) else Held.ATTRIBUTE
            if isinstance(parent.target, ast.Subscript):
                held = Held.ITEM
            return held, dotted(parent.target), None
        if isinstance(parent, ast.NamedExpr):
            return Held.WALRUS, parent.target.id, None
        return _HOLDERS.get(kind_of(parent), Held.EXPRESSION), "", None
    return Held.EXPRESSION, "", None


_TARGETS = {ast.Name: Held.NAME, ast.Attribute: Held.ATTRIBUTE, ast.Subscript: Held.ITEM}


def _assigned(parent: ast.Assign) -> tuple[Held, str, ast.Call | None]:
    target = parent.targets[0]
    if len(parent.targets) > 1:
        return Held.SEVERAL, dotted(target), None
    return _TARGETS.get(kind_of(target), Held.UNPACKED), dotted(target), None


_HOLDERS = {
    ast.List: Held.CONTAINER,
    ast.Tuple: Held.CONTAINER,
    ast.Set: Held.CONTAINER,
    ast.Dict: Held.CONTAINER,
    ast.ListComp: Held.CONTAINER,
    ast.SetComp: Held.CONTAINER,
    ast.DictComp: Held.CONTAINER,
    ast.GeneratorExp: Held.CONTAINER,
    ast.comprehension: Held.ITERATED,
    ast.For: Held.ITERATED,
    ast.AsyncFor: Held.ITERATED,
    ast.Return: Held.RETURNED,
    ast.Lambda: Held.RETURNED,
    ast.Yield: Held.RETURNED,
    ast.YieldFrom: Held.RETURNED,
    ast.withitem: Held.CONTEXT,
    ast.arguments: Held.DEFAULT,
    ast.Expr: Held.DISCARDED,
}


def _compiles(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "compile"


def conditions(site: Site, whole: ast.expr, path: list[ast.AST]) -> Iterator[Condition]:
    """Yield the conditions around a creation in its function, innermost first."""
    child: ast.AST = whole
    for parent in reversed(path):
        if isinstance(parent, ast.Lambda):
            return
        word = _condition_of(child, parent)
        if word:
            yield Condition(word, None, True)
        child = parent
    below = site.statement
    for above in site.statement.ancestors():
        if isinstance(above.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        guarded = is_main_guard(above) and below.branch == "body"
        word = _WORDS.get(type(above.node).__name__, "")
        if word and not guarded:
            yield Condition(word, above, _decides(above, below.branch))
        below = above


_WORDS = {
    "If": "if", "Match": "match", "For": "for", "AsyncFor": "for", "While": "while", "Try": "try",
    "TryStar": "try",
}  # fmt: skip


def _condition_of(child: ast.AST, parent: ast.AST) -> str:
    if isinstance(parent, ast.IfExp) and child is not parent.test:
        return "conditional expression"
    if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
        return "and" if isinstance(parent.op, ast.And) else "or"
    if isinstance(parent, COMPREHENSIONS) and child is not parent.generators[0]:
        return "comprehension"
    if isinstance(parent, ast.comprehension) and child is not parent.iter:
        return "comprehension"
    if isinstance(parent, ast.While):
        return "while"
    return ""


def _decides(above: Statement, branch: str) -> bool:
    """Return whether the compound statement decides if, or how often, the branch runs."""
    node = above.node
    if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
        return bool(node.test.value) != (branch == "body")
    if isinstance(node, ast.Try):
        return branch != "finally" and bool(node.handlers)
    return True


def excludes(one: Statement, other: Statement) -> bool:
    """Return whether one run takes at most one of two places: different branches, or parts of one
    statement.
    """
    if one is other:
        return True
    above = {statement: below.branch for below, statement in pairwise(one.path())}
    for below, statement in pairwise(other.path()):
        if statement in above:
            branches = isinstance(statement.node, ast.If | ast.Match | ast.Try)
            return branches and above[statement] != below.branch
    return False
