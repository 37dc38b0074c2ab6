"""Refuses functions that change what they read of their file: going back, they would read its last value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainshift.derivatives.reading.function import CHANGING_METHODS, Function, Whole
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.reader import LOSING, Reader
from trainshift.python.names.scoping import name_uses
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import root_name
from trainshift.python.values.heap import Bits, Objects, Sort, bits_of, union

_CHANGING = CHANGING_METHODS | LOSING | {"add", "discard"}


@dataclass(frozen=True)
class _Globals:
    """The names of the file that a function reads and changes, where it does so; `alone` are calls that are
    statements."""

    read: dict[str, ast.Name]
    changed: dict[str, ast.Name]
    alone: frozenset[int]


def changed_state(module: Module, names: Iterable[str], reverse: bool) -> Iterator[tuple[ast.AST, str]]:
    """The places where functions of some names, or what they call, change what one of them reads.

    In forward mode only a change in the middle of an expression counts.
    """
    own = {name: _globals(module, name) for name in names}
    read = {name for each in own.values() for name in each.read}
    for used in own.values():
        for name, node in used.changed.items() if reverse else ():
            if name in read:
                yield node, f"{name} belongs to the file, and is read and changed: give it as a parameter"
        for name, node in used.read.items():
            key = module.aliases.get(name, name)
            # In reverse mode what a function changes that is read itself is told above.
            if key not in module.functions or (key in own if reverse else id(node) in used.alone):
                continue
            for changed in sorted(_changed_by(module, key) & read):
                yield node, f"{name} changes {changed}, which belongs to the file: give it as a parameter"


def _changed_by(module: Module, name: str) -> set[str]:
    """The names of the file that a function changes, or what it calls."""
    found, seen, waiting = set[str](), set[str](), [name]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            used = _globals(module, each)
            found |= set(used.changed)
            called = (module.aliases.get(one, one) for one in used.read)
            waiting += [one for one in called if one in module.functions]
    return found


def _globals(module: Module, name: str) -> _Globals:
    function = module.functions[name]
    roots: set[int] = set()
    alone: set[int] = set()
    for node in terms.walk(function):
        place: ast.expr | None = None
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                place = node
            case ast.Call(ast.Attribute(base, method)):
                root = root_name(base)
                library = module.meaning(root.id).library if root is not None else ""
                own = library.startswith(".") or (not library and method in _CHANGING)
                place = base if own else None
            case ast.Expr(ast.Call(func)):
                alone.add(id(func))
        if place is not None:
            roots.add(id(root_name(place)))
    read: dict[str, ast.Name] = {}
    changed: dict[str, ast.Name] = {}
    for use in name_uses(function, module.scopes[id(function)]):
        if use.owner is None:
            is_read = isinstance(use.node.ctx, ast.Load) and id(use.node) not in roots
            (read if is_read else changed).setdefault(use.node.id, use.node)
    return _Globals(read, changed, frozenset(alone))


def changed_unseen(whole: Whole) -> Iterator[tuple[ast.AST, str]]:
    """The calls that have no way back and change what the file has, where that also has another name.

    The way back reads it by that name when it is changed already.
    """
    functions = list(whole.every())
    if not whole.reverse or not any(map(_reads_state, functions)):
        return
    points = whole.points
    known: Bits = 0
    changed: list[tuple[ast.Call, Bits]] = []
    for function in functions:
        flow, reader = points.of(function.node), Reader(function)
        for state in filter(None, map(flow.after, flow.cfg.all)):
            own = (bits for (owner, _), bits in state.variables.items() if owner is not None)
            known |= flow.within(state, union(own))
        entry = flow.before(flow.cfg.entry)
        for node in terms.own_nodes(function.node.body):
            if isinstance(node, ast.Call) and not reader.value(node):
                changed.append((node, flow.changed_by.get(node, 0)))
            elif isinstance(node, ast.Call) and entry is not None:
                known |= flow.within(entry, flow.given.get(node, 0))
    for node, bits in changed:
        for name in sorted(_of_file(points.objects, bits & known)):
            said = f"{ast.unparse(node)} changes {name}, which belongs to the file: give it as a parameter"
            yield node, said


def _reads_state(function: Function) -> bool:
    """Whether a function reads a global variable of its file."""
    module = function.whole.module
    read = {each.id for each in terms.own_nodes(function.node.body) if isinstance(each, ast.Name)}
    return any(
        function.owner(name) is None and name not in module.functions and not module.meaning(name).library
        for name in read & module.script.module_bindings.keys()
    )


def _of_file(objects: Objects, bits: Bits) -> set[str]:
    """The names of the file's variables that objects are, or are inside of."""
    roots = (objects.root(index) for index in bits_of(bits & objects.outer))
    places = (each.where for each in roots if each.sort is Sort.OUTER)
    return {place[1] for place in places if isinstance(place, tuple) and place[0] is None}
