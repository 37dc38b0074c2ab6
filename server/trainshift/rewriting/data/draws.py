"""Draws: which data of a script are chosen or ordered at random, and so differently on each rank."""

from __future__ import annotations

import ast

from trainshift.core.lazy import cached_property
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.program import Program
from trainshift.core.text.facts import Site, arguments, last_name
from trainshift.core.training.alike import Alike
from trainshift.core.training.horovod import Horovod

# What is followed back to where its value comes from, through as many expressions at most.
_FOLLOWED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_MOST = 2000
# What orders or chooses elements, by the argument that fixes it.
_CHOOSING = {
    "train_test_split": "random_state", "KFold": "random_state", "StratifiedKFold": "random_state",
    "ShuffleSplit": "random_state", "StratifiedShuffleSplit": "random_state", "permutation": "",
    "shuffle": "random_state", "choice": "", "sample": "random_state", "permuted": "",
}  # fmt: skip
_LIBRARIES = ("numpy.random", "random", "sklearn", "tensorflow.random")
_IN_PLACE = ("numpy.random.shuffle", "random.shuffle")
_SEEDING = {
    "numpy.random": ("numpy.random.seed", "tensorflow.keras.utils.set_random_seed"),
    "random": ("random.seed", "tensorflow.keras.utils.set_random_seed"),
    "sklearn": ("numpy.random.seed", "tensorflow.keras.utils.set_random_seed"),
    "tensorflow.random": ("tensorflow.random.set_seed", "tensorflow.keras.utils.set_random_seed"),
}


class Draws:
    """What one program draws."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def is_fixed(self, at: Occurrence) -> bool:
        """Whether a seed is one number on all ranks, and none that is drawn anew."""
        return not (isinstance(at.node, ast.Constant) and at.node.value is None) and self._program.fact(
            Alike
        ).is_same(at)

    @cached_property
    def seeds_by_rank(self) -> bool:
        """Whether TensorFlow's own seed, by which each other one is changed, is another on each rank."""
        horovod = self._program.fact(Horovod)
        return any(
            horovod.pinned(each, site.scope, site.statement)
            for site in self._script.sites_named("set_seed", "set_random_seed")
            for each in arguments(site.node)
        )

    def unordered(self, site: Site) -> str:
        """Why what a call is given is in another order on each rank."""
        return next(filter(None, (self.unordered_at(each, site) for each in arguments(site.node))), "")

    def unordered_at(self, node: ast.expr, site: Site) -> str:
        """Why an argument of a call is in another order on each rank."""
        return self.of(Occurrence(node, site.scope, site.statement))

    def of(self, at: Occurrence) -> str:
        """Why what an expression stands for is in another order on each rank; empty if it is not."""
        parts = self._behind(at)
        for part in parts:
            name = self._drawn_by(self._script.site_of(part)) if isinstance(part, ast.Call) else ""
            if name:
                return f"`{name}` orders the data differently on each rank; give it a seed"
        read = {last_name(part) for part in parts}
        for site in self._shuffled_in_place:
            name = last_name(site.node.args[0]) if site.node.args else ""
            if name and name in read:
                return f"`shuffle({name})` orders the data differently on each rank; set a seed"
        return ""

    def _behind(self, at: Occurrence) -> list[ast.expr]:
        """All expressions that an expression is made of, through names and the script's functions."""
        seen: dict[int, ast.expr] = {}
        waiting = [at]
        while waiting and len(seen) < _MOST:
            each = waiting.pop()
            if id(each.node) in seen or isinstance(each.node, ast.Lambda):
                continue
            seen[id(each.node)] = each.node
            waiting += [
                each.part(part) for part in ast.iter_child_nodes(each.node) if isinstance(part, ast.expr)
            ]
            step = self._names.steps_back(each) if isinstance(each.node, _FOLLOWED) else None
            if step is not None and not self._names.member_of_library(each.node):
                waiting += [*step.sources, *step.within]
        return list(seen.values())

    def _drawn_by(self, site: Site) -> str:
        """What draws an order or a choice in a call, if nothing fixes it."""
        if site.name not in _CHOOSING:
            return ""
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        for name in sorted(names):
            library = next((each for each in _LIBRARIES if name.startswith(f"{each}.")), None)
            if library is not None and not self._is_fixed_draw(site, library):
                return site.name
        return ""

    def _is_fixed_draw(self, site: Site, library: str) -> bool:
        word = _CHOOSING[site.name]
        given = next((each.value for each in site.node.keywords if word and each.arg == word), None)
        if given is not None and self.is_fixed(Occurrence(given, site.scope, site.statement)):
            return True
        shuffles = next((each.value for each in site.node.keywords if each.arg == "shuffle"), None)
        if isinstance(shuffles, ast.Constant) and not shuffles.value:
            return True
        if site.name in ("KFold", "StratifiedKFold") and shuffles is None:
            return True
        return self._is_seeded(library)

    def _is_seeded(self, library: str) -> bool:
        """Whether the script fixes what a library draws by one seed for all ranks."""
        wanted = _SEEDING[library]
        sites = self._script.sites_named("seed", "set_seed", "set_random_seed")
        return any(
            self._names.calls(site, *wanted)
            and site.node.args
            and self.is_fixed(Occurrence(site.node.args[0], site.scope, site.statement))
            for site in sites
        )

    @cached_property
    def _shuffled_in_place(self) -> list[Site]:
        found = []
        for site in self._script.sites_named("shuffle"):
            for name in self._names.full_names(site.node.func, site.scope, site.statement):
                if name in _IN_PLACE and not self._is_seeded(name.rpartition(".")[0]):
                    found.append(site)
        return found
