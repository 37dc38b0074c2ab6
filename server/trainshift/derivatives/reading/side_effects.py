"""Side effects: mutations by calls, and calls in indices that must not be evaluated twice (AD39, AD40).

Values, tangents and adjoints have the same index, so a call with an effect in it is evaluated only once,
before all of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainshift.derivatives.reading.function import CHANGING_METHODS, Function, bound, root_of
from trainshift.derivatives.reading.reader import READING, Reader
from trainshift.derivatives.reading.sources import name_of
from trainshift.derivatives.tables.table_numpy import CONSTANTS
from trainshift.python.flow.traversal import reachable
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS
from trainshift.python.syntax.iteration import Gets, Part, Step, counted_from_0, parts_given, step

_NOT_TWICE = frozenset(f"builtins.{each}" for each in ("next", "iter", "print", "input", "open"))
_LIBRARIES = ("builtins.", "math.", "numpy.", "tensorflow.", "operator.")
_METHODS = READING - {"pop", "setdefault"} | {"index", "count", "astype", "item"}


def once(reader: Reader, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the calls in a node whose result or effect differs when repeated: the outermost, with
    comprehensions around them.
    """
    waiting = [node]
    while waiting:
        each = waiting.pop()
        inner = terms.children(each)
        loops = any(_calls(reader, part) for part in (each, *inner) if isinstance(part, COMPREHENSIONS))
        called = isinstance(each, ast.Call) and not _is_again_the_same(reader, each)
        if isinstance(each, ast.expr) and (called or loops):
            yield each
        elif not isinstance(each, ast.Lambda):
            waiting += reversed(inner)


def _calls(reader: Reader, loop: ast.expr) -> bool:
    calls = (each for each in terms.walk(loop) if isinstance(each, ast.Call))
    return not all(_is_again_the_same(reader, each) for each in calls)


def _is_again_the_same(reader: Reader, call: ast.Call) -> bool:
    dotted = reader.function.dotted(call.func)
    if dotted is not None and not (isinstance(call.func, ast.Name) and reader.function.owner(call.func.id)):
        return dotted.startswith(_LIBRARIES) and ".random" not in dotted and dotted not in _NOT_TWICE
    if not isinstance(call.func, ast.Attribute):
        return False
    name = f"numpy.{call.func.attr}"
    return call.func.attr in _METHODS or name in CONSTANTS or name in reader.whole.rows


def changed_by_call(reader: Reader, call: ast.Call) -> set[str]:
    """The variables that a call mutates: outer ones that the function assigns, and arguments. One without
    a name here gets the name that `Sources` uses.
    """
    if isinstance(call.func, ast.Attribute):
        known = reader.function.dotted(call.func) is not None or call.func.attr not in CHANGING_METHODS
        return set() if known else {root_of(call.func) or ""}
    target = reader.target(call)
    is_value = not isinstance(call.func, ast.Name) or reader.function.owner(call.func.id) is not None
    found: set[str] = set()
    for each in [target] if target else reader.possible(call) if is_value else []:
        found |= {name_of(reader.function, owner, name) for owner, name in each.outside}
        changed = reader.whole.summary(each).changed
        found |= {root_of(value) or "" for name, value in bound(each, call) if name in changed}
    return found


def asks(function: Function) -> bool:
    """Return whether a function, or a callee, checks at run time whether it mutates an array in place."""
    conflicts = (
        one for each in reachable([function], _called) for one in each.whole.aliases(each).conflicts()
    )
    return any(each.whole and each.alias.unless for each in conflicts)


def _called(function: Function) -> Iterator[Function]:
    """The functions of the file that a function calls by name."""
    reader = Reader(function)
    calls = (each for each in terms.inside(function.body) if isinstance(each, ast.Call))
    return (target for each in calls if (target := reader.target(each)) is not None)


def changed_by(reader: Reader, node: ast.expr) -> set[str]:
    """The variables that the calls in an expression without a derivative may change."""
    calls = (each for each in terms.walk(node) if isinstance(each, ast.Call))
    return set[str]().union(*(_changed(reader, each) for each in calls))


def _changed(reader: Reader, call: ast.Call) -> set[str]:
    if _is_again_the_same(reader, call):
        return set()
    if isinstance(call.func, ast.Attribute):
        return {root_of(call.func) or ""}
    target = reader.target(call)
    if target is None:
        return set()
    mutated = reader.whole.summary(target).mutated
    given = (value for param, value in bound(target, call) if param in mutated)
    outside = {name for owner, name in target.outside if reader.function.owner(name) is owner}
    return outside.union(*map(terms.names_read, given))


