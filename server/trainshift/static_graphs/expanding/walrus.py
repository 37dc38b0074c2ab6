"""Named: turn `:=` in a condition into an assignment, which both branches or each iteration can read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from trainshift.python.flow.def_use import names_read
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS
from trainshift.static_graphs.expanding.expressions import Expressions
from trainshift.static_graphs.expanding.ir import Loop, Plain, exits, info_of
from trainshift.static_graphs.expanding.refusal import CannotExpand

# Calls that give a tensor a second name.
_SHARING = ast.Name | ast.Attribute | ast.Subscript | ast.IfExp | ast.NamedExpr


def taken_out(test: ast.expr, write: Expressions) -> list[Plain]:
    """The assignments that `:=` makes in a condition, in order; the condition then reads their names.

    Raises CannotExpand if one is not always executed, or if its name was read before.
    """
    found: list[Plain] = []
    for node in _named(test):
        name = node.target.id
        if not write.knowledge.kind(node.value).is_tensor:
            raise CannotExpand(node, f"Trainshift cannot tell whether `{name}` is a tensor; assign it before")
        if _is_read_before(test, node):
            raise CannotExpand(node, f"`{name}` is read here before it is bound; assign it before")
        known = info_of(write.knowledge.kind(node.value))
        text = f"{name} = {write.text(node.value)}"
        if "\n" in text:
            raise CannotExpand(node, f"the value of `{name}` spans several lines; assign it before")
        write.taken_out.add(node)
        known = replace(known, is_alias=isinstance(node.value, _SHARING))
        found.append(Plain([text], names_read(node.value), (name,), gives={name: known}))
    return found


def renew(loop: Loop, named: list[Plain]) -> None:
    """Bind the names in a loop's condition before it, and again at the end of each iteration."""
    if named and exits(loop.body, "continue"):
        raise CannotExpand(loop.node, "a loop with `continue` and a `:=` in its condition is not expanded")
    loop.before += named
    loop.body += [replace(each, leading=[]) for each in named]


def stay(statement: ast.stmt, write: Expressions) -> frozenset[str]:
    """Keep those `:=` of a simple statement that it always executes; others raise CannotExpand.

    Return the names that the statement reads only after it has bound them.
    """
    whole = getattr(statement, "value", None)
    found = set()
    for part in ast.iter_child_nodes(statement):
        for node in _named(part) if isinstance(part, ast.expr) else ():
            shares = node is whole or isinstance(node.value, _SHARING)
            if shares or not write.knowledge.kind(node.value).is_tensor:
                raise CannotExpand(node, f"write this `:=` as an assignment of `{node.target.id}` of its own")
            write.staying.add(node)
            if not _is_read_before(statement, node):
                found.add(node.target.id)
    return frozenset(found)


def _named(node: ast.expr) -> Iterator[ast.NamedExpr]:
    """Each `:=` of a condition, inner ones first; raises CannotExpand for one that is not always executed."""
    if isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
        always: list[ast.AST] = []
    elif isinstance(node, ast.BoolOp):
        always = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        always = [node.test]
    elif isinstance(node, ast.Compare):
        always = [node.left, node.comparators[0]] if len(node.ops) == 1 else []
    else:
        always = [*ast.iter_child_nodes(node)]
    for each in ast.iter_child_nodes(node):
        if each in always:
            yield from _named(each)  # type: ignore[arg-type]
        elif inner := next((part for part in ast.walk(each) if isinstance(part, ast.NamedExpr)), None):
            raise CannotExpand(inner, f"`{inner.target.id}` is not always bound here; assign it before")
    if isinstance(node, ast.NamedExpr):
        yield node


def _is_read_before(whole: ast.AST, named: ast.NamedExpr) -> bool:
    """Return whether a condition or statement reads the name of a `:=` to its left, which runs first."""
    place = named.lineno, named.col_offset
    return any(
        isinstance(each, ast.Name)
        and each.id == named.target.id
        and isinstance(each.ctx, ast.Load)
        and (each.lineno, each.col_offset) < place
        for each in ast.walk(whole)
    )
