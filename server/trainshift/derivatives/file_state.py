"""Refuse functions that mutate file variables they also read: the adjoint pass would read the last value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct

from trainshift.derivatives.reading.function import CHANGING_METHODS, Function, Whole, root_of
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.reader import LOSING, Reader
from trainshift.derivatives.reading.sources import Sources
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.scoping import name_uses
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import root_name
from trainshift.python.values.heap import Bits, Objects, Sort, bits_of, union

_CHANGING = CHANGING_METHODS | LOSING | {"add", "discard"}


class _Globals(Struct, frozen=True):
    """The file's names that a function reads and mutates, with the places; `alone` are calls that are
    statements.
    """

    read: dict[str, ast.Name]
    changed: dict[str, ast.Name]
    alone: frozenset[int]


def changed_state(module: Module, names: Iterable[str], reverse: bool) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where named functions, or their callees, mutate variables that one of them reads.

    In forward mode only a mutation in the middle of an expression counts.
    """
    own = {name: _globals(module, name) for name in names}
    read = {name for each in own.values() for name in each.read}
    for used in own.values():
        for name, node in used.changed.items() if reverse else ():
            if name in read:
                yield (
                    node,
                    f"{name} is a variable of the file, and is read and changed: pass it as a parameter",
                )
        for name, node in used.read.items():
            key = module.aliases.get(name, name)
            # In reverse mode, mutations of variables that the function itself reads are reported above.
            if key not in module.functions or (key in own if reverse else id(node) in used.alone):
                continue
            for changed in sorted(_changed_by(module, key) & read):
                yield node, f"{name} changes {changed}, a variable of the file: pass it as a parameter"


def _changed_by(module: Module, name: str) -> set[str]:
    """The file's variables that a function or its callees mutate."""
    return {changed for each in _reached(module, [name]) for changed in _globals(module, each).changed}


def _reached(module: Module, names: Iterable[str]) -> Iterator[str]:
    """The named functions, and those that they call or name."""

    def called(name: str) -> list[str]:
        read = (module.aliases.get(each, each) for each in _globals(module, name).read)
        return [each for each in read if each in module.functions]

    return reachable(names, called)


def read_state(module: Module, names: Iterable[str]) -> set[str]:
    """The file's variables that named functions or their callees read and that may be mutated (no
    numbers).
    """
    read = {each for name in _reached(module, names) for each in _globals(module, name).read}
    return {each for each in read if _is_variable(module, each) and not _is_number(module, each)}


def _is_variable(module: Module, name: str) -> bool:
    """Return whether a name of the file is neither a function nor a library's."""
    known = name in module.functions or bool(module.meaning(name).library)
    return not known and name in module.script.module_bindings


def _is_number(module: Module, name: str) -> bool:
    """Return whether all bindings of a file's name are literal numbers or texts."""
    values = [each.taken for each in module.script.module_bindings[name] if each.kind == "value"]
    parts = (ast.Constant, ast.UnaryOp, ast.BinOp)
    known = [
        value is not None and all(isinstance(each, parts) for each in _operands(value)) for value in values
    ]
    return len(values) == len(module.script.module_bindings[name]) and all(known)


def _operands(value: ast.expr) -> Iterator[ast.expr]:
    return (each for each in terms.walk(value) if isinstance(each, ast.expr))


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
    """Yield the lines that mutate a file's variable that also has another name.

    A read by that name gets no tangent and, in the reverse pass, the new value.
    """
    functions = list(whole.every())
    if not any(map(_reads_state, functions)):
        return
    if whole.reverse:
        yield from _changed_by_call(whole, functions)
    yield from _changed_by_alias(whole, functions)


def _changed_by_call(whole: Whole, functions: Iterable[Function]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the calls without an adjoint that mutate an object of the file that may be shared."""
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
            said = f"{ast.unparse(node)} changes {name}, a variable of the file: pass it as a parameter"
            yield node, said


def _changed_by_alias(whole: Whole, functions: Iterable[Function]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the statements that mutate a file's object through a local variable."""
    for function in functions:
        flow, reader = whole.points.of(function.node), Reader(function)
        callees = Sources(reader).callees
        for point, bits in flow.changed.items():
            node = point.node
            names = sorted(_of_file(whole.points.objects, bits)) if isinstance(node, ast.stmt) else ()
            if node is None or not names or all(function.owner(each) is None for each in _roots(node)):
                continue
            if any(callees(each) for each in terms.walk(node) if isinstance(each, ast.Call)):
                continue  # Mutations by functions are reported at their calls.
            value = getattr(node, "value", None)
            if whole.reverse or (isinstance(value, ast.expr) and reader.value(value)):
                yield node, f"{names[0]} is a variable of the file and is changed: pass it as a parameter"


def _roots(node: ast.AST) -> Iterator[str]:
    """The variables whose parts a statement mutates."""
    for each in terms.walk(node):
        match each:
            case ast.Subscript(ctx=ast.Store()) | ast.Call(ast.Attribute()):
                yield root_of(each.func if isinstance(each, ast.Call) else each) or ""
            case ast.AugAssign(ast.Name(name)):
                yield name


def _reads_state(function: Function) -> bool:
    """Return whether a function reads a global variable of its file."""
    read = {each.id for each in terms.own_nodes(function.node.body) if isinstance(each, ast.Name)}
    return any(function.owner(name) is None and _is_variable(function.whole.module, name) for name in read)


def _of_file(objects: Objects, bits: Bits) -> set[str]:
    """The names of the file's variables that are, or contain, some objects."""
    roots = (objects.root(index) for index in bits_of(bits & objects.outer))
    places = (each.where for each in roots if each.sort is Sort.OUTER)
    return {place[1] for place in places if isinstance(place, tuple) and place[0] is None}