def moving(reader: Reader, node: ast.For) -> tuple[set[str], set[str]]:
    """The variables whose sequences a loop's body may replace, and those it may resize."""
    return _reassigned(reader, node), _resized(reader, node)


def _reassigned(reader: Reader, node: ast.For) -> set[str]:
    """The variables whose sequences a loop's body may replace by assignments, stores and calls; if a copy
    is iterated, also by mutations.
    """
    found = terms.names_bound([node.target, *node.body])
    if changed_inside(reader, node):
        found |= {name for each in terms.walk(node.iter) if (name := _copied(each)) is not None}
    sources = [each for each in terms.walk(node.iter) if isinstance(each, ast.Subscript)]
    for each in terms.inside(node.body):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            name = root_of(each)
            if name and any(root_of(one) == name and depth(each) <= depth(one) for one in sources):
                found.add(name)
        elif isinstance(each, ast.Call) and not isinstance(each.func, ast.Attribute):
            changed = changed_by_call(reader, each)
            rebound = {name for one in reader.whole.every() for name in one.foreign}
            found |= {
                name for name in changed if name in rebound or any(root_of(one) == name for one in sources)
            }
    return found


def _resized(reader: Reader, node: ast.For) -> set[str]:
    """The variables of a loop's sequence that its body may make longer or shorter."""
    aliases = reader.whole.aliases(reader.function)
    if not changed_inside(reader, node):
        return set()
    names = terms.names_read(node.iter)
    return {each for each in names if each in aliases.grown or reader.function.kind(each).has("dict")}


def asks_length(reader: Reader, source: ast.expr, names: set[str]) -> bool:
    """Return whether a loop's iterable has no adjoint, and its length depends on variables."""
    match source:
        case ast.Name() | ast.Subscript() | ast.Attribute():
            return False
        case ast.Call(ast.Name()) if step(source)[0] in (Step.BESIDE, Step.NUMBERED, Step.BACKWARDS):
            return False
        case ast.Call(ast.Attribute()):
            return False
    return bool(names & terms.names_read(source)) and not reader.value(source)


def _copied(node: ast.AST) -> str | None:
    """The variable of which a loop's iterable copies a part."""
    match node:
        case ast.Call(ast.Name("list" | "tuple"), [value]) | ast.Subscript(value, ast.Slice()):
            return root_of(value)
    return None


def resized_by_call(reader: Reader, call: ast.Call, source: ast.expr) -> bool:
    """Return whether a call of a function of the file may resize a list or dict, or replace the elements of
    an element.
    """
    name = root_of(source)
    target = reader.target(call)
    for each in [target] if target else reader.possible(call):
        aliases = reader.whole.aliases(each)
        altered = reader.whole.summary(each).changed
        given = {param for param, value in bound(each, call) if root_of(value) == name}
        grown = given & altered if isinstance(source, ast.Subscript) else given
        grown |= {one for owner, one in each.outside if one == name and reader.function.owner(one) is owner}
        if isinstance(source, ast.Subscript):
            again = reader.kind(source).has("changed") and any(each.kind(one).changes for one in grown)
        else:
            again = bool(grown & aliases.grown)
        if again:
            return True
    return False


def depth(node: ast.expr) -> int:
    """Return how many indices lead to an element."""
    return 1 + depth(node.value) if isinstance(node, ast.Subscript) else 0


def changed_inside(reader: Reader, node: ast.For) -> bool:
    """Return whether a loop's body may mutate its iterable."""
    aliases = reader.whole.aliases(reader.function)
    given = terms.names_read(node.iter) & aliases.changed
    for each in terms.inside(node.body) if given else ():
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and root_of(each) in given:
            return True
        if isinstance(each, ast.Call) and (terms.names_read(each) | changed_by_call(reader, each)) & given:
            return True
    return False


