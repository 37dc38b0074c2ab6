"""Give a list of callbacks or hooks a name above its call, as Horovod's own examples do.

    callbacks=[hvd.callbacks.X(0), A(), *([B()] if hvd.rank() == 0 else [])]

becomes ``callbacks=callbacks``, below

    callbacks = [hvd.callbacks.X(0), A()]
    if hvd.rank() == 0:
        callbacks.append(B())

A list that has a name is split likewise, and ``callbacks=[hvd.callbacks.X(0), *callbacks]`` puts Horovod's
callback into the list of that name.  The elements keep their order, and so does all that acts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from msgspec import Struct

from trainshift.engine.finishing.edited_text import Edited, Manner
from trainshift.python.source.edit import Edit

_ROOT = re.compile(r"[\w.]+\.rank\(\) == 0")
_ONLY = ".rank() == 0"
_STILL = frozenset(
    {
        "abs",
        "ceil",
        "float",
        "floor",
        "int",
        "iter",
        "len",
        "max",
        "min",
        "rank",
        "round",
        "size",
        "str",
        "zip",
    }
)
_ADDING = frozenset({"append", "extend", "insert"})
_ACTING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = ("body", "orelse", "finalbody")
_DEFERRED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_REPEATING = (ast.For, ast.AsyncFor, ast.While, *_DEFERRED)


class _Listed(Struct, frozen=True, eq=False):
    """A literal list that is an argument by name of the call of a statement."""

    statement: ast.stmt
    call: ast.Call
    word: ast.keyword
    value: ast.List
    around: tuple[ast.AST, ...]
    """The nodes around the statement, from its function or the module down to its block."""


class _Naming(Struct, frozen=True, eq=False):
    """The edits that give a list a name, and the statements that they change; the last has the call."""

    statements: tuple[ast.stmt, ...]
    edits: tuple[Edit, ...]

    @property
    def call(self) -> ast.stmt:
        """The statement with the call that gets the list."""
        return self.statements[-1]


def split_lists(edited: Edited, manner: Manner, pending: Sequence[Edit] = ()) -> Iterator[Edit]:
    """Yield edits that append elements for rank 0 below a list that has a name."""
    return _finished(edited, _splits(edited, manner), pending)


def named_lists(edited: Edited, manner: Manner, pending: Sequence[Edit] = ()) -> Iterator[Edit]:
    """Yield edits that name the lists in calls."""
    return _finished(edited, _namings(edited, manner), pending)


def _finished(edited: Edited, found: Iterable[_Naming], pending: Sequence[Edit]) -> Iterator[Edit]:
    """Yield the edits of statements that edits have changed, and in which none are pending."""
    for each in found:
        if not any(edited.is_pending(*_span(edited, one), pending) for one in each.statements):
            yield from each.edits


def calls_named(
    edited: Edited, manner: Manner, pending: Sequence[Edit], later: bool
) -> frozenset[int | None]:
    """The original places of the calls whose lists get a name now, or once the pending edits are made."""
    return frozenset(
        edited.place_of(each.call)
        for each in _namings(edited, manner)
        if later == any(edited.is_pending(*_span(edited, one), pending) for one in each.statements)
    )


def _splits(edited: Edited, manner: Manner) -> Iterator[_Naming]:
    if edited.tree is None or _ONLY not in edited.text:
        return
    for node in ast.walk(edited.tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and isinstance(target, ast.Name):
            start, end = _span(edited, node)
            lines = _built(edited, manner, node.value, target.id, start)
            if lines and _begins_line(edited, start) and edited.is_changed(start, end):
                yield _Naming((node,), (Edit(start, end, lines),))


def _namings(edited: Edited, manner: Manner) -> Iterator[_Naming]:
    if edited.tree is None or not any(each in edited.text for each in (_ONLY, ", *")):
        return
    for listed in _listed(edited.tree):
        found = _above(edited, manner, listed) or _into(edited, listed)
        if found is not None and any(
            edited.is_changed(*_span(edited, statement)) for statement in found.statements
        ):
            yield found


def _listed(tree: ast.Module) -> Iterator[_Listed]:
    """Yield the lists that calls of a statement of their own get by name."""

    def below(node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[_Listed]:
        around = (node,) if isinstance(node, (*_SCOPES, ast.ClassDef)) else (*around, node)
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.stmt):
                call = _call_of(each)
                for word in call.keywords if call is not None else ():
                    if call is not None and word.arg and isinstance(word.value, ast.List):
                        yield _Listed(each, call, word, word.value, around)
            if isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from below(each, around)

    return below(tree, ())


def _call_of(statement: ast.stmt) -> ast.Call | None:
    """The call that is all of a statement's value, or that a ``with`` enters."""
    value: ast.expr | None = None
    if isinstance(statement, ast.Expr | ast.Assign | ast.Return):
        value = statement.value
    elif isinstance(statement, ast.With) and len(statement.items) == 1:
        value = statement.items[0].context_expr
    return value if isinstance(value, ast.Call) else None


