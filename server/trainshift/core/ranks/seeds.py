"""Seeds: in which order each rank goes through what is shuffled or drawn, as far as seeds tell."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum

from trainshift.core.program import Program
from trainshift.core.ranks.dependence import Dependence
from trainshift.libraries import api, divergence
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, Library, Member
from trainshift.python.syntax.chunk_syntax import Site, argument, children
from trainshift.python.values.backward_slice import sliced


class Order(Enum):
    """Whether all ranks have one order of something that is shuffled or drawn."""

    SAME = "same"
    OWN = "own"
    UNKNOWN = "unknown"


# What seeds what: generators of numbers by the libraries that have them.
_TF, _NUMPY, _PYTHON = "tensorflow", "numpy", "random"
_GLOBAL = {
    "tensorflow.random.set_seed": (_TF,),
    "tensorflow.compat.v1.set_random_seed": (_TF,),
    "tensorflow.keras.utils.set_random_seed": (_TF, _NUMPY, _PYTHON),
    "numpy.random.seed": (_NUMPY,),
    "random.seed": (_PYTHON,),
}
_SETTING = frozenset(name.rpartition(".")[2] for name in _GLOBAL)
_DRAWS = frozenset(
    {
        "rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal", "randint",
        "integers", "choice", "truncated_normal", "randrange", "sample", "gauss", "multivariate_normal",
        "random_uniform", "random_normal", "binomial", "poisson", "stateless_normal", "stateless_uniform",
        "betavariate", "choices", "exponential", "expovariate", "getrandbits", "lognormal", "lognormvariate",
        "normalvariate", "triangular",
    }
)  # fmt: skip
_SHUFFLES = divergence.BY_STATE | {"permutation", "shuffle", "permuted", "next_batch", "random_shuffle"}
_GENERATORS = frozenset(
    {
        "numpy.random.default_rng",
        "numpy.random.RandomState",
        "random.Random",
        "numpy.random.Generator",
        "tensorflow.random.Generator.from_seed",
        "tensorflow.random.Generator.from_non_deterministic_state",
    }
)
# Readers of Keras that shuffle unless they are told not to, and what draws their order.
_READERS = {
    "flow": _NUMPY, "flow_from_directory": _NUMPY, "flow_from_dataframe": _NUMPY, "list_files": _TF,
    "image_dataset_from_directory": _TF, "text_dataset_from_directory": _TF, "audio_dataset_from_directory":
    _TF, "make_csv_dataset": _TF, "make_batched_features_dataset": _TF,
}  # fmt: skip
# What gives one seed for one seed.
_KEEPING = frozenset({"int", "abs", "str"})
# What differs from one process to the next.
_PASSING = frozenset({"time", "time_ns", "perf_counter", "getpid", "urandom", "now", "uuid4"})


class Seeds:
    """The seeds of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._dependence = program.fact(Dependence)

    def is_draw(self, site: Site) -> bool:
        """Whether a call draws numbers at random."""
        return self._script.called_name(site) in _DRAWS and bool(self._library(site))

    def shuffles(self, site: Site) -> bool:
        """Whether a call gives an order that is drawn at random."""
        if site.name in _READERS:
            return not self._is_false(argument(site.node, None, "shuffle"))
        if (
            self._script.called_name(site) in divergence.UNLESS_TOLD
            and argument(site.node, 1, "shuffle") is None
        ):
            return False
        return self._script.called_name(site) in _SHUFFLES

    def order(self, site: Site) -> Order:
        """Whether what a call draws or shuffles is the same on all ranks."""
        library = self._library(site)
        own = self.given(site)
        if own is not None and not (isinstance(own.node, ast.Constant) and own.node.value is None):
            return self.of_seed(own)
        generator = self._generator(site)
        if generator is not None:
            given = argument(generator.node, 0, "seed", "x")
            if given is None:
                return Order.OWN
            return self.of_seed(Occurrence(given, generator.scope, generator.statement))
        return self.of_library(
            library or (_NUMPY if self._script.called_name(site) in divergence.BY_STATE else _TF)
        )

    def of_library(self, library: str) -> Order:
        """Whether a library's own generator gives all ranks the same numbers."""
        found = [
            self.of_seed(Occurrence(given, site.scope, site.statement))
            for site, libraries in self._seeded
            if library in libraries
            for given in (argument(site.node, 0, "seed", "a"),)
            if given is not None
        ]
        if not found:
            return Order.OWN
        return found[-1] if len(set(found)) == 1 else Order.UNKNOWN

    def of_seed(self, at: Occurrence) -> Order:
        """Whether a seed is the same on all ranks."""
        if self._dependence.on_rank(at):
            return Order.OWN
        for each in sliced(at, self._parts):
            if isinstance(each.node, ast.Constant) and each.node.value is None:
                return Order.OWN
            if isinstance(each.node, ast.Call):
                name = self._script.site_of(each.node).name
                if name in _PASSING:
                    return Order.OWN
                if name not in _KEEPING:
                    return Order.UNKNOWN
            elif (step := self._names.steps_back(each)) is not None and step.unseen:
                return Order.UNKNOWN
        return Order.SAME

    def _parts(self, at: Occurrence) -> Iterable[Occurrence]:
        """What a seed is made of."""
        if isinstance(at.node, ast.Call):
            return map(at.part, at.node.args)
        step = self._names.steps_back(at)
        if step is not None:
            return step.sources
        return (at.part(part) for part in children(at.node) if isinstance(part, ast.expr))

    @cached_property
    def _seeded(self) -> list[tuple[Site, tuple[str, ...]]]:
        """The calls that seed a library's own generator."""
        found = []
        for site in self._script.sites_named(*sorted(_SETTING)):
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            libraries = tuple(each for name in names for each in _GLOBAL.get(name, ()))
            if libraries:
                found.append((site, libraries))
        return found

    def _library(self, site: Site) -> str:
        """The library whose generator a call draws from; empty if it is none of these."""
        for name in self._names.full_names(site.node.func, site.scope, site.statement):
            if name.startswith(("numpy.random.", "numpy.matlib.")):
                return _NUMPY
            if name.startswith("random."):
                return _PYTHON
            if name.startswith(
                ("tensorflow.random", "tensorflow.compat.v1.random", "tensorflow.keras.backend.random")
            ):
                return _TF
        if site.name in _READERS:
            return _READERS[site.name]
        if self._generator(site) is not None:
            return _NUMPY
        if site.name == "next_batch":
            return _NUMPY
        return ""

    @cached_property
    def generators(self) -> dict[ast.Call, Site]:
        """The calls that make generators of random numbers."""
        names = {name.rpartition(".")[2] for name in _GENERATORS}
        return {
            site.node: site
            for site in self._script.sites_named(*sorted(names))
            if self._names.calls(site, *_GENERATORS)
        }

    def _generator(self, site: Site) -> Site | None:
        """The call that made the generator which a method is called of."""
        if not isinstance(site.node.func, ast.Attribute):
            return None
        for value in self._names.site_values(site.node.func.value, site):
            owner = value.owner if isinstance(value, Member) else value
            if isinstance(owner, Instance) and owner.cls in _GENERATORS:
                return self._script.site_of(owner.node)
        return None

    def given(self, site: Site) -> Occurrence | None:
        """The seed that a call is given itself."""
        given = argument(site.node, None, "seed", "random_state", "shuffle_seed")
        if given is None and site.name == "shuffle" and isinstance(site.node.func, ast.Attribute):
            values = self._names.site_values(site.node.func.value, site)
            if not any(isinstance(each, Library) for each in values) and self._generator(site) is None:
                given = argument(site.node, 1, "seed")
        return Occurrence(given, site.scope, site.statement) if given is not None else None

    @staticmethod
    def _is_false(node: ast.expr | None) -> bool:
        return isinstance(node, ast.Constant) and not node.value and node.value is not None

    def is_dataset(self, site: Site) -> bool:
        """Whether a call is of a method of a dataset."""
        if not isinstance(site.node.func, ast.Attribute):
            return False
        values = self._names.site_values(site.node.func.value, site)
        return self._names.may_be(values, *api.DATASET)
