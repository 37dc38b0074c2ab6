"""Draw remedies: ways to make ranks draw alike that would otherwise order or choose data differently.

Shares by position are disjoint only if all ranks have one order.  Most draws can be made alike: by a seed, or
by sending the result of rank 0 to the others.  `training/uniformity/draws.py` knows the calls that draw.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import divergence
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    argument,
    arguments,
    children,
    hides_arguments,
    is_alone,
    last_name,
)
from trainshift.python.values.call_chains import calls_leading_to
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.uniformity.draws import APPLYING, POLARS
from trainshift.training.uniformity.environments import Worlds
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.value_flow import ValueFlow

# The maximal number of expressions through which a value is followed back.
_FOLLOWED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
# Functions that order or choose elements.
_CHOOSING = divergence.BY_STATE | {"choice", "permutation", "permuted", "sample", "shuffle"}
# Functions that return a number, or a sequence of numbers.
_COUNTING = frozenset({"arange", "int", "len", "list", "range"})
_COUNTS = (ast.Attribute, ast.BinOp, ast.Constant, ast.Subscript)
_NUMBERS = frozenset({"integers", "rand", "randint", "randn", "random", "random_sample", "uniform", "normal"})
# Functions whose result does not depend on the order of their argument.
_UNORDERED = frozenset({"builtins.len", "builtins.max", "builtins.min", "builtins.sorted", "builtins.sum"})
_BY_NUMPY = "numpy.random"
_SENT = frozenset({"choice", "permutation", "sample"})
_DRAWING_NUMBERS = ("numpy.random.choice", "numpy.random.permutation", "random.sample")
_OF_LISTS = "random.shuffle"
_IN_PLACE = ("numpy.random.shuffle", _OF_LISTS)


class Remedy(Enum):
    """The way to make a draw the same on all ranks.

    SEED and STATE: an argument `seed`, or `random_state`.  SENT: rank 0 sends its result to the others.
    SENT_AFTER: the same, on a separate line, because the data are shuffled in place. GENERATOR: a separate
    generator, with which `random.shuffle` shuffles a list.
    """

    SEED = "seed"
    STATE = "random_state"
    SENT = "sent"
    SENT_AFTER = "sent after"
    GENERATOR = "generator"

    @property
    def is_sent(self) -> bool:
        """Return whether rank 0 draws for all, so that all ranks have to come there."""
        return self in (Remedy.SENT, Remedy.SENT_AFTER)


class Draw(Struct, frozen=True):
    """A call that draws differently on each rank, with its remedy; None if there is none."""

    site: Site
    remedy: Remedy | None


class Remedies:
    """The draws of one program that differ between ranks, with the remedy of each."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._draws = program.fact(Uniformity).draws
        self._steps: dict[tuple[ast.expr, Scope], tuple[Occurrence, ...]] = {}

    def is_repeated(self, site: Site) -> bool:
        """Return whether a loop around a call, or around a call that leads to it, repeats it."""
        repeats = self._program.fact(ControlFlow).repeats
        return any(each.deferred or repeats(each.statement) for each in calls_leading_to(self._names, site))

    @cached_property
    def seeds_by_rank(self) -> bool:
        """Return whether TensorFlow's global seed, which modifies all others, differs between ranks."""
        on_rank = self._program.fact(Uniformity).on_rank
        return any(
            on_rank(of_call(site).part(each))
            for site in self._script.sites_named("set_seed", "set_random_seed")
            for each in arguments(site.node)
        )

    @cached_property
    def any_free(self) -> bool:
        """Return whether a script draws an order without a seed, or numbers that may choose data."""
        return any(self.is_free(each) or self._draws_numbers(each) for each in self._script.sites) or bool(
            self._shuffled_in_place
        )

    def behind(self, at: Occurrence) -> list[Draw]:
        """The draws that may make an expression, or its order, differ between ranks."""
        parts = self._parts_behind(at)
        calls = (self._script.site_of(part) for part in parts if isinstance(part, ast.Call))
        found = [Draw(site, self.remedy(site)) for site in calls if self.is_free(site)]
        found += self._chosen_by_chance(at, parts)
        found += (Draw(site, None) for site in self._program.fact(Worlds).asked_by(at))
        return [*found, *self.shuffled({last_name(part) for part in parts})]

    def shuffled(self, names: set[str]) -> Iterator[Draw]:
        """Yield the draws that shuffle objects with one of these names in place."""
        for site in self._shuffled_in_place:
            name = last_name(site.node.args[0]) if site.node.args else ""
            if name and name in names:
                yield Draw(site, self._remedy_in_place(site))

    def among(self, sites: Iterable[Site]) -> list[Draw]:
        """The unseeded draws, of an order or of numbers, among some calls."""
        found = []
        for site in sites:
            if site in self._shuffled_in_place:
                found.append(Draw(site, self._remedy_in_place(site)))
            elif self.is_free(site):
                found.append(Draw(site, self.remedy(site)))
            elif self._draws_numbers(site):
                found.append(Draw(site, None))
        return found

    def choosing(self, at: Occurrence) -> list[Site]:
        """The calls without a seed that draw the numbers in an expression."""
        calls = (self._script.site_of(part) for part in self._parts_behind(at) if isinstance(part, ast.Call))
        return [each for each in calls if self.is_free(each) or self._draws_numbers(each)]

    def _chosen_by_chance(self, at: Occurrence, parts: list[ast.expr]) -> Iterator[Draw]:
        """The draws that select elements by a mask, whose number then differs between ranks."""
        for part in parts:
            if not isinstance(part, ast.Subscript) or isinstance(part.slice, ast.Constant | ast.Slice):
                continue
            mask = self._parts_behind(at.part(part.slice))
            if any(isinstance(each, ast.Compare) for each in mask):
                calls = (self._script.site_of(each) for each in mask if isinstance(each, ast.Call))
                yield from (Draw(site, self._sent_mask(site)) for site in calls if self._draws_numbers(site))

    def _draws_numbers(self, site: Site) -> bool:
        return self._script.called_name(site) in _NUMBERS and self._is_own(site)

    def _is_own(self, site: Site) -> bool:
        """Return whether a call draws differently on each rank, as far as is known."""
        draws = self._draws.shuffles(site) or self._draws.is_draw(site)
        return draws and bool(self._draws.library(site)) and not self._draws.of(site).is_uniform

    def _parts_behind(self, at: Occurrence) -> list[ast.expr]:
        """All sources of an expression, through names and the script's functions."""
        starts = [] if self._hides_draws(at) else [at]
        return [each.node for each in reachable(starts, self._behind, lambda each: id(each.node))]

    def _behind(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """The sources of an expression that may draw, one step back; kept, as many slices share them."""
        key = at.node, at.scope
        known = self._steps.get(key)
        if known is None:
            known = tuple(part for part in self._sources(at) if not self._hides_draws(part))
            if self._names.memo.is_idle:
                self._steps[key] = known
        return known

    def _sources(self, at: Occurrence) -> list[Occurrence]:
        inside = [at.node, *getattr(at.node, "generators", ())]
        parts = [part for node in inside for part in children(node) if isinstance(part, ast.expr)]
        parts += [word.value for word in at.node.keywords] if isinstance(at.node, ast.Call) else []
        found = [*map(at.part, parts)]
        step = self._names.steps_back(at) if isinstance(at.node, _FOLLOWED) else None
        if step is not None and not self._names.member_of_library(at.node):
            found += [*step.sources, *step.within]
        if isinstance(at.node, ast.Call) and last_name(at.node.func) in APPLYING:
            flow = self._program.fact(ValueFlow)
            found += [one for part in at.node.args for one in flow.returned(at.part(part))]
        return found

    def _hides_draws(self, at: Occurrence) -> bool:
        return isinstance(at.node, ast.Lambda) or self._is_sorted(at)

    def is_free(self, site: Site) -> bool:
        """Return whether a call draws an order or a choice that nothing fixes."""
        if site.name == "set" and self._names.calls(site, "builtins.set"):
            return True
        return self._script.called_name(site) in _CHOOSING and self._is_own(site)

    def _is_sorted(self, at: Occurrence) -> bool:
        """Return whether an expression does not depend on the order of its arguments."""
        node = at.node
        return isinstance(node, ast.Call) and not _UNORDERED.isdisjoint(
            self._names.full_names(node.func, at.scope, at.statement)
        )

    def remedy(self, site: Site) -> Remedy | None:
        """Return the way to make a call draw alike on all ranks; None if there is none."""
        if site.in_fstring or site.deferred:
            return None
        is_stated = self._draws.is_by_state(site) or self._names.calls(site, "sklearn.utils.shuffle")
        if is_stated or self._draws.is_of_frame(site):
            remedy = Remedy.SEED if self._draws.frame(site) == POLARS else Remedy.STATE
            hidden = hides_arguments(site.node) and any(word.arg is None for word in site.node.keywords)
            given = any(word.arg == remedy.value for word in site.node.keywords)
            return None if hidden or given or self.is_repeated(site) else remedy
        if self._script.called_name(site) not in _SENT or not site.node.args:
            return None
        drawn = self._names.calls(site, *_DRAWING_NUMBERS) or self._draws.generator(site) is not None
        # A batch drawn in each iteration differs between the ranks.
        is_once = site.name == "permutation" or not self.is_repeated(site)
        is_sent = drawn and is_once and self._is_index(site.node.args[0], site)
        return Remedy.SENT if is_sent and self._can_send(site) else None

    def _sent_mask(self, site: Site) -> Remedy | None:
        """Return whether rank 0 can send the numbers that choose rows: one for each row, drawn once."""
        if site.in_fstring or site.deferred or self.is_repeated(site) or not self._can_send(site):
            return None
        by_numpy = self._names.calls(site, *(f"{_BY_NUMPY}.{name}" for name in _NUMBERS))
        if not by_numpy and not self._draws.generator(site) is not None:
            return None
        sizes = [argument(site.node, None, "size")]
        is_size = site.name in ("rand", "randn", "random", "random_sample")
        sizes += site.node.args if is_size else site.node.args[2:]
        given = [each for each in sizes if each is not None]
        if not given:
            return Remedy.SENT  # It is a single number.
        is_row = len(given) == 1 and not isinstance(given[0], ast.Tuple)
        return Remedy.SENT if is_row and self._is_index(given[0], site) else None

    def _is_index(self, node: ast.expr, site: Site) -> bool:
        """Return whether indices are shuffled, and not the data themselves, which are too large to send."""
        step = self._names.steps_back(Occurrence(node, site.scope, site.statement))
        sources = [each.node for each in step.sources] if step is not None and not step.unseen else [node]
        return all(
            last_name(each.func) in _COUNTING if isinstance(each, ast.Call) else isinstance(each, _COUNTS)
            for each in sources
        )

    def _can_send(self, site: Site) -> bool:
        """Return whether Horovod can send an object at a call: not in graphs, nor on one rank alone."""
        in_graph = self._program.fact(Executions).is_in_graph(site.scope)
        return not in_graph and not self._program.fact(Horovod).on_root(site.statement)

    def _remedy_in_place(self, site: Site) -> Remedy | None:
        given = site.node.args[0]
        alone = is_alone(site)
        if not alone or not isinstance(given, ast.Name) or not self._is_index(given, site):
            by_module = isinstance(site.node.func, ast.Attribute) and self._names.calls(site, _OF_LISTS)
            return Remedy.GENERATOR if alone and by_module and not self.is_repeated(site) else None
        own = self._names.lookup(given.id, site.scope, site.statement)[0]
        return Remedy.SENT_AFTER if own in (None, site.scope) and self._can_send(site) else None

    @cached_property
    def _shuffled_in_place(self) -> list[Site]:
        found = []
        for site in self._script.sites_named("shuffle"):
            for name in self._names.full_names(site.node.func, site.scope, site.statement):
                if name in _IN_PLACE and self._is_own(site):
                    found.append(site)
        return found
