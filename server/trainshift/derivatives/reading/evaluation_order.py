"""Evaluation order: refuse lines that would read an object after a call in them has mutated it (AD40).

A derivative calls functions before the rest of their line.  Values that Python reads before such a call would
be read after it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import asks, changed_by, changed_by_call, once
from trainshift.derivatives.reading.sources import OF, Sources
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments

# Nodes that stay on their line.
_STAYING = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Tuple, ast.List, ast.Dict)
_TOO = "which this line reads too: call it on a line of its own"


def _asked(reader: Reader, call: ast.Call) -> set[str]:
    """The arguments of a call that decide whether it mutates an array."""
    target = reader.target(call)
    given = (root_of(each) for each in arguments(call))
    return {each for each in given if each} if target is not None and asks(target) else set()


def _keeps(reader: Reader, call: ast.Call) -> bool:
    """Return whether a called value may mutate variables of the functions around its function."""
    of_library = reader.function.dotted(call.func) is not None and not isinstance(call.func, ast.Subscript)
    if reader.target(call) is not None or of_library or isinstance(call.func, ast.Attribute):
        return False
    return reader.value(call.func) and any(each.acts for each in reader.possible(call))


def has_effects(reader: Reader, call: ast.Call) -> bool:
    """Return whether a call may mutate active values, so that it cannot stand in a condition."""
    changed = changed_by_call(reader, call) | _asked(reader, call)
    return _keeps(reader, call) or any(map(_active_in(reader), changed))


def _active_in(reader: Reader) -> Callable[[str], bool]:
    aliases = reader.whole.aliases(reader.function)
    return aliases.active


def out_of_order(
    function: Function, reader: Reader, inside: Iterable[ast.AST]
) -> Iterator[tuple[ast.expr, str]]:
    """Yield the calls in a function that need a line of their own, each with the reason.

    `inside` are all nodes of the function. Calls run before the rest of their line, and the reverse pass
    skips calls in conditions.
    """
    for part, is_test in _parts(reader, inside):
        untold = {id(each) for test in _conditions(part) for each in terms.walk(test)}
        for call in _calls(part):
            if (is_test or id(call) in untold) and _keeps(reader, call):
                said = (
                    f"{ast.unparse(call)} changes its captured variables in a condition: call it on a line "
                    "of its own"
                )
                yield call, said
        calls = [(each, changed_by_call(reader, each) | _asked(reader, each)) for each in _calls(part)]
        if not calls:
            continue
        aliases, active = reader.whole.aliases(function), _active_in(reader)
        value = getattr(part, "value", None)
        paths = _paths(part)
        split = not is_test and value is not None and reader.value(value)
        silent = {id(each) for one in _silent(reader, part) for each in terms.walk(one)}
        # A node without a derivative is read in place, unless its line becomes several lines.
        calls = [
            (each, {name for name in names if active(name) or (split and id(each) not in untold)})
            for each, names in calls
        ]
        inside_of = [(call, {id(each) for each in terms.walk(call)}) for call, names in calls if names]
        for call, names in calls:
            if not names:
                continue
            told = sorted({"its captured variables" if OF in name else name for name in names})
            said = f"{ast.unparse(call)} changes {', '.join(told)}"
            if is_test or id(call) in untold:
                yield call, f"{said} in a condition: call it on a line of its own"
                continue
            if id(call) in silent and any(map(active, names)):
                yield call, f"{said} in an expression without a derivative: call it on a line of its own"
                continue
            within = {id(each) for each in terms.walk(call)}
            for around, its in inside_of:
                within |= _handed(reader, around) if id(call) in its else its
            shown = aliases.showing(names)
            read = (each for each in _read(part) if each.id in shown and id(each) not in within)
            late = any(each for each in read if not _in_turn(reader, part, paths, call, each))
            if late or _shows_result(reader, part, call, shown):
                yield call, f"{said}, {_TOO}"
        yield from _moved(function, reader, part)


# The variable for the conditional, comprehension or similar that moves before its line.
_Path = tuple[tuple[int, str], ...]


def _paths(part: ast.AST) -> dict[int, _Path]:
    """The group with which each expression of a line moves: expressions of one group stay in order."""
    found: dict[int, _Path] = {}
    waiting: list[tuple[ast.AST, _Path]] = [(part, ())]
    while waiting:
        node, path = waiting.pop()
        found[id(node)] = path
        stays = isinstance(node, _STAYING) or not isinstance(node, ast.expr)
        stays = stays or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
        for field, value in ast.iter_fields(node):
            branch = field if isinstance(node, ast.IfExp) else ""
            inner = path if stays else (*path, (id(node), branch))
            waiting += [
                (each, inner)
                for each in (value if isinstance(value, list) else [value])
                if isinstance(each, ast.AST)
            ]
    return found


def _in_turn(reader: Reader, part: ast.AST, paths: dict[int, _Path], call: ast.Call, read: ast.Name) -> bool:
    """Return whether a mutating call runs after earlier reads of the variable in the line, and before later
    ones.
    """
    mine, its = paths[id(call)], paths[id(read)]
    branches = dict(mine)
    if any(branches.get(node, branch) != branch for node, branch in its):
        # Only one of the two runs.
        return True
    early = (read.lineno, read.col_offset) < (call.lineno, call.col_offset)
    if isinstance(call.func, ast.Attribute):
        return not early
    if mine != its:
        return False
    if early:
        # Calls with a derivative run before their line, one after the other.
        return any(
            id(read) in _handed(reader, each)
            for each in _calls(part)
            if paths[id(each)] == mine
            and isinstance(each.func, ast.Name)
            and reader.value(each)
            and not _of_library(reader, each)
        )
    # The assigned variable has the adjoint of its new value.
    return not isinstance(part, ast.stmt) or read.id not in terms.names_bound([part])


def _shows_result(reader: Reader, part: ast.AST, call: ast.Call, shown: set[str]) -> bool:
    """Return whether the result of an earlier call shows the mutations of a call, and the line reads it after
    all calls.
    """
    sources = Sources(reader)
    for node in terms.walk(part):
        # The arguments of a call of the file are read in their turn.
        if isinstance(node, ast.Call) and not _of_library(reader, node):
            continue
        for each in terms.children(node):
            if not isinstance(each, ast.Call) or isinstance(each.func, ast.Attribute):
                continue
            if (each.lineno, each.col_offset) >= (call.lineno, call.col_offset):
                continue
            kind = reader.kind(each)
            shows = kind.container or kind.has("array")
            inside = any(inner is call for inner in terms.walk(each))
            if shows and not inside and sources.sources(each) & shown:
                return True
    return False


def _handed(reader: Reader, call: ast.Call) -> set[int]:
    """The variables, or their elements, that a call gets directly: the callee sees later mutations."""
    given = arguments(call)
    if isinstance(call.func, ast.Attribute):
        given.append(call.func.value)
    rebound = {name for each in reader.whole.every() for name in each.foreign}
    found: set[int] = set()
    for each in given:
        while isinstance(each, ast.Subscript) and not reader.kind(each.value).has("changed"):
            each = each.value
        if isinstance(each, ast.Name) and each.id not in rebound:
            found.add(id(each))
    return found


def _moved(function: Function, reader: Reader, part: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield calls in indices of active values that would move before a read of a mutated object."""
    places = (each for each in terms.walk(part) if isinstance(each, ast.Subscript))
    indices = [each.slice for each in places if function.active(root_of(each) or "")]
    calls = [each for index in indices for each in once(reader, index)]
    inside = {id(each) for call in calls for each in terms.walk(call)}
    for call in calls:
        names = changed_by(reader, call)
        names &= {
            each.id for each in terms.walk(part) if isinstance(each, ast.Name) and id(each) not in inside
        }
        if names:
            yield call, f"{ast.unparse(call)} changes {', '.join(sorted(names))}, {_TOO}"


