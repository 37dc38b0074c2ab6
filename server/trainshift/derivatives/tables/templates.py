"""Templates of the table, as expressions with their names replaced."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache

from trainshift.python.rewrite import terms
from trainshift.python.syntax.fresh_names import fresh_name


def filled(template: str, values: Mapping[str, ast.expr], defaults: Mapping[str, str]) -> ast.expr:
    """Fill in a template: its names are replaced by values or `defaults`, and its bound names are renamed if
    they clash.

    Omitted arguments that are False or None are also omitted in the template's calls, and so is a flag that
    is the opposite of one that is True.
    """
    left = {key: text for key, text in defaults.items() if key not in values}
    node = _without(template, frozenset(key for key, text in left.items() if text in ("False", "None")))
    values = {**values, **{key: terms.parsed(text) for key, text in left.items()}}
    bound = _bound_inside(template)
    if bound:
        used = set().union(*map(terms.names_read, values.values()))
        values = {**values, **{each: terms.name(fresh_name(each, used)) for each in bound}}
    if "not " in template:
        node = terms.copied(node)
        for call in terms.walk(node):
            if isinstance(call, ast.Call):
                settled = (_settled(each, values) for each in call.keywords)
                call.keywords = [each for each in settled if each is not None]
    return terms.copied(node, values)


def _settled(keyword: ast.keyword, values: Mapping[str, ast.expr]) -> ast.keyword | None:
    """A template's argument as a constant, if it negates one; None if that constant is False."""
    match keyword.value:
        case ast.UnaryOp(ast.Not(), ast.Name(name)):
            match values[name]:
                case ast.Constant(bool(flag)):
                    return None if flag else ast.keyword(keyword.arg, terms.constant(True))
    return keyword


@cache
def _without(template: str, left: frozenset[str]) -> ast.expr:
    """A template without some optional arguments at the ends of its calls."""

    def is_left(each: ast.expr) -> bool:
        return isinstance(each, ast.Name) and each.id in left

    if not left:
        return terms.parsed(template)
    node = ast.parse(template, mode="eval").body
    for call in terms.walk(node):
        if isinstance(call, ast.Call):
            call.keywords = [each for each in call.keywords if not is_left(each.value)]
            while call.args and is_left(call.args[-1]):
                call.args.pop()
    return node


@cache
def _bound_inside(template: str) -> frozenset[str]:
    """The names that a template's comprehensions bind."""
    stores = (each for each in terms.walk(terms.parsed(template)) if isinstance(each, ast.Name))
    return frozenset(each.id for each in stores if isinstance(each.ctx, ast.Store))


@cache
def names_of(template: str) -> frozenset[str]:
    """The names that a template reads."""
    return frozenset(terms.names_read(terms.parsed(template)))
