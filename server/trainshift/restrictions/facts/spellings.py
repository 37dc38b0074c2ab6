"""Spellings: what a chunk tells of where its values come from, before any name is resolved."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from trainshift.core.text.facts import Binding, Facts, alternatives, arguments, last_name

COMPUTING = frozenset({"import_module", "__import__", "getattr"})


@dataclass(frozen=True, slots=True)
class Spelling:
    """What a chunk tells by spelling alone of where its values come from.

    `named` and `held` pair what binds names, or attributes and items, with the words that its value may come
    from; None where that may be computed.  `defaults` are parameters.  `following` pairs words with the
    names that may get their value; `parameters` are those of each function by what it is called, `given`
    pairs what is called with the words in its arguments.
    """

    named: list[tuple[Binding, tuple[str, ...] | None]]
    held: list[tuple[Binding, tuple[str, ...] | None]]
    defaults: list[Binding]
    following: set[tuple[str, str]]
    parameters: list[tuple[str, list[str]]]
    given: set[tuple[str, str]]


def spelling_of(facts: Facts) -> Spelling:
    """What one chunk tells by spelling alone."""
    reading = Spelling([], [], [], set(), [], set())
    scopes = (facts.module, *dict.fromkeys(facts.scope_of.values()))
    named = [each for scope in scopes for bindings in scope.bindings.values() for each in bindings]
    held = [each.binding for given in facts.attributes.values() for each in given]
    held += [each.binding for given in facts.items.values() for each in given if each.key is not None]
    for bindings, found in ((named, reading.named), (held, reading.held)):
        for binding in bindings:
            if binding.value is None:
                continue
            words = tuple(words_of(binding.value))
            if isinstance(binding.target, ast.expr):
                _follow(reading, last_name(binding.target), words)
            if binding.kind == "parameter":
                reading.defaults.append(binding)
            elif binding.kind == "element":
                found.append((binding, words))
            elif binding.kind == "value" and (value := binding.taken) is not None:
                found.append((binding, None if any(map(_may_compute, leaves(value))) else words))
    for scope in facts.scopes:
        for value, _ in scope.returns:
            _follow(reading, scope.name, words_of(value))
        arguments_of = getattr(scope.node, "args", None)
        called = scope.parent.name if scope.name == "__init__" and scope.parent else scope.name
        if called and isinstance(arguments_of, ast.arguments):
            given = (*arguments_of.posonlyargs, *arguments_of.args, *arguments_of.kwonlyargs)
            reading.parameters.append((called, [each.arg for each in given]))
    for site in facts.sites:
        if site.name:
            reading.given.update([(site.name, word) for word in words_of(*arguments(site.node))])
    return reading


def _follow(reading: Spelling, name: str, words: Iterable[str]) -> None:
    if name:
        reading.following.update([(word, name) for word in words])


def _may_compute(leaf: ast.expr) -> bool:
    """Whether an expression may give a module, or a member, by a name that it computes."""
    if isinstance(leaf, ast.Call):
        return last_name(leaf.func) in COMPUTING
    return isinstance(leaf, ast.Subscript)


def words_of(*nodes: ast.expr) -> set[str]:
    """The names and attributes that expressions may be the value of, or may get their value from."""
    found: set[str] = set()
    waiting = [*nodes]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Constant):
            continue
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
            waiting.append(each.value)
        elif isinstance(each, ast.Call):
            waiting.append(each.func)
        elif isinstance(each, (ast.Subscript, ast.NamedExpr, ast.Starred)):
            waiting.append(each.value)
        elif isinstance(each, ast.IfExp):
            waiting += [each.body, each.orelse]
        elif isinstance(each, ast.BoolOp):
            waiting += each.values
        else:
            waiting += parts(each)
    return found


def leaves(node: ast.expr) -> list[ast.expr]:
    """What an expression gives one of: both arms of a condition, the operands of ``or``."""
    parts = alternatives(node)
    return [leaf for part in parts for leaf in leaves(part)] if parts else [node]


def parts(node: ast.expr) -> list[ast.expr]:
    """The elements of a container that is written out."""
    if isinstance(node, ast.Dict):
        return node.values
    return node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
