"""Spellings: the sources of values in a chunk, before any name is resolved."""

from __future__ import annotations

import ast

from msgspec import Struct

from trainshift.python.syntax.chunk_syntax import Binding, ChunkSyntax, alternatives, last_name

COMPUTING = frozenset({"import_module", "__import__", "getattr"})
# Nodes with the same value as one of their subexpressions.
_LEADING_ON = (ast.Call, ast.Attribute, ast.Subscript, ast.NamedExpr, ast.Starred)


class Spelling(Struct, frozen=True):
    """The sources of values in a chunk, by spelling alone.

    `named` and `held` pair the bindings of names, or of attributes and items, with the words that may give
    their values; None if these may be computed.  `defaults` are parameters.  `following` pairs names with the
    words that may give their values; `parameters` are those of each function by name.
    """

    named: list[tuple[Binding, tuple[str, ...] | None]]
    held: list[tuple[Binding, tuple[str, ...] | None]]
    defaults: list[Binding]
    following: list[tuple[str, tuple[str, ...]]]
    parameters: list[tuple[str, list[str]]]


def spelling_of(facts: ChunkSyntax) -> Spelling:
    """The sources of values in one chunk, by spelling alone."""
    reading = Spelling([], [], [], [], [])
    scopes = (facts.module, *dict.fromkeys(facts.scope_of.values()))
    named = [each for scope in scopes for bindings in scope.bindings.values() for each in bindings]
    held = [each.binding for given in facts.attributes.values() for each in given]
    held += [each.binding for given in facts.items.values() for each in given if each.key is not None]
    for bindings, found in ((named, reading.named), (held, reading.held)):
        for binding in bindings:
            if binding.value is None:
                continue
            if binding.kind == "parameter":
                reading.defaults.append(binding)
            words = tuple(words_of(binding.value))
            if words and isinstance(binding.target, ast.expr) and (name := last_name(binding.target)):
                reading.following.append((name, words))
            if binding.kind == "element":
                found.append((binding, words))
            elif binding.kind == "value" and (value := binding.taken) is not None:
                computed = any(map(_may_compute, leaves(value)))
                if words or computed:
                    found.append((binding, None if computed else words))
    for scope in facts.scopes:
        for value, _ in scope.returns:
            if scope.name and (words := tuple(words_of(value))):
                reading.following.append((scope.name, words))
        arguments_of = getattr(scope.node, "args", None)
        called = scope.parent.name if scope.name == "__init__" and scope.parent else scope.name
        if called and isinstance(arguments_of, ast.arguments):
            given = (*arguments_of.posonlyargs, *arguments_of.args, *arguments_of.kwonlyargs)
            reading.parameters.append((called, [each.arg for each in given]))
    return reading


def _may_compute(leaf: ast.expr) -> bool:
    """Return whether an expression may evaluate to a module, or a member, by a computed name."""
    if isinstance(leaf, ast.Call):
        return last_name(leaf.func) in COMPUTING
    return isinstance(leaf, ast.Subscript)


def words_of(*nodes: ast.expr) -> set[str]:
    """The names and attributes that may be, or give, the value of expressions."""
    found: set[str] = set()
    waiting = [*nodes]
    while waiting:
        each = waiting.pop()
        while isinstance(each, _LEADING_ON):
            if isinstance(each, ast.Attribute):
                found.add(each.attr)
            each = each.func if isinstance(each, ast.Call) else each.value
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif not isinstance(each, ast.Constant):
            waiting += alternatives(each) or parts(each)
    return found


def leaves(node: ast.expr) -> list[ast.expr]:
    """The alternatives of an expression: both arms of a condition, the operands of ``or``."""
    parts = alternatives(node)
    return [leaf for part in parts for leaf in leaves(part)] if parts else [node]


def parts(node: ast.expr) -> list[ast.expr]:
    """The elements of a literal container."""
    if isinstance(node, ast.Dict):
        return node.values
    return node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
