"""Rewrite loops that mutate elements by the loop variable: the elements' places become their only names
(AD37).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import changed_by_call, depth, once
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS
from trainshift.python.syntax.iteration import counted_from_0, is_numbered


def shared_names(reader: Reader) -> set[frozenset[str]]:
    """The pairs of names of a function that are refused, because a mutation of one is a mutation of the
    other.
    """
    aliases = reader.whole.aliases(reader.function)
    found = [each.alias for each in aliases.conflicts()] if reader.whole.reverse else []
    return {frozenset((each.name, each.other)) for each in found if each.unless is None and not each.is_twice}


def by_place(reader: Reader, node: ast.For, shared: set[frozenset[str]]) -> ast.For:
    """The loop, with each element's place instead of its name if the loop mutates elements by that name."""
    function = reader.function
    match node.target, node.iter:
        case ast.Name(name), ast.Name() | ast.Subscript() as source if _can(
            reader, node, name, source, shared
        ):
            place = terms.name(function.fresh("i"))
            counted = terms.call("range", terms.call("len", source))
            return _placed(reader, node, place, counted, {name: terms.item(source, place)})
        case ast.Tuple([ast.Name() as count, ast.Name(name)]), ast.Call() as call if is_numbered(call):
            source = call.args[0]
            if _can(reader, node, name, source, shared):
                counted = terms.call("range", terms.call("len", source))
                if counted_from_0(call) and count.id not in terms.names_bound(node.body):
                    return _placed(reader, node, count, counted, {name: terms.item(source, count)})
                place = terms.name(function.fresh("i"))
                counted = ast.Call(call.func, [counted, *call.args[1:]], call.keywords)
                target = terms.display([count, place])
                return _placed(reader, node, target, counted, {name: terms.item(source, place)})
        case ast.Tuple([ast.Name() as place, ast.Name(name)]), ast.Call(ast.Attribute(source, "items"), []):
            if _can(reader, node, name, source, shared) and place.id not in terms.names_bound(node.body):
                return _placed(reader, node, place, source, {name: terms.item(source, place)})
        case ast.Name(name), ast.Call(ast.Attribute(source, "values"), []):
            if _can(reader, node, name, source, shared):
                place = terms.name(function.fresh("key"))
                return _placed(reader, node, place, source, {name: terms.item(source, place)})
        case ast.Tuple(targets), ast.Call(ast.Name("zip"), sources) as call if len(targets) == len(sources):
            found: dict[str, ast.expr] = {}
            parts = list(zip(targets, sources, strict=True))
            for number, (each, source) in enumerate(parts):
                if isinstance(each, ast.Name) and _can(reader, node, each.id, source, shared):
                    place = terms.name(function.fresh("i"))
                    found[each.id] = terms.item(source, place)
                    parts[number] = place, terms.call("range", terms.call("len", source))
            if found:
                target = terms.display([each for each, _ in parts])
                beside = ast.Call(terms.name("zip"), [one for _, one in parts], call.keywords)
                return _placed(reader, node, target, beside, found)
    return node


def _placed(
    reader: Reader, node: ast.For, target: ast.expr, source: ast.expr, names: dict[str, ast.expr]
) -> ast.For:
    target = terms.stored(target)
    reader.function.local |= terms.names_bound([target])
    body = copy.deepcopy(node.body)
    for each in terms.inside(body):
        if isinstance(each, ast.stmt) and not terms.names_read(each).isdisjoint(names):
            origin(each).is_verbatim = False
    body = [_Named(names).visit(each) for each in body]
    return ast.copy_location(ast.For(target, source, body, node.orelse), node)


class _Named(ast.NodeTransformer):
    """Replaces reads of variables by expressions."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """An element for its name."""
        new = self.names.get(node.id)
        return node if new is None else ast.copy_location(terms.copied(new), node)


def _can(reader: Reader, node: ast.For, name: str, source: ast.expr, shared: set[frozenset[str]]) -> bool:
    """Return whether an element of a loop can be read by its place wherever the loop names it."""
    function, base = reader.function, root_of(source)
    if not isinstance(source, ast.Name | ast.Subscript) or base is None or any(once(reader, source)):
        return False
    asked, given = terms.names_read(source) | {name}, terms.names_bound(node.body)
    if frozenset((name, base)) not in shared or isinstance(getattr(source, "slice", None), ast.Slice):
        return False
    if asked & (given | function.foreign | function.captured_inside):
        return False
    aliases = reader.whole.aliases(function)
    others = aliases.with_names({base}) | {base}
    # Names bound only by loops are elements: mutating them does not mutate their container.
    others = {each for each in others if not _only_gone_through(function.assignments(each))} | {base}
    for each in terms.inside(node.body):
        match each:
            case ast.Subscript(ctx=ast.Store()) if root_of(each) in others:
                if depth(each) <= depth(source) + 1 and not _elsewhere(each, source):
                    return False
            case ast.AugAssign(ast.Name(changed)) if changed in others:
                return False
            case ast.Call() if changed_by_call(reader, each) & others:
                return False
            case ast.Lambda():
                return False
            case ast.comprehension(target) if name in terms.names_bound([target]):
                return False
    return not _read_outside(function.body, node, name)


def _elsewhere(place: ast.expr, source: ast.expr) -> bool:
    """Return whether a place certainly has a different key than a loop's iterable: a string, or a different
    number.
    """
    return root_of(place) == root_of(source) and any(
        isinstance(one, ast.Constant)
        and isinstance(other, ast.Constant)
        and isinstance(one.value, str)
        and one.value != other.value
        for one, other in zip(_keys(place), _keys(source), strict=False)
    )


def _keys(node: ast.expr) -> list[ast.expr]:
    """The indices that lead to an element, first one first."""
    return [*_keys(node.value), node.slice] if isinstance(node, ast.Subscript) else []


def _only_gone_through(given: Sequence[ast.AST]) -> bool:
    return bool(given) and all(isinstance(each, ast.For | ast.comprehension) for each in given)


def _read_outside(nodes: Sequence[ast.AST], loop: ast.For, name: str) -> bool:
    """Return whether a variable is read outside a loop, except in loops that assign it first."""
    for node in nodes:
        inner = terms.children(node)
        match node:
            case ast.Name(found, ast.Load()) if found == name:
                return True
            case ast.For(target, source) if node is loop or name in terms.names_bound([target]):
                inner = [source, *node.orelse]
            case ast.expr() if isinstance(node, COMPREHENSIONS):
                if name in terms.names_bound([each.target for each in node.generators]):
                    inner = [each.iter for each in node.generators]
            case ast.Lambda(args) if name in {
                each.arg for each in terms.walk(args) if isinstance(each, ast.arg)
            }:
                inner = [each for each in (*args.defaults, *args.kw_defaults) if each is not None]
        if _read_outside(inner, loop, name):
            return True
    return False
