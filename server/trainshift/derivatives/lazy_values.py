"""Generators and views of dicts that are kept: they are computed later, or only once, unlike a list (AD34).

A derivative writes a generator as a list.  That is the same only where its values are taken at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainshift.derivatives.iterators import as_list, plain, read_once
from trainshift.derivatives.reading.function import Function, bound
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import changed_by_call
from trainshift.derivatives.reading.sources import Sources, name_of
from trainshift.libraries.containers import METHODS
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.syntax.iteration import iterated

# Functions that take all values of their first argument at once.
_TAKING = frozenset(
    [*(f"builtins.{each}" for each in ("dict", "list", "max", "min", "set", "sorted", "sum", "tuple")),
     "math.fsum", "math.prod"]
)  # fmt: skip
# Functions whose results only loops and these functions can take values from.
_PAIRING = frozenset(("builtins.enumerate", "builtins.reversed", "builtins.zip"))
_KEEPING = frozenset(name for name, method in METHODS.items() if method.element is not None)


def kept_lazily(
    function: Function, reader: Reader, inside: Iterable[ast.AST]
) -> Iterator[tuple[ast.expr, str]]:
    """Yield the active generators and views whose values are taken later, with the reason; `inside` are all
    nodes.
    """
    inside = list(inside)
    at_once = {id(each) for each in _taken_at_once(reader, inside) if not _is_pairing(function, each)}
    for node in inside:
        for each in _kept(function, node):
            if id(each) not in at_once and _is_lazy(function, each) and reader.value(each):
                said = f"{plain(each)} is computed where its values are taken"
                if _is_read_more(reader, node, each):
                    yield each, f"{said}, and is read more often: decide where its values are taken"
                else:
                    yield each, f"{said}: write {as_list(each)}"
        if isinstance(node, ast.For):
            yield from _changed_meanwhile(reader, node)


def _is_read_more(reader: Reader, node: ast.AST, value: ast.expr) -> bool:
    """Return whether the name that a node gives a value may be read more than once."""
    if isinstance(node, ast.Assign):
        name = node.targets[0]
        return not isinstance(name, ast.Name) or not read_once(reader.function, name.id, node)
    target = reader.target(node) if isinstance(node, ast.Call) else None
    if target is None or not isinstance(node, ast.Call):
        return False
    return any(each is value and not read_once(target, param, node) for param, each in bound(target, node))


def _taken_at_once(reader: Reader, inside: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions whose values are taken right after them, only once: in the next statement, or in
    the function that they are given to.
    """
    function = reader.function
    blocks = [getattr(each, part, None) for each in inside for part in ("body", "orelse")]
    for block in (function.body, *(each for each in blocks if isinstance(each, list))):
        for made, after, between in _followed(block):
            match made:
                case ast.Assign([ast.Name(name)], value) if function.bindings(name) == 1:
                    read = _read_by(reader, value)
                    taken = not between & read and _takes(function, after, name, read)
                    if taken and read_once(function, name, made):
                        yield from [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    for call in inside:
        if isinstance(call, ast.Call) and (target := reader.target(call)) is not None:
            yield from _taken_inside(reader, call, target)


def _followed(block: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt, set[str]]]:
    """Yield the statements of a block, each with the next one that does not only assign a constant, and the
    names between them.
    """
    for place, made in enumerate(block):
        between: set[str] = set()
        for after in block[place + 1 :]:
            match after:
                case ast.Assign([ast.Name(name)], ast.Constant()):
                    between.add(name)
                case _:
                    yield made, after, between
                    break


def _taken_inside(reader: Reader, call: ast.Call, target: Function) -> Iterator[ast.expr]:
    """Yield the arguments of which a function takes all values once, while it changes nothing."""
    others = [one for each in arguments(call) for one in terms.walk(each) if isinstance(one, ast.Call)]
    changes = target.changes_outside or reader.whole.summary(target).changed
    if changes or any(map(reader.target, others)):
        return
    for param, value in bound(target, call):
        if not target.assignments(param) and read_once(target, param, call):
            if any(_takes(target, each, param, set()) for each in target.body):
                yield value


