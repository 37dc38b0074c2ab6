"""The call graph, followed from a call to the calls that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.linked import LinkedScript
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, arguments


class CallGraph(Protocol):
    """Names with `callers`: the calls that may run a function."""

    def callers(self, function: Scope) -> tuple[list[Site], bool]:
        """The calls that may run a function, and whether it may be run from elsewhere."""


def calls_leading_to(names: CallGraph, *sites: Site) -> Iterator[Site]:
    """Yield calls, then the calls of their enclosing functions, and so on outwards, each once."""
    return reachable(sites, lambda site: callers_around(names, site))


def callers_around(names: CallGraph, site: Site) -> list[Site]:
    """The calls of the function around a call."""
    function = site.scope.function()
    return names.callers(function)[0] if function is not None else []


def calls_of(names: CallGraph, script: LinkedScript, function: Scope) -> list[Site]:
    """The calls of a function of a script; for a method of unknown objects, the calls by its name."""
    return names.callers(function)[0] or list(script.sites_named(function.name))


def called_from(names: CallGraph) -> Callable[[Scope], list[Site]]:
    """The calls of a function that names see."""
    return lambda function: names.callers(function)[0]


def functions_leading_to(
    functions: Iterable[Scope | None], callers: Callable[[Scope], Iterable[Site]]
) -> Iterator[Scope]:
    """Yield functions, then their callers, and so on outwards, each once; None is the module.

    `callers` returns the calls that run a function: `called_from` of names, or a superset.
    """

    def calling(function: Scope) -> list[Scope]:
        around = (site.scope.function() for site in callers(function))
        return [caller for caller in around if caller is not None]

    return reachable([function for function in functions if function is not None], calling)


def statements_around(names: CallGraph, statement: Statement) -> set[Statement]:
    """Return the enclosing statements of a statement, and those of the calls of its enclosing functions."""

    def calling(each: Statement) -> list[Statement]:
        function = each.scope.function()
        return [site.statement for site in names.callers(function)[0]] if function is not None else []

    return {above for each in reachable([statement], calling) for above in each.path()} - {statement}


def functions_handed_to(script: LinkedScript, *names: str) -> dict[Scope, Site]:
    """The functions passed as arguments to calls with one of some names, each with the first such call."""
    found: dict[Scope, Site] = {}
    for site in script.sites_named(*names):
        for given in arguments(site.node):
            for value in script.names.site_values(given, site):
                if isinstance(value, Function):
                    found.setdefault(value.scope, site)
    return found