def _parts(reader: Reader, inside: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the lines of a function, and the conditions in it."""
    for node in inside:
        match node:
            case ast.If() | ast.While():
                yield node.test, True
            case ast.For():
                yield node.iter, False
            case ast.Assert():
                yield node, True
            case ast.Expr(value):
                yield node, not isinstance(value, ast.Call) or _of_library(reader, value)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return():
                yield node, False


def _calls(part: ast.AST) -> Iterator[ast.Call]:
    for node in terms.own_nodes([part]):
        if isinstance(node, ast.Call):
            yield node


def _of_library(reader: Reader, call: ast.Call) -> bool:
    known = reader.function.dotted(call.func) is not None
    return known and not (isinstance(call.func, ast.Name) and reader.target(call) is not None)


def _silent(reader: Reader, part: ast.AST) -> Iterator[ast.AST]:
    """The operations of a line without a derivative, whatever their arguments."""
    for node in terms.walk(part):
        if isinstance(node, ast.Call | ast.BinOp | ast.ListComp | ast.DictComp | ast.GeneratorExp):
            if not reader.value(node):
                yield node


def _conditions(part: ast.AST) -> Iterator[ast.AST]:
    """Yield the conditions and indices in a line, which have no derivative."""
    for node in terms.walk(part):
        match node:
            case ast.Compare() | ast.BoolOp() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                yield node
            case ast.IfExp():
                yield node.test
            case ast.Subscript():
                yield node.slice


def _read(part: ast.AST) -> Iterator[ast.Name]:
    """Yield the variables that a line reads, also by an augmented assignment, but not those it
    stores into.
    """
    parts: list[ast.AST] = [part]
    if isinstance(part, ast.Assign):
        parts = [part.value]
    for node in terms.inside(parts):
        if isinstance(node, ast.Name):
            yield node
