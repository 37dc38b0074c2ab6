"""Dry runs: calls of a function that trains only if an argument says so: ``run(test, training=False)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.python.syntax.chunk_syntax import Scope, Site
from trainshift.training.loops.what_trains import WhatTrains


class DryRuns:
    """The calls of one program that run a training function without training."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names
        self._asked: dict[Scope, frozenset[tuple[str, bool]]] = {}

    def is_dry(self, site: Site, function: Scope) -> bool:
        """Return whether a call passes a function a constant that turns off its training."""
        for name, wanted in self._flags(function):
            given = self._names.argument(site, function, name)
            if given is None:
                bindings = function.bindings.get(name, ())
                given = next((each.value for each in bindings if each.kind == "parameter"), None)
            if isinstance(given, ast.Constant) and bool(given.value) != wanted:
                return True
        return False

    def _flags(self, function: Scope) -> frozenset[tuple[str, bool]]:
        """The parameters that must be true, or false, for any training in a function to run."""
        if function not in self._asked:
            trains = self._program.fact(WhatTrains)
            sites = (each for each in self._program.script.sites if each.scope.function() is function)
            tests = [frozenset(_tests(each)) for each in sites if trains.site_trains(each)]
            self._asked[function] = frozenset.intersection(*tests) if tests else frozenset()
        return self._asked[function]


def _tests(site: Site) -> Iterator[tuple[str, bool]]:
    """Yield the names tested around a call in its function, and their required values."""
    for below, above in pairwise(site.statement.path()):
        if isinstance(above.node, ast.If) and below.branch in ("body", "orelse"):
            test, wanted = above.node.test, below.branch == "body"
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, wanted = test.operand, not wanted
            if isinstance(test, ast.Name):
                yield test.id, wanted
