"""Set variables: the values that a script gives to the variables of TensorFlow that it makes.

A variable that reaches a sink hands on what it is set to, wherever that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Site, arguments
from trainshift.python.values.backward_slice import sources
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
_FUNCTIONS = named("assigning") | {"moving_average_update", "set_value"}
_GETTING = ".get_variable"
_FED = ("placeholder", "placeholder_with_default")
# Functions that get pairs of a variable and a value, and those that get one pair, of older Keras.
_OF_PAIRS = frozenset({"batch_set_value"})
_OF_A_PAIR = frozenset({"add_update"})
# Arguments that are no part of the value.
_HOW = frozenset({"momentum", "name", "read_value", "use_locking"})


class Setting(NamedTuple):
    """A call that sets a variable, and one of the expressions that decide its value."""

    site: Site
    variable: Occurrence
    value: Occurrence


class SetVariables:
    """The values that variables of one program are set to."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def behind(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the values to which the variables behind an expression are set, and those behind these."""
        if self._set or self._fed:
            values = reachable([at], self._given, lambda each: (each.node, each.scope))
            yield from (each for each in values if each is not at)

    @staticmethod
    def tests(value: Occurrence) -> Iterator[Occurrence]:
        """Yield the tests that decide whether a variable is set to a value."""
        return tests_around(value.statement, None)

    def _given(self, at: Occurrence) -> Iterable[Occurrence]:
        behind = [part.node for part in self._program.fact(Uniformity).behind(at)]
        found = [each.value for node in behind for each in self._set.get(node, ())]
        return found + [each for node in behind for each in self._fed.get(node, ())]

    @cached_property
    def _fed(self) -> dict[ast.AST, list[Occurrence]]:
        """The values that sessions are fed for placeholders, by the calls that make these."""
        made = {site.node for site in self._script.sites_named(*_FED)}
        found: dict[ast.AST, list[Occurrence]] = {}
        for at in self._program.fact(ExpressionsByKind).of(ast.Dict) if made else ():
            assert isinstance(at.node, ast.Dict)
            for key, value in zip(at.node.keys, at.node.values, strict=True):
                for each in sources(self._names, at.part(key)) if key is not None else ():
                    if each.node in made:
                        found.setdefault(each.node, []).append(at.part(value))
        return found

    @cached_property
    def settings(self) -> list[Setting]:
        """The calls that may set variables, whatever their objects are."""
        sites = self._script.sites_named(*dict.fromkeys([*ASSIGNING, *_FUNCTIONS, *_OF_A_PAIR]))
        return [Setting(site, *pair) for site in sites for pair in self._pairs(site)]

    def made(self, setting: Setting) -> Iterator[ast.AST]:
        """Yield the calls that make the variables which a call sets."""
        for each in self._names.site_values(setting.variable.node, setting.site):
            if isinstance(each, Instance) and (
                self._names.is_a(each, *api.VARIABLE) or each.cls.endswith(_GETTING)
            ):
                yield each.node

    @cached_property
    def _set(self) -> dict[ast.AST, list[Setting]]:
        """The values that variables are set to, by the calls that make the variables."""
        found: dict[ast.AST, list[Setting]] = {}
        for each in self.settings:
            for node in self.made(each):
                found.setdefault(node, []).append(each)
        return found

    def _pairs(self, site: Site) -> Iterator[tuple[Occurrence, Occurrence]]:
        """Yield the variables that a call sets, and the values: ``v.assign(x)``, ``K.set_value(v, x)``."""
        at, function = of_call(site), site.node.func
        if site.name in _OF_PAIRS | _OF_A_PAIR:
            for listed in site.node.args[:1]:
                yield from ((at.part(one), at.part(other)) for one, other in _in_pairs(listed))
            return
        is_method = site.name in ASSIGNING and not self._names.full_names(function, *at[1:3])
        told = {each.value for each in site.node.keywords if each.arg in _HOW}
        given = [each for each in arguments(site.node) if each not in told]
        if is_method and isinstance(function, ast.Attribute):
            given.insert(0, function.value)
        yield from ((at.part(given[0]), at.part(each)) for each in given[1:])


def _in_pairs(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the pairs that an expression lists, or that it is."""
    inner: list[ast.expr] = [node]
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        inner = [node.elt]
    elif isinstance(node, ast.List | ast.Tuple) and any(isinstance(each, ast.Tuple) for each in node.elts):
        inner = node.elts
    for each in inner:
        if isinstance(each, ast.List | ast.Tuple) and len(each.elts) == 2:
            yield each.elts[0], each.elts[1]
