"""Activity of variables: varied if they depend on the parameters to differentiate by, and useful if the
result depends on them.

Varied is a forward property, useful a backward one.  Both apply to a variable as a whole, because it has one
tangent or adjoint everywhere.  So they are sparse analyses: variables are the nodes of the graph, and its
edges are the assignments that `derivatives/reading/reader.py` finds.  `feed` records an edge, and `use` marks
all variables from which one can be reached.  Varied variables also depend on kinds, so passes repeat until
nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from trainshift.derivatives.reading.function import Function
from trainshift.python.flow.traversal import reachable
from trainshift.python.rewrite import terms

Variable = tuple[Function, str]


def vary(function: Function, name: str) -> None:
    """Mark a variable as varied, in its own function."""
    owner = function.owner(name)
    if owner is not None:
        owner.varied.add(name)


def is_useful(function: Function, name: str) -> bool:
    """Return whether a variable is useful."""
    owner = function.owner(name)
    return owner is not None and name in owner.useful


def make_useful(function: Function, name: str) -> None:
    """Mark a variable as useful, but not its sources."""
    owner = function.owner(name)
    if owner is not None:
        owner.useful.add(name)


def use(function: Function, node: ast.expr) -> None:
    """Mark the variables that an expression reads as useful, and their sources."""
    for owner, name in reachable(_read_by(function, node), _behind):
        owner.useful.add(name)


def _behind(variable: Variable) -> list[Variable]:
    """Return the sources of a variable that becomes useful; they are requested once."""
    owner, name = variable
    return [each for inner, node in owner.feeding.pop(name, ()) for each in _read_by(inner, node)]


def _read_by(function: Function, node: ast.expr) -> list[Variable]:
    """Return the variables that an expression reads, including the captures of its functions."""
    found: list[Variable] = []
    for name in terms.names_read(node):
        owner = function.owner(name)
        if owner is not None:
            found.append((owner, name))
            if name in owner.nested:
                found += owner.nested[name].free
    return found


def feed(function: Function, name: str, *nodes: ast.expr) -> None:
    """Record the sources of a variable: the variables they read become useful as soon as it does."""
    owner = function.owner(name)
    if owner is None:
        return
    if name not in owner.useful:
        owner.feeding.setdefault(name, []).extend((function, each) for each in nodes)
        return
    for each in nodes:
        use(function, each)


def spread_to_aliases(
    function: Function,
    pairs: Iterable[frozenset[str]],
    changed: set[str],
    shows: Callable[[str, str], bool],
) -> bool:
    """Mark possible aliases of a name through which an active value is stored as active.

    `pairs` are the names that may be one object, `changed` those by which one is mutated; `shows` returns
    whether the first of two names may show a mutation by the second.  Return whether anything changed.
    """
    found = False
    for pair in pairs:
        for name in pair & changed:
            owner = function.owner(name)
            for other in pair - {name}:
                partner = function.owner(other)
                if owner is None or partner is None:
                    continue
                shown = shows(other, name)
                if name in owner.varied and other not in partner.varied and shown:
                    partner.varied.add(other)
                    found = True
                if other in partner.useful and name not in owner.useful:
                    owner.useful.add(name)
                    found = True
    return found


def spread_to_kept(function: Function) -> bool:
    """Mark the containers that inner functions may keep as active.

    After the function has returned, they may be mutated under any name.  Return whether anything changed.
    """
    found = False
    for name in function.kept():
        kinds = {each for each in function.kind(name).with_elements() if each.container}
        same = [
            (each, other)
            for each in function.whole.every()
            for other, kind in each.kinds.items()
            if kinds & kind.with_elements()
        ]
        for marked in ([each.varied for each, _ in same], [each.useful for each, _ in same]):
            names = [other for _, other in same]
            if any(other in one for one, other in zip(marked, names, strict=True)):
                for one, other in zip(marked, names, strict=True):
                    found = found or other not in one
                    one.add(other)
    return found
