"""Variables of comprehensions get names that nothing else has: they are told apart once, before all else."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from trainshift.derivatives import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Scope = ast.FunctionDef | ast.Lambda


def apart(function: ast.FunctionDef, taken: set[str]) -> ast.FunctionDef:
    """A function whose comprehensions share no variable with what is around them: itself, where none does.

    `taken` are further names that no variable may get.
    """
    if not any(isinstance(each, COMPREHENSIONS) for each in terms.walk(function)):
        return function
    if not any(_clashing(scope) for scope in _scopes(function)):
        return function
    function = copy.deepcopy(function)
    taken = taken | identifiers(function)
    for scope in _scopes(function):
        for node, names in _clashing(scope):
            new = {each: unused(each, taken) for each in sorted(names)}
            taken |= set(new.values())
            _rename(node, new)
    return function


def _scopes(function: ast.FunctionDef) -> list[_Scope]:
    """A function, and the functions and lambdas in it."""
    return [each for each in terms.walk(function) if isinstance(each, _Scope)]


def _clashing(scope: _Scope) -> list[tuple[_Comprehension, set[str]]]:
    """The comprehensions of a scope that bind names which the scope also uses otherwise."""
    used, found = set[str](), list[tuple[_Comprehension, set[str]]]()
    used.update(each.arg for each in terms.walk(scope.args) if isinstance(each, ast.arg))
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(each, frozenset()) for each in _body(scope)]
    while waiting:
        node, bound = waiting.pop()
        match node:
            case ast.Name(name) if name not in bound:
                used.add(name)
            case ast.Nonlocal(names) | ast.Global(names):
                used.update(names)
            case ast.FunctionDef() | ast.Lambda():
                used |= _free(node) - bound
                if isinstance(node, ast.FunctionDef):
                    used.add(node.name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                own = _own(node)
                found.append((node, own))
                first = node.generators[0].iter
                waiting.append((first, bound))
                waiting += [(each, bound | own) for each in _inside(node)]
            case _:
                waiting += [(each, bound) for each in terms.children(node)]
    return [(node, own & used) for node, own in found if own & used]


def _body(scope: _Scope) -> list[ast.AST]:
    return [*scope.body] if isinstance(scope, ast.FunctionDef) else [scope.body]


def _own(node: _Comprehension) -> set[str]:
    return terms.names_bound([each.target for each in node.generators])


def _inside(node: _Comprehension) -> Iterator[ast.AST]:
    """The parts of a comprehension that see its variables: all but what its first loop goes through."""
    for place, each in enumerate(node.generators):
        yield each.target
        yield from each.ifs
        if place:
            yield each.iter
    if isinstance(node, ast.DictComp):
        yield from (node.key, node.value)
    else:
        yield node.elt


def _free(scope: _Scope) -> set[str]:
    """The names in a function or lambda that are none of its own."""
    own = {each.arg for each in terms.walk(scope.args) if isinstance(each, ast.arg)}
    outside = set[str]()
    if isinstance(scope, ast.FunctionDef):
        own |= terms.names_bound(scope.body)
        declared = (each for each in terms.walk(scope) if isinstance(each, ast.Nonlocal | ast.Global))
        outside = {name for each in declared for name in each.names}
    return identifiers(scope) - own | outside


def _rename(node: _Comprehension, new: dict[str, str]) -> None:
    """Gives variables of a comprehension new names, in place."""
    waiting = [(each, new) for each in _inside(node)]
    while waiting:
        each, names = waiting.pop()
        match each:
            case ast.Name(name):
                each.id = names.get(name, name)
            case ast.Lambda():
                own = {arg.arg for arg in terms.walk(each.args) if isinstance(arg, ast.arg)}
                waiting += [(part, names) for part in terms.children(each.args)]
                waiting.append((each.body, {old: now for old, now in names.items() if old not in own}))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                waiting.append((each.generators[0].iter, names))
                rest = {old: now for old, now in names.items() if old not in _own(each)}
                waiting += [(part, rest) for part in _inside(each)]
            case _:
                waiting += [(part, names) for part in terms.children(each)]


def identifiers(node: ast.AST) -> set[str]:
    """The names in a function."""
    found = set[str]()
    for each in terms.walk(node):
        match each:
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name=name):
                found.add(name)
    return found


def unused(base: str, taken: set[str]) -> str:
    """A name with the first number that is free."""
    number = 1
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"
