"""Seed places: the calls with which a script fixes its random numbers by a seed that all ranks share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Literal, Member
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.datasets.operations import DIRECTORIES
from trainshift.training.uniformity.uniformity import Uniformity

TENSORFLOW, NUMPY, PYTHON = "tensorflow.random", "numpy.random", "random"
_ALL = (TENSORFLOW, NUMPY, PYTHON)
# Calls that seed the generators of libraries.
GLOBAL = {
    "numpy.random.seed": (NUMPY,),
    "random.seed": (PYTHON,),
    "tensorflow.compat.v1.random.set_random_seed": (TENSORFLOW,),
    "tensorflow.compat.v1.set_random_seed": (TENSORFLOW,),
    "tensorflow.keras.utils.set_random_seed": _ALL,
    "tensorflow.random.set_seed": (TENSORFLOW,),
}
GENERATORS = frozenset(
    {
        "numpy.random.RandomState",
        "numpy.random.default_rng",
        "random.Random",
        "tensorflow.random.Generator.from_seed",
    }
)
"""The functions that make a random generator."""
READING = ("flow", "flow_from_dataframe", "flow_from_directory", *DIRECTORIES)
"""The functions that read data in an order that their seed decides."""


class SeedPlace(Struct, frozen=True, eq=False):
    """A call that fixes random numbers by the seed `node`."""

    site: Site
    node: ast.expr
    doubt: str = ""


class SeedPlaces:
    """The seeds of one program that are the same on each rank."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def all(self) -> list[SeedPlace]:
        """Every such seed, in text order."""
        return sorted(self._read(), key=lambda each: self._script.span(each.node, each.site))

    @cached_property
    def chosen(self) -> list[SeedPlace]:
        """All seeds, if each rank should have its own; else none."""
        return self.all if self._program.choices.seed_by_rank else []

    def called(self, site: Site) -> set[str]:
        """The full names that a call may call, canonical if known."""
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        return {api.canonical(name) or name for name in names}

    def is_shuffle(self, site: Site) -> bool:
        """Return whether the call is the `shuffle` of a dataset."""
        return site.name == "shuffle" and any(
            isinstance(value, Member) and self._names.is_a(value.owner, *api.DATASET)
            for value in self._names.callee(site)
        )

    def _read(self) -> Iterator[SeedPlace]:
        uniformity = self._program.fact(Uniformity)
        for site in self._script.sites:
            node = self._seed(site)
            if node is None or isinstance(node, ast.JoinedStr) or site.in_fstring:
                continue
            values = self._names.site_values(node, site)
            known = [each.value for each in values if isinstance(each, Literal)]
            numbers = [each for each in known if isinstance(each, int)]
            # The value of computed constants is unknown.
            others = [each for each in known if not isinstance(each, int) and each not in (None, ...)]
            is_fixed = set(known) != {None} and uniformity.is_uniform(
                Occurrence(node, site.scope, site.statement)
            )
            if others or not is_fixed or uniformity.on_rank(of_call(site).part(node)):
                continue
            is_shown = len(numbers) == len(values) > 0 or isinstance(node, ast.BinOp)
            doubt = "" if is_shown else f"{self._script.text(node, site)} is assumed to be a number"
            yield SeedPlace(site, node, doubt)

    def _seed(self, site: Site) -> ast.expr | None:
        """The seed argument of a call."""
        names = self.called(site)
        if names & GLOBAL.keys() or names & GENERATORS:
            return argument(site.node, 0, "seed", "a", "x")
        if self.is_shuffle(site):
            return argument(site.node, 1, "seed")
        is_layer = any(api.is_subclass(name, *api.LAYER) for name in names)
        return argument(site.node, None, "seed") if is_layer or site.name in READING else None
