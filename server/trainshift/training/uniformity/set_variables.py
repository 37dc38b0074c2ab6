"""Set variables: the values that a script gives to the variables of TensorFlow that it makes.

A variable that reaches a sink hands on what it is set to, wherever that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.value_flow import tests_around

ASSIGNING = {
    "assign": "value",
    "assign_add": "delta",
    "assign_sub": "delta",
    "scatter_add": "sparse_delta",
    "scatter_sub": "sparse_delta",
    "scatter_update": "sparse_delta",
    "scatter_nd_add": "updates",
    "scatter_nd_sub": "updates",
    "scatter_nd_update": "updates",
}
"""Methods of variables that set or change them, each with its argument."""
_FUNCTIONS = named("assigning")


class SetVariables:
    """The values that variables of one program are set to."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def behind(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the values to which the variables behind an expression are set, and those behind these."""
        if self._set:
            values = reachable([at], self._given, lambda each: (each.node, each.scope))
            yield from (each for each in values if each is not at)

    @staticmethod
    def tests(value: Occurrence) -> Iterator[Occurrence]:
        """Yield the tests that decide whether a variable is set to a value."""
        return tests_around(value.statement, None)

    def _given(self, at: Occurrence) -> Iterable[Occurrence]:
        behind = self._program.fact(Uniformity).behind(at)
        return [value for each in behind for value in self._set.get(each.node, ())]

    @cached_property
    def _set(self) -> dict[ast.AST, list[Occurrence]]:
        """The values that variables are set to, by the calls that make the variables."""
        found: dict[ast.AST, list[Occurrence]] = {}
        for site in self._script.sites_named(*ASSIGNING, *_FUNCTIONS):
            variable, value = set_by(site)
            if variable is not None and value is not None:
                for each in self._names.site_values(variable, site):
                    if isinstance(each, Instance) and self._names.is_a(each, *api.VARIABLE):
                        found.setdefault(each.node, []).append(of_call(site).part(value))
        return found


def set_by(site: Site) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the variable that a call sets, and the value: ``v.assign(x)``, ``K.set_value(v, x)``."""
    given = argument(site.node, 0, ASSIGNING.get(site.name, "x")), argument(site.node, 1, "value")
    if isinstance(site.node.func, ast.Attribute) and given[1] is None:
        return site.node.func.value, given[0]
    return given
