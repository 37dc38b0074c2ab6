"""Sink inputs: the expressions that decide what a call does, by its arguments and by the loops around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.libraries.entries import is_bar
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Site, argument


def given_to(site: Site, without: frozenset[str] = frozenset()) -> Iterator[Occurrence]:
    """Yield the arguments of a call, except keywords that cannot affect its result."""
    at = of_call(site)
    yield from map(at.part, site.node.args)
    yield from (at.part(each.value) for each in site.node.keywords if each.arg not in without)


def data_of(site: Site) -> Iterator[ast.expr]:
    """Yield the data arguments of a call of a model."""
    for position, name in ((0, "x"), (1, "y")):
        given = argument(site.node, position, name)
        if given is not None:
            yield given


def turns_around(at: Occurrence) -> Iterator[Occurrence]:
    """Yield the iterables of the loops around an expression, which decide how often it is evaluated."""
    for above in at.statement.ancestors() if at.statement is not None else ():
        if isinstance(above.node, ast.For | ast.While) and above.scope is at.scope:
            node = above.node.iter if isinstance(above.node, ast.For) else above.node.test
            yield Occurrence(node, above.scope, above)


def counts(program: Program, at: Occurrence) -> bool:
    """Return whether a loop iterates over numbers, so that the values behind these decide its length."""
    while isinstance(at.node, ast.Call):
        called = program.names.full_names(at.node.func, at.scope, at.statement)
        is_around = any(map(is_bar, called))
        lengths = {entries.fact(each, "length") for each in called}
        if "counts" in lengths or (is_around and any(each.endswith("range") for each in called)):
            return True
        if not (is_around or "through" in lengths) or not at.node.args:
            return False
        at = at.part(at.node.args[0])
    return False