def _span(edited: Edited, statement: ast.stmt) -> tuple[int, int]:
    """The span of a statement; of a ``with``, that of its header."""
    last = statement.items[-1].context_expr if isinstance(statement, ast.With) else statement
    return _start(edited, statement), _end(edited, last)


def _start(edited: Edited, node: ast.expr | ast.stmt) -> int:
    return _offset(edited, node.lineno, node.col_offset)


def _end(edited: Edited, node: ast.expr | ast.stmt) -> int:
    return _offset(edited, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _offset(edited: Edited, line: int, column: int) -> int:
    start = edited.source.line_starts[line - 1]
    row = edited.text[start : edited.source.line_end(start)]
    return start + len(row.encode()[:column].decode())


def _code(edited: Edited, node: ast.expr) -> str:
    return edited.text[_start(edited, node) : _end(edited, node)]


# A list with elements for rank 0


def _above(edited: Edited, manner: Manner, listed: _Listed) -> _Naming | None:
    """The edits that build a list above its call."""
    at = _start(edited, listed.statement)
    name = _free_name(edited, listed) if _ONLY in _code(edited, listed.value) else ""
    lines = _built(edited, manner, listed.value, name, at) if name else ""
    if (
        not lines
        or isinstance(listed.around[0], ast.ClassDef)
        or not _begins_line(edited, at)
        or not edited.is_one(at, _end(edited, listed.value))
        or not (_is_still_before(listed) or _is_same_anywhere(listed))
    ):
        return None
    start, end = _start(edited, listed.value), _end(edited, listed.value)
    newline = edited.source.newline + edited.source.indentation(at)
    return _Naming((listed.statement,), (Edit(at, at, lines + newline), Edit(start, end, name)))


def _built(edited: Edited, manner: Manner, listed: ast.List, name: str, at: int) -> str:
    """The statements that build a list in the order of its elements; "" if none are for rank 0 alone."""
    parts = [part for each in listed.elts for part in _parts(edited, each)]
    if len({test for test, _ in parts if test}) != 1 or "#" in _code(edited, listed):
        return ""
    groups = [(test, [code for _, code in each]) for test, each in groupby(parts, key=lambda part: part[0])]
    first = groups.pop(0)[1] if not groups[0][0] else []
    lines = [f"{name} = [{', '.join(first)}]"]
    for test, codes in groups:
        if test:
            lines.append(f"if {test}:")
        lines += [f"{manner.unit if test else ''}{name}.{_added(code)}" for code in codes]
    return (edited.source.newline + edited.source.indentation(at)).join(lines)


def _parts(edited: Edited, element: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the elements that one of a list stands for, each with the test of the rank, if it has one."""
    given = element.value if isinstance(element, ast.Starred) else None
    if isinstance(given, ast.IfExp) and isinstance(given.body, ast.List) and _is_empty(given.orelse):
        test = _code(edited, given.test)
        if _ROOT.fullmatch(test) and not any(isinstance(each, ast.Starred) for each in given.body.elts):
            yield from ((test, _code(edited, each)) for each in given.body.elts)
            return
    yield "", _code(edited, element)


def _added(code: str) -> str:
    return f"extend({code[1:].lstrip()})" if code.startswith("*") else f"append({code})"


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


def _begins_line(edited: Edited, at: int) -> bool:
    """Return whether a statement begins its line, and no backslash joins that to the one before."""
    start = edited.source.line_start(at)
    return not edited.text[start:at].strip() and not edited.text[:start].rstrip("\r\n").endswith("\\")


def _is_still_before(listed: _Listed) -> bool:
    """Return whether what is evaluated before a list does nothing, so that the list may come first."""
    call = listed.call
    before = [
        call.func,
        *call.args,
        *(word.value for word in call.keywords[: call.keywords.index(listed.word)]),
    ]
    acts = any(isinstance(part, _ACTING) for part in ast.walk(call))
    return not acts and all(map(_is_still, before))


def _is_same_anywhere(listed: _Listed) -> bool:
    """Return whether no element of a list depends on what its call evaluates before: each is an object of
    Horovod's, or a variable of the function that no function inside may change.
    """
    scope = listed.around[0]
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    parts = [part for each in listed.value.elts for part in _given(each)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return (
        all(isinstance(part, ast.Name) or _is_plain_call(part) for part in parts)
        and names <= _own_names(scope)
        and not any(isinstance(part, _ACTING) for part in ast.walk(listed.call))
    )


def _given(element: ast.expr) -> list[ast.expr]:
    """The elements of a list for rank 0 that stands in a list; else the element itself."""
    given = element.value if isinstance(element, ast.Starred) else None
    is_for_root = (
        isinstance(given, ast.IfExp) and isinstance(given.body, ast.List) and _is_empty(given.orelse)
    )
    return given.body.elts if is_for_root else [element]  # type: ignore[union-attr]


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a function binds, and that neither it nor a function inside declares elsewhere."""
    inside = {
        part
        for each in ast.walk(function)
        if each is not function and isinstance(each, (*_DEFERRED, ast.comprehension))
        for part in ast.walk(each)
    }
    bound = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    declared: set[str] = set()
    for each in ast.walk(function):
        if isinstance(each, ast.Global | ast.Nonlocal):
            declared.update(each.names)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in inside:
            bound.add(each.id)
    return bound - declared


def _is_still(node: ast.expr) -> bool:
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return all(
        (isinstance(each, ast.Name) and each.id in _STILL)
        or (isinstance(each, ast.Attribute) and each.attr in _STILL)
        for each in called
    )


def _free_name(edited: Edited, listed: _Listed) -> str:
    """A name for a list that its scope uses for nothing else; "" for none."""
    called = listed.call.func
    method = called.attr if isinstance(called, ast.Attribute) else ""
    scope, word = listed.around[0], listed.word.arg or ""
    for name in (word, *([f"{method}_{word}"] if method else [])):
        if _uses(scope, name) <= _in_groups(scope, name):
            return name
    return ""


def _uses(scope: ast.AST, name: str) -> set[ast.AST]:
    """The nodes that bind or read a name in a scope, and in those inside it."""
    return {
        node
        for node in ast.walk(scope)
        if name
        in (
            getattr(node, "id", None),
            getattr(node, "arg", None) if isinstance(node, ast.arg) else None,
            getattr(node, "name", None),
            getattr(node, "asname", None),
            *(getattr(node, "names", ()) if isinstance(node, ast.Global | ast.Nonlocal) else ()),
        )
    }


def _in_groups(scope: ast.AST, name: str) -> set[ast.AST]:
    """The uses of a name by lists that are made, filled and given to one call in one row of statements."""
    found: set[ast.AST] = set()
    for node in ast.walk(scope):
        for each in _BLOCKS:
            found_block = getattr(node, each, None)
            block: list[ast.stmt] = found_block if isinstance(found_block, list) else []
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Assign) and _binds(statement, name):
                    group = _group(block[index:], name)
                    found.update(part for one in group for part in ast.walk(one))
    return found


def _group(block: list[ast.stmt], name: str) -> list[ast.stmt]:
    """The statements at the beginning of a block that make a list of a name, fill it and give it away."""
    end = 1
    while end < len(block) and _fills(block[end], name):
        end += 1
    call = _call_of(block[end]) if end < len(block) else None
    given = [word.value for word in call.keywords if word.arg == name] if call is not None else []
    if not given or isinstance(block[end], ast.With):
        return []
    uses, inside = (
        [part for part in ast.walk(each) if isinstance(part, ast.Name) and part.id == name]
        for each in (block[end], given[0])
    )
    return block[: end + 1] if len(uses) == len(inside) == 1 else []


def _binds(statement: ast.Assign, name: str) -> bool:
    target = statement.targets[0]
    given = isinstance(statement.value, ast.List) and len(statement.targets) == 1
    return given and isinstance(target, ast.Name) and target.id == name


def _fills(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement, or a guard's whole block, adds to a list."""
    if isinstance(statement, ast.If):
        return not statement.orelse and all(_fills(each, name) for each in statement.body)
    return isinstance(statement, ast.Expr) and _adds(statement.value, name) is not None


def _adds(node: ast.expr, name: str) -> ast.Call | None:
    """The call if it adds something to the list of a name."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in _ADDING:
        if isinstance(function.value, ast.Name) and function.value.id == name:
            return node  # type: ignore[return-value]
    return None


# Elements in front of a list that has a name


def _into(edited: Edited, listed: _Listed) -> _Naming | None:
    """The edits that put the first elements of a list into the named one that follows them."""
    *first, last = listed.value.elts or [listed.value]
    named = last.value if isinstance(last, ast.Starred) else None
    if not first or not isinstance(named, ast.Name) or not all(map(_is_plain_call, first)):
        return None
    made = _made_in(listed, named.id)
    adding = _adding_to(listed, named, made) if made is not None else None
    if made is None or adding is None or not isinstance(made.value, ast.List):
        return None
    scope, at = listed.around[0], _start(edited, made.value)
    ahead = made.value.elts[0] if made.value.elts else None
    if (
        "#" in edited.text[at : _start(edited, ahead) if ahead else _end(edited, made.value)]
        or "#" in _code(edited, listed.value)
        or (isinstance(scope, ast.Module) and not all(_is_made_above(scope, each, made) for each in first))
    ):
        return None
    placed = [each for each, call in adding.items() if _places(call)]
    edits = (
        _in_front(edited, made.value, [_code(edited, each) for each in first]),
        *(
            Edit(_start(edited, place), _end(edited, place), str(index + len(first)))
            for call in adding.values()
            for place, index in _places(call)
        ),
        Edit(_start(edited, listed.value), _end(edited, listed.value), named.id),
    )
    return _Naming((*placed, made, listed.statement), edits)


def _adding_to(listed: _Listed, named: ast.Name, made: ast.Assign) -> dict[ast.stmt, ast.Call] | None:
    """The statements that add to a named list, and their calls; None if it is used for anything else."""
    scope = listed.around[0]
    deferred = {
        part
        for inner in ast.walk(scope)
        if inner is not scope and isinstance(inner, _DEFERRED)
        for part in ast.walk(inner)
    }
    found: dict[ast.stmt, ast.Call] = {}
    used: set[ast.AST] = {named, made.targets[0]}
    for node in ast.walk(scope):
        call = _adds(node.value, named.id) if isinstance(node, ast.Expr) and node not in deferred else None
        if isinstance(node, ast.Expr) and call is not None and _is_placed(call):
            found[node] = call
            used.update(ast.walk(node))
    return found if _uses(scope, named.id) <= used else None


def _is_placed(call: ast.Call) -> bool:
    """Return whether it is known where a call puts what it adds."""
    return not _inserts(call) or bool(_places(call))


def _places(call: ast.Call) -> list[tuple[ast.expr, int]]:
    """The place at which a call inserts, if it is a number counted from the beginning."""
    place = call.args[0] if _inserts(call) and call.args else None
    if isinstance(place, ast.Constant) and isinstance(place.value, int):
        return [(place, place.value)]
    return []


def _is_plain_call(node: ast.expr) -> bool:
    """Return whether an element is an object that can as well be created earlier: ``X(0)``."""
    given = [*node.args, *(word.value for word in node.keywords)] if isinstance(node, ast.Call) else [node]
    return all(isinstance(each, ast.Constant) for each in given) and isinstance(node, ast.Call)


def _made_in(listed: _Listed, name: str) -> ast.Assign | None:
    """The assignment of a literal list above a statement, which runs as often as that."""
    blocks = [listed.statement, *reversed(listed.around)]
    for inner, outer in pairwise(blocks):
        for block in (getattr(outer, each, None) for each in (*_BLOCKS, "handlers")):
            if isinstance(block, list) and inner in block:
                above = block[: block.index(inner)]
                found = [each for each in above if isinstance(each, ast.Assign) and _binds(each, name)]
                if found:
                    return found[0]
        if isinstance(outer, _REPEATING):
            return None
    return None


def _inserts(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "insert"


def _is_made_above(scope: ast.Module, element: ast.expr, made: ast.Assign) -> bool:
    """Return whether the module binds what an element reads above the list."""
    assert isinstance(element, ast.Call)
    root: ast.expr = element.func
    while isinstance(root, ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    return any(
        (isinstance(each, ast.ClassDef) and each.name == name)
        or (isinstance(each, ast.Import) and any((one.asname or one.name) == name for one in each.names))
        for each in scope.body
        if each.lineno < made.lineno
    )


def _in_front(edited: Edited, listed: ast.List, codes: list[str]) -> Edit:
    """The edit that puts elements at the beginning of a list, each on its own line if the others are."""
    begin = _start(edited, listed) + 1
    if not listed.elts:
        return Edit(begin, begin, ", ".join(codes))
    lead = edited.text[begin : _start(edited, listed.elts[0])]
    at = begin + len(lead) - len(lead.lstrip())
    between = ", "
    if lead[: at - begin].strip(" \t"):
        between = f",{edited.source.newline}{edited.source.indentation(at)}"
    elif {each.col_offset for each in listed.elts} == {listed.elts[0].col_offset} and len(listed.elts) > 1:
        between = f",{edited.source.newline}{' ' * (at - edited.source.line_start(at))}"
    return Edit(at, at, "".join(code + between for code in codes))