def place_told(reader: Reader, call: ast.Call, rebound: str) -> ast.expr | None:
    """The position at which `pop` or `insert` works, if the adjoint pass has to save it; None if the call
    states it.

    In a list it is an index from the start, in a dict a key. `rebound` is the variable that gets the value.
    """
    assert isinstance(call.func, ast.Attribute)
    places = call.args[:1] if call.func.attr == "pop" else call.args[:-1]
    for each in places:
        kind = reader.kind(call.func.value)
        listed = call.func.attr == "insert" or (kind.has("list") and not kind.has("dict"))
        if isinstance(each, ast.Constant) or re.fullmatch(r"-\d+", ast.unparse(each)):
            return None
        if isinstance(each, ast.Name) and each.id != rebound and (not listed or _from_start(reader, each)):
            return None
        if not listed or _from_start(reader, each):
            return each
        return terms.call("len", ast.Subscript(call.func.value, ast.Slice(None, each, None), ast.Load()))
    return None


def _from_start(reader: Reader, index: ast.expr, known: frozenset[str] = frozenset()) -> bool:
    """Return whether an index is certainly not negative."""
    match index:
        case ast.Constant(int(value)):
            return value >= 0
        case ast.BinOp(left, ast.Add() | ast.Mult() | ast.FloorDiv(), right):
            return _from_start(reader, left, known) and _from_start(reader, right, known)
        case ast.BinOp(_, ast.Mod(), right):
            return _from_start(reader, right, known)
        case ast.Call(ast.Name("min" | "max"), [ast.Call(ast.Name("range"), [_])]):
            return True
        case ast.Call(ast.Name("len")) | ast.Call(ast.Attribute(attr="index" | "argmin" | "argmax")):
            return True
        case ast.Name(name) if name in reader.function.local and name not in known:
            given = reader.function.assignments(name)
            if name in reader.function.params or not given:
                return False
            own = not any(name in each.foreign for each in reader.function.nested.values())
            return own and all(_counts(reader, each, name, known | {name}) for each in given)
    return False


def _counts(reader: Reader, node: ast.AST, name: str, known: frozenset[str]) -> bool:
    """Return whether a statement certainly assigns a non-negative number to a variable."""
    match node:
        case ast.Assign([ast.Name(_)], value):
            return _from_start(reader, value, known)
        case ast.AugAssign(ast.Name(_), ast.Add(), value):
            return _from_start(reader, value, known)
        case ast.For(ast.Name(_), ast.Call(ast.Name("range"), [_])):
            return True
        case ast.For(ast.Tuple([ast.Name(first), _]), ast.Call() as call) if counted_from_0(call):
            return first == name
    return False


def keys_named(reader: Reader, node: ast.For) -> ast.expr:
    """The target of a loop with a unique name for each key of a dict, by which adjoints are found: not
    `_`, nor a repeated name.
    """
    views = (
        each for each in terms.walk(node.iter) if isinstance(each, ast.Attribute) and each.attr == "items"
    )
    if not (reader.whole.reverse and any(views) and reader.value(node.iter)):
        return node.target
    names = [each for each in terms.leaves(node.target) if isinstance(each, ast.Name)]
    read = set[str]().union(*map(terms.names_read, reader.function.body))
    new: dict[int, ast.expr] = {}
    for place, each in enumerate(names):
        if each.id in {other.id for other in names[place + 1 :]} or (each.id == "_" and each.id not in read):
            new[id(each)] = terms.stored(terms.name(reader.function.fresh("key")))
    reader.function.local |= {each.id for each in new.values() if isinstance(each, ast.Name)}
    return terms.rebuilt(node.target, new)


def unvaried(reader: Reader, target: ast.expr, source: ast.expr) -> set[str]:
    """The loop variables that get counts, keys or other values that do not vary."""
    return set[str]().union(
        *(terms.names_bound([each.target]) for each in parts_given(target, source) if _is_still(reader, each))
    )


def _is_still(reader: Reader, part: Part) -> bool:
    """Return whether a part of a loop's target gets values that do not vary."""
    match part.gets, part.source:
        case Gets.COUNT | Gets.KEY, _:
            return True
        case Gets.ELEMENT, ast.Call(ast.Name("sorted"), [inner]):
            return all(_is_still(reader, each) for each in parts_given(part.target, inner))
        case Gets.ELEMENT, source if reader.goes_through_keys(part.target, source):
            return True
        case Gets.ELEMENT, ast.Name() | ast.Subscript():
            return False
    return not reader.value(part.source)


def asked_by(index: ast.expr) -> set[str]:
    """The variables whose elements an index reads, without those whose length it reads."""
    found = terms.names_read(index)
    for each in terms.walk(index):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "len":
            found -= terms.names_read(each)
        elif isinstance(each, ast.Attribute):
            found -= terms.names_read(each.value)
    return found
