"""Draws: the calls that shuffle or draw at random, their generators, and whether all ranks draw the same.

They do if a uniform seed decides it: that of the call, of its generator or of its library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from sys import stdlib_module_names

from trainshift.core.libraries import full_name
from trainshift.core.program import Program
from trainshift.libraries import api, divergence, entries
from trainshift.libraries.divergence import CauseKind
from trainshift.libraries.entries import Role
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, Instance, Library, Member
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    argument,
    arguments,
    expression_path,
    last_name,
    root_name,
)
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.python.values.call_chains import calls_leading_to, functions_handed_to
from trainshift.training.uniformity.verdict import Unknown, Verdict, divergent, joined

TENSORFLOW, NUMPY, PYTHON, TORCH, POLARS = "tensorflow", "numpy", "random", "torch", "polars"
"""The libraries that have generators of their own, by which others draw too."""
_GLOBAL = {
    "tensorflow.random.set_seed": (TENSORFLOW,),
    "tensorflow.compat.v1.set_random_seed": (TENSORFLOW,),
    "tensorflow.keras.utils.set_random_seed": (TENSORFLOW, NUMPY, PYTHON),
    "numpy.random.seed": (NUMPY,),
    "random.seed": (PYTHON,),
    "torch.manual_seed": (TORCH,),
    "polars.set_random_seed": (POLARS,),
}
_REPEATING = (ast.For, ast.AsyncFor, ast.While)
_SETTING = frozenset(name.rpartition(".")[2] for name in _GLOBAL)
# Prefixes of the functions that draw from each generator.
_DRAWING_BY = {
    "numpy.random.": NUMPY,
    "numpy.matlib.": NUMPY,
    "pandas.": NUMPY,
    "sklearn.": NUMPY,
    "imblearn.": NUMPY,
    "random.": PYTHON,
    "torch.": TORCH,
    "tensorflow.random": TENSORFLOW,
    "tensorflow.compat.v1.random": TENSORFLOW,
    "tensorflow.keras.backend.random": TENSORFLOW,
}
# Prefixes of the classes of tables, with the generator by which each samples rows.
_FRAMES = {"pandas.": NUMPY, "polars.": POLARS}
# The arguments by which a table samples a part of its rows.
_PARTS = {"frac": NUMPY, "fraction": POLARS}
_DRAWS = frozenset(
    {
        "rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal", "randint",
        "integers", "choice", "truncated_normal", "randrange", "sample", "gauss", "multivariate_normal",
        "random_uniform", "random_normal", "binomial", "poisson", "stateless_normal", "stateless_uniform",
        "betavariate", "choices", "exponential", "expovariate", "getrandbits", "lognormal", "lognormvariate",
        "normalvariate", "triangular",
    }
)  # fmt: skip
# Those of them that draw an array of a shape which is their first argument, or all of them.
BY_SHAPE = frozenset({"rand", "randn", "random", "random_sample", "standard_normal"})
_SHUFFLES = divergence.BY_STATE | {
    "permutation",
    "shuffle",
    "permuted",
    "next_batch",
    "randperm",
    "random_shuffle",
}
APPLYING = frozenset({"apply", "pipe"})
"""The methods of tables and datasets that return what a function makes of them."""
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
# Readers of Keras that shuffle by default, with the argument that turns shuffling off.
_READERS = {
    "flow": NUMPY, "flow_from_directory": NUMPY, "flow_from_dataframe": NUMPY, "list_files": TENSORFLOW,
    "image_dataset_from_directory": TENSORFLOW, "text_dataset_from_directory": TENSORFLOW,
    "audio_dataset_from_directory": TENSORFLOW, "make_csv_dataset": TENSORFLOW,
    "make_batched_features_dataset": TENSORFLOW,
}  # fmt: skip
# The modules of initializers, those that draw nothing, and those whose first argument is the seed.
_INITIALIZER = re.compile(
    r"(?:(?:tensorflow\.)?keras\.initializers\.|tensorflow\.(?=\w+_initializer$))(?P<name>\w+)$"
)
_CONSTANT = frozenset({"constant", "identity", "ones", "zeros"})
_SEED_FIRST = frozenset(
    {"glorotnormal", "glorotuniform", "henormal", "heuniform", "lecunnormal", "lecununiform"}
)
# The attributes of layers that keep initializers of their weights.
_KEPT = re.compile("(kernel|recurrent|depthwise|pointwise|embeddings)_initializer$")


class Draws:
    """The draws of one program; `verdict` judges whether a seed is the same on all ranks."""

    def __init__(self, program: Program, verdict: Callable[[Occurrence], Verdict]) -> None:
        self._script = program.script
        self._names = program.names
        self._verdict = verdict
        self._known: dict[Site, Verdict] = {}
        self._setting: dict[ast.expr, Site] = {}

    def is_draw(self, site: Site) -> bool:
        """Return whether a call draws numbers or elements at random."""
        is_named = self._script.called_name(site) in _DRAWS and bool(self.library(site))
        return is_named or self.is_initial(site)

    def is_initial(self, site: Site) -> bool:
        """Return whether a call draws weights as a layer does first: ``GlorotUniform()(w.shape)``."""
        if not isinstance(site.node.func, ast.Attribute):
            return self._initializer(site) is not None
        is_kept = _KEPT.match(site.name) is not None and bool(arguments(site.node))
        return is_kept and not any(isinstance(each, Function) for each in self._names.callee(site))

    def _initializer(self, site: Site) -> Instance | None:
        """Return the initializer that a call asks for random weights."""
        for value in self._names.callee(site):
            name = value.cls if isinstance(value, Instance) else ""
            of = _INITIALIZER.match(api.canonical(name) or name)
            if isinstance(value, Instance) and of is not None:
                given = argument(value.node, 0) if of["name"] == "get" else None
                named = str(given.value) if isinstance(given, ast.Constant) else of["name"]
                if _plain(named) not in _CONSTANT:
                    return value
        return None

    def shuffles(self, site: Site) -> bool:
        """Return whether a call returns a random order."""
        if site.name in _READERS:
            return not _is_off(argument(site.node, None, "shuffle"))
        name = self._script.called_name(site)
        if name not in _SHUFFLES or (name in divergence.BY_STATE and not self.is_by_state(site)):
            return False
        given = argument(site.node, 1 if name in divergence.UNLESS_TOLD else None, "shuffle")
        if given is None:
            return name not in divergence.UNLESS_TOLD
        return not _is_off(given)

    def is_by_state(self, site: Site) -> bool:
        """Return whether a call draws rows as scikit-learn does, and `random_state` fixes them.

        A split by this name is one in an unknown library too; `resample` of a signal draws nothing.
        """
        name = self._script.called_name(site)
        if name not in divergence.BY_STATE:
            return False
        named = self._named(site)
        if not named:
            return name in divergence.SPLITTING
        return any(
            (known.role is Role.DRAWS)
            if (known := entries.entry(each)) is not None
            else name in divergence.SPLITTING and _is_unknown(each)
            for each in named
        )

    def may_draw(self, site: Site) -> bool:
        """Return whether a call splits rows in a library that no entry describes, or chooses parameters by a
        member that none does.
        """
        name = self._script.called_name(site)
        if self._is_given_draws(site):
            return self.is_of_unknown(site)
        named = self._named(site) if divergence.may_draw(name) else set()
        is_told = _is_untold if divergence.asks(name) else _is_unknown
        return bool(named) and all(map(is_told, named)) and self.given(site) is None

    def _is_given_draws(self, site: Site) -> bool:
        """Return whether an object of a library, or a call, gets a function that draws."""
        if not self._drawing or site.node in self._drawing:
            return site.node in self._drawing
        owner = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
        values = self._names.site_values(owner, site) if owner is not None else ()
        return any(isinstance(each, Instance) and each.node in self._drawing for each in values)

    @cached_property
    def _drawing(self) -> set[ast.AST]:
        """The calls that get a function which draws, and those that made the objects which get one."""
        found = set[ast.AST]()
        for site in self._script.sites:
            for given in arguments(site.node):
                if isinstance(given, ast.Name | ast.Attribute) and last_name(given) in _DRAWS | _SHUFFLES:
                    names = self._names.full_names(given, site.scope, site.statement)
                    by = {
                        _DRAWING_BY[each] for each in _DRAWING_BY for name in names if name.startswith(each)
                    }
                    if any(not self.is_seeded(each) for each in by):
                        found.add(site.node)
                        if isinstance(site.node.func, ast.Attribute):
                            values = self._names.site_values(site.node.func.value, site)
                            found.update(each.node for each in values if isinstance(each, Instance))
        return found

    def is_of_unknown(self, site: Site) -> bool:
        """Return whether a call is one of a library that no entry describes."""
        named = self._named(site)
        return bool(named) and all(map(_is_unknown, named))

    def _named(self, site: Site) -> set[str]:
        """The full names of a call's function, or of the method of a library's object."""
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        found = set(names) or set(filter(None, map(full_name, self._names.callee(site))))
        if found or not divergence.is_by_chance(site.name) or not isinstance(site.node.func, ast.Attribute):
            return found
        # What a method of an object of a library gives is of the library, too.
        start = of_call(site).part(site.node.func.value)
        whole = reachable([start], self._whole_of, lambda each: (each.node, each.scope))
        values = [value for each in whole for value in self._names.values(*each[:3])]
        owners = {each.cls if isinstance(each, Instance) else full_name(each) for each in values} - {""}
        return {f"{each}.{site.name}" for each in owners}

    def of(self, site: Site) -> Verdict:
        """The verdict on a call that draws or shuffles: whether its result is the same on all ranks."""
        if site not in self._known:
            # Before the seed that it draws itself, it has none.
            self._known[site] = divergent(CauseKind.DRAW, site)
            self._known[site] = self._read(site)
        return self._known[site]

    def _read(self, site: Site) -> Verdict:
        return self._of_seeds(self.seeds(site), site)

    def of_library(self, library: str, site: Site) -> Verdict:
        """Return whether a call that draws from a library's own generator draws the same on all ranks."""
        return self._of_seeds(self._last_before(library, site), site)

    def _of_seeds(self, seeds: list[Occurrence], site: Site) -> Verdict:
        found = [self.of_seed(each, site) for each in seeds]
        if not found:
            return divergent(CauseKind.DRAW, site)
        # Only the run decides which of several seeds is the last one before a draw.
        is_one = all(each.is_uniform for each in found) or all(each.diverges for each in found)
        return found[0] if is_one else Unknown()

    def is_seeded(self, library: str) -> bool:
        """Return whether a library's own generator gets only seeds that all ranks share."""
        seeds = self.seeds_of(library)
        return bool(seeds) and all(
            not self._is_free(each) and self._verdict(each).is_uniform for each in seeds
        )

    def of_seed(self, at: Occurrence, site: Site) -> Verdict:
        """Return whether a call's seed is the same on all ranks; None is drawn anew."""
        if self._is_free(at):
            return divergent(CauseKind.DRAW, site)
        found = self._verdict(at)
        if found.diverges or found.is_uniform:
            return found
        # The seed may differ between calls of the function.
        steps = [(each, self._names.steps_back(each)) for each in sliced(at, self._sources)]
        if any(step is not None and step.unseen for _, step in steps):
            return found
        return joined(self._verdict(each) for each, step in steps if step is None or not step.sources)

    def _is_free(self, at: Occurrence) -> bool:
        """Return whether a seed may be None, so that the generator draws one."""
        return any(_is_none(each.node) for each in sliced(at, self._sources))

    def _sources(self, at: Occurrence) -> tuple[Occurrence, ...]:
        return sources(self._names, at)

    def seeds(self, site: Site) -> list[Occurrence]:
        """Return the seeds of a call that draws or shuffles: its own, its generator's, or its library's."""
        own = self.given(site)
        if own is not None and not _is_none(own.node):
            return [own]
        if self.is_initial(site):
            # Keras 3 draws the seeds of initializers from Python's generator.
            both = self.seeds_of(TENSORFLOW), self.seeds_of(PYTHON)
            return [*both[0], *both[1]] if all(both) else []
        handed = argument(site.node, None, "generator")
        if handed is not None and self.library(site) == TORCH:
            return [of_call(site).part(handed)]
        generator = self.generator(site)
        if generator is not None:
            given = argument(generator.node, 0, "seed", "x")
            return [of_call(generator).part(given)] if given is not None else []
        library = self.library(site) or (NUMPY if self.is_by_state(site) else TENSORFLOW)
        return self._last_before(library, site)

    def _last_before(self, library: str, site: Site) -> list[Occurrence]:
        """Return the seeds of a library's own generator of which one is the last before a call.

        It is known if a statement before that of the call, in its block or around it, sets the seed, and none
        between may set another.
        """
        seeds = self.seeds_of(library)
        if len(seeds) < 2 or site.scope is not site.statement.scope or site.scope.is_generator:
            return seeds
        sites = [self._setting[each.node] for each in seeds]
        setting = {each for call in calls_leading_to(self._names, *sites) for each in call.statement.path()}
        for below in site.statement.path():
            is_again = isinstance(below.node, _REPEATING) and below in setting
            if below.scope is not site.scope or is_again:
                return seeds
            block, index = self._script.siblings(below)
            for before in reversed(block[:index]):
                node = before.node.value if isinstance(before.node, ast.Expr) else None
                if last := [seed for seed, call in zip(seeds, sites, strict=True) if call.node is node]:
                    return last
                if before in setting:
                    return seeds
        return seeds

    def seeds_of(self, library: str) -> list[Occurrence]:
        """Return the seeds of a library's own generator."""
        return self._seeded.get(library, [])

    @cached_property
    def _seeded(self) -> dict[str, list[Occurrence]]:
        """The seeds of the libraries' own generators."""
        found: dict[str, list[Occurrence]] = {}
        for site in self._script.sites_named(*sorted(_SETTING), "RunConfig"):
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            if site.name == "RunConfig":
                # An Estimator receives the seed of its graphs as an argument.
                given = argument(site.node, 1, "tf_random_seed")
                libraries = {TENSORFLOW for name in names if name.startswith("tensorflow.")}
            else:
                given = argument(site.node, 0, "seed", "a")
                libraries = {each for name in names for each in _GLOBAL.get(name, ())}
            for library in libraries if given is not None else ():
                assert given is not None
                found.setdefault(library, []).append(of_call(site).part(given))
                self._setting[given] = site
        return found

    def library(self, site: Site) -> str:
        """Return the library whose generator a call uses; "" if there is none."""
        for name in self._names.full_names(site.node.func, site.scope, site.statement):
            for start, library in _DRAWING_BY.items():
                if name.startswith(start):
                    return library
        if site.name in _READERS:
            return _READERS[site.name]
        if site.name == "next_batch" or self.generator(site) is not None:
            return NUMPY
        return self.frame(site)

    def is_of_frame(self, site: Site) -> bool:
        """Return whether a call samples rows of a table, or of a part of one."""
        return bool(self.frame(site))

    def frame(self, site: Site) -> str:
        """Return the library by whose generator a call samples rows of a table; "" if it does not."""
        if site.name != "sample" or not isinstance(site.node.func, ast.Attribute):
            return ""
        start = of_call(site).part(site.node.func.value)
        for each in reachable([start], self._whole_of, lambda each: (each.node, each.scope)):
            for value in self._names.values(*each[:3]):
                cls = value.cls if isinstance(value, Instance) else ""
                library = next((_FRAMES[each] for each in _FRAMES if cls.startswith(each)), "")
                if library:
                    return library
        stated = (_PARTS[word.arg] for word in site.node.keywords if word.arg in _PARTS)
        return next(stated, NUMPY if self._is_of_group(site) else "")

    def _is_of_group(self, site: Site) -> bool:
        """Return whether a function that pandas applies to groups of rows makes a call: ``lambda g:
        g.sample(9)``.
        """
        named = root_name(site.node.func)
        if named is None:
            return False
        function = site.scope.function()
        if function is not None and function in self._applied:
            return any(each.kind == "parameter" for each in function.bindings.get(named.id, ()))
        for above, below in pairwise(expression_path(site.statement.node, site.node)):
            if isinstance(above, ast.Call) and isinstance(below, ast.Lambda):
                given = {each.arg for each in below.args.args}
                return last_name(above.func) in APPLYING and named.id in given
        return False

    @cached_property
    def _applied(self) -> dict[Scope, Site]:
        """The functions of the script that tables and datasets apply."""
        return functions_handed_to(self._script, *APPLYING)

    def _whole_of(self, at: Occurrence) -> Iterable[Occurrence]:
        """Return what an expression may be a part of, or is the result of a method of."""
        node = at.node
        if isinstance(node, ast.Subscript):
            return (at.part(node.value),)
        if isinstance(node, ast.Call):
            return (at.part(node.func.value),) if isinstance(node.func, ast.Attribute) else ()
        found = tuple(self._sources(at))
        return found or ((at.part(node.value),) if isinstance(node, ast.Attribute) else ())

    @cached_property
    def generators(self) -> dict[ast.Call, Site]:
        """The calls that make generators of random numbers."""
        names = {name.rpartition(".")[2] for name in _GENERATORS}
        return {
            site.node: site
            for site in self._script.sites_named(*sorted(names))
            if self._names.calls(site, *_GENERATORS)
        }

    def generator(self, site: Site) -> Site | None:
        """Return the call that created the generator of a method call."""
        if not isinstance(site.node.func, ast.Attribute):
            return None
        for value in self._names.site_values(site.node.func.value, site):
            owner = value.owner if isinstance(value, Member) else value
            if isinstance(owner, Instance) and owner.cls in _GENERATORS:
                return self._script.site_of(owner.node)
        return None

    def given(self, site: Site) -> Occurrence | None:
        """Return the seed argument of a call."""
        made = self._initializer(site)
        if made is not None:
            seed = argument(made.node, 0 if _plain(made.cls) in _SEED_FIRST else None, "seed")
            return of_call(self._script.site_of(made.node)).part(seed) if seed is not None else None
        given = argument(site.node, None, "seed", "random_state", "shuffle_seed")
        if given is None and site.name == "shuffle" and isinstance(site.node.func, ast.Attribute):
            values = self._names.site_values(site.node.func.value, site)
            if not any(isinstance(each, Library) for each in values) and self.generator(site) is None:
                given = argument(site.node, 1, "seed")
        return of_call(site).part(given) if given is not None else None


def _plain(name: str) -> str:
    """The name of an initializer in one spelling: ``tf.zeros_initializer``, ``Zeros``."""
    return name.rpartition(".")[2].lower().replace("_", "").removesuffix("initializer")


def _is_off(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and not node.value and node.value is not None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_unknown(full_name: str) -> bool:
    """Return whether no entry describes any member of a library."""
    package = full_name.partition(".")[0]
    return not entries.stated(package) and package not in stdlib_module_names


def _is_untold(full_name: str) -> bool:
    """Return whether no entry describes a member of a library that draws by no generator known here."""
    package = full_name.partition(".")[0]
    is_known = package in (TENSORFLOW, NUMPY) or package in stdlib_module_names
    return not is_known and entries.entry(full_name) is None