def _takes(function: Function, node: ast.stmt, name: str, read: set[str]) -> bool:
    """Return whether a statement takes all values of a variable, before what they read can change."""
    match node:
        case ast.Assign([ast.Tuple() | ast.List()], ast.Name(taken)) if taken == name:
            return True
        case ast.For(target, ast.Name(taken), body) if taken == name:
            return not terms.names_bound([target, *body]) & read and all(
                map(_is_harmless, terms.inside(body))
            )
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return() | ast.Expr():
            calls = [each for each in terms.walk(node) if isinstance(each, ast.Call)]
            taking = [each.args[:1] for each in calls if function.dotted(each.func) in _TAKING]
            known = all(function.dotted(each.func) is not None for each in calls)
            return known and any(
                isinstance(one, ast.Name) and one.id == name for (one,) in filter(None, taking)
            )
    return False


def _is_harmless(node: ast.AST) -> bool:
    """Return whether a node changes no object, and calls nothing."""
    return not isinstance(node, ast.Call) and (
        isinstance(node, ast.Name) or not isinstance(getattr(node, "ctx", None), ast.Store)
    )


def _is_lazy(function: Function, node: ast.expr) -> bool:
    match node:
        case ast.GeneratorExp():
            return True
        case ast.Call(ast.Attribute(attr="values" | "items") as method, []) if (
            function.dotted(method) is None
        ):
            return True
    return _is_pairing(function, node)


def _is_pairing(function: Function, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and function.dotted(node.func) in _PAIRING


def _kept(function: Function, node: ast.AST) -> Iterable[ast.expr]:
    """The parts of a node whose values go on, and are not taken at once."""
    match node:
        case ast.Assign(targets, value):
            unpacks = any(isinstance(each, ast.Tuple | ast.List) for each in targets)
            return [] if unpacks else [value]
        case ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
            return [value]
        case ast.NamedExpr(value=value) | ast.Lambda(body=value) | ast.DictComp(value=value):
            return [value]
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            return [value]
        case ast.List(elts) | ast.Tuple(elts):
            return elts
        case ast.Dict(values=values) | ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Call(ast.Attribute(attr=method) as func) if function.dotted(func) is None:
            return node.args if method in _KEEPING else []
        case ast.Call(func):
            library = isinstance(func, ast.Attribute) or (
                isinstance(func, ast.Name) and function.dotted(func) is not None
            )
            return [] if library else arguments(node)
    return []


def _changed_meanwhile(reader: Reader, loop: ast.For) -> Iterator[tuple[ast.expr, str]]:
    """Yield the generators that a loop takes its values from while its body changes what they read."""
    lazy = [each for each in iterated(loop.iter) if isinstance(each, ast.GeneratorExp)]
    if not lazy:
        return
    given, changed = terms.names_bound([loop.target, *loop.body]), set[str]()
    for each in terms.inside(loop.body):
        if isinstance(each, ast.Call):
            changed |= changed_by_call(reader, each)
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            changed |= terms.names_read(each.value)
    given |= reader.whole.aliases(reader.function).with_names(changed)
    for each in lazy:
        own = terms.names_bound([part.target for part in each.generators])
        for name in sorted((_read_by(reader, each) - own) & given)[:1]:
            if reader.value(each):
                yield each, f"the loop changes {name}, which {ast.unparse(each)} reads: write a list"


def _read_by(reader: Reader, node: ast.expr) -> set[str]:
    """The variables that an expression reads, also in the functions that it calls."""
    sources = Sources(reader)
    found = set(terms.names_read(node))
    for each in terms.walk(node):
        for callee in sources.callees(each) if isinstance(each, ast.Call) else ():
            found |= {name_of(reader.function, owner, name) for owner, name in callee.reached}
    return found
