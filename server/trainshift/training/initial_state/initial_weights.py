"""Initial weights: check that all ranks start training from the same weights."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    alternatives,
    argument,
    arguments,
    dotted,
    last_name,
)
from trainshift.training.execution.executions import run_apart
from trainshift.training.execution.graph_slice import is_reached
from trainshift.training.horovod.defects import Flaw, at
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.loops.loop_kinds import GRAPH_PATTERNS, Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import VARIABLE_LISTS, Step, Steps

_OF_SOME = "broadcast_variables"
_OF_ALL = "broadcast_global_variables"
_OF_OBJECTS = ("broadcast_object", "broadcast_object_fn")
_BROADCASTING = (
    _OF_SOME,
    _OF_ALL,
    *_OF_OBJECTS,
    "BroadcastGlobalVariablesCallback",
    "BroadcastGlobalVariablesHook",
)
_BEGUN_BY_CALLS = frozenset({Pattern.OPTIMIZER, *GRAPH_PATTERNS})
# Words that do not distinguish objects.
_COMMON = frozenset({"self", "cls", *VARIABLE_LISTS})


class Beginning:
    """The broadcasts that give all ranks of one program the same initial variables."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._above: dict[Scope | None, set[Scope | None]] = {}

    def flaws(self) -> Iterator[Flaw]:
        """Yield the loops whose ranks start from different weights."""
        if self._horovod.is_elastic:
            return
        reason = "nothing gives all ranks the same weights before they train"
        for loop in self._program.fact(Loops).own:
            if loop.pattern is Pattern.GRAD_TAPE:
                yield from (Flaw(reason, site) for site in loop.sites if not self._is_started(site))
            elif loop.pattern in _BEGUN_BY_CALLS and not any(map(self._is_begun, loop.sites)):
                yield Flaw(reason, loop.sites[0])

    @property
    def broadcasts_all(self) -> bool:
        """Return whether the program runs a broadcast of all variables."""
        found = self._horovod.calls("broadcast_global_variables")
        return bool(found) and self._begun_sessions != frozenset()

    def _is_started(self, site: Site) -> bool:
        """Return whether a broadcast near a step of the script names its variables or its optimizer."""
        trained = self._trained.get(site, frozenset())
        return any(
            (not named or not trained or named & trained) and self._is_near(each, site)
            for each, named in self._broadcasts.items()
        )

    def _is_begun(self, site: Site) -> bool:
        """Return whether a training call gets a callback that broadcasts, or a broadcast near it names its
        model.
        """
        if not isinstance(site.node.func, ast.Attribute):
            return bool(self._broadcasting)
        if site.name == "run":
            return self._is_begun_session(site, site.node.func)
        if self._is_handed_broadcast(site):
            return True
        trained, above = _words(site.node.func.value), self._functions_above(site.scope.function())
        return self._was_begun(site) or any(
            (not named or named & trained) and each.scope.function() in above
            for each, named in self._broadcasts.items()
        )

    def _was_begun(self, fit: Site) -> bool:
        """Return whether an earlier `fit` of the same model, which every run reaches, has a broadcasting
        callback.
        """
        assert isinstance(fit.node.func, ast.Attribute)
        model = fit.node.func.value
        made = self._names.site_values(model, fit)
        before: set[Statement] = set()
        for each in fit.statement.path():
            if each.scope.function() is fit.scope.function():
                block, index = self._script.siblings(each)
                before.update(block[:index])
        return any(
            other.statement in before
            and isinstance(other.node.func, ast.Attribute)
            and dotted(other.node.func.value) == dotted(model)
            and self._names.site_values(other.node.func.value, other) == made
            and self._is_handed_broadcast(other)
            for loop in self._program.fact(Loops).own
            for other in loop.sites[:1]
        )

    def _is_begun_session(self, site: Site, run: ast.Attribute) -> bool:
        """Return whether each session that a call may run in has run a broadcast, or has a hook that does."""
        sessions = [each for each in self._names.site_values(run.value, site) if isinstance(each, Instance)]
        if not sessions or self._begun_sessions is None:
            return bool(self._broadcasting)
        return all(
            each in self._begun_sessions or self._is_handed_broadcast(self._script.site_of(each.node))
            for each in sessions
        )

    @cached_property
    def _begun_sessions(self) -> frozenset[Value] | None:
        """The sessions that run a broadcast; None if one runs in the default session."""
        found: frozenset[Value] = frozenset()
        for site in self._script.sites_named("run"):
            if isinstance(site.node.func, ast.Attribute) and self._is_handed_broadcast(site):
                session: ast.expr | None = site.node.func.value
                if self._leads(site.node.func.value, site):
                    session = argument(site.node, 1, "session")
                if session is None:
                    return None
                found |= self._names.site_values(session, site)
        return found

    def _is_handed_broadcast(self, site: Site) -> bool:
        """Return whether an argument or the receiver of a call leads to a broadcast."""
        called = site.node.func
        parts = [*arguments(site.node), *([called.value] if isinstance(called, ast.Attribute) else [])]
        return any(self._leads(each, site) for each in parts)

    def _leads(self, node: ast.expr, site: Site) -> bool:
        """Return whether an expression's value may be a broadcasting callback or hook."""
        return is_reached(self._script, self._broadcasting, node, site.scope, site.statement)

    def _is_near(self, broadcast: Site, site: Site) -> bool:
        """Return whether one function, or one of its callers, reaches both calls."""
        if run_apart(broadcast.statement, site.statement):
            return False
        one, other = (self._functions_above(each.scope.function()) for each in (broadcast, site))
        inside = broadcast.scope.function()
        callers = self._names.callers(inside)[0] if inside is not None else ()
        return site.scope.function() in one or any(
            each.scope.function() in other for each in (broadcast, *callers)
        )

    def _functions_above(self, function: Scope | None) -> set[Scope | None]:
        """A function, and its direct and indirect callers."""
        if function in self._above:
            return self._above[function]
        found = self._above[function] = {function}
        waiting = [function]
        for each in waiting:
            for site in self._names.callers(each)[0] if each is not None else ():
                above = site.scope.function()
                if above not in found:
                    found.add(above)
                    waiting.append(above)
        return found

    @cached_property
    def _broadcasting(self) -> dict[ast.Call, Site]:
        own = self._program.fact(OwnHorovod).broadcasts
        return {site.node: site for site in (*self._horovod.calls(*_BROADCASTING), *own)}

    @cached_property
    def _broadcasts(self) -> dict[Site, frozenset[str]]:
        """The calls that broadcast variables, with the names of the variables; no names for all variables."""
        found: dict[Site, frozenset[str]] = {}
        for site in self._broadcasting.values():
            if self._horovod.is_call(site, _OF_SOME):
                given = site.node.args[:1] or [word.value for word in site.node.keywords[:1]]
                found[site] = frozenset().union(*(self._words_of(at(each, site)) for each in given))
            elif self._horovod.is_call(site, *_OF_OBJECTS):
                if self._horovod.sets_weights(site):
                    found[site] = frozenset()
            elif site.name.startswith("broadcast") or self._horovod.is_call(site, _OF_ALL):
                found[site] = frozenset()
        return found

    def _words_of(self, of: Occurrence) -> frozenset[str]:
        """The words of variables, through names, pairs with gradients, and lists."""

        def key(each: Occurrence) -> tuple[int, int]:
            return id(each.node), id(each.scope)

        def is_apart(each: Occurrence) -> bool:
            # The way in which an object is made does not distinguish it.
            return each is of or not (isinstance(each.node, ast.Call) and self._makes(each))

        named = reachable([of], lambda each: filter(is_apart, self._naming(each)), key)
        return frozenset[str]().union(*(_words(each.node) for each in named))

    def _naming(self, of: Occurrence) -> Iterable[Occurrence]:
        """Yield the expressions through which the variables of an expression have other names."""
        match of.node:
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return [of.part(each.iter) for each in generators]
            case ast.Call(func=func, args=[_, second]) if last_name(func) == "zip":
                return [of.part(second)]
            case ast.Call(func=func, args=[first, *_]) if last_name(func) in ("list", "tuple"):
                return [of.part(first)]
            case ast.Attribute(value=value, attr=attribute) if attribute in VARIABLE_LISTS:
                return [of.part(value)]
            case ast.Call(func=ast.Name() | ast.Attribute() as func):
                return [of.part(func)]
        step = self._names.steps_back(of) if isinstance(of.node, ast.Name) or alternatives(of.node) else None
        return step.sources if step is not None else ()

    def _makes(self, of: Occurrence) -> bool:
        """Return whether a call makes an object, a library's or one of the script's own."""
        values = self._names.values(*of[:3])
        return any(
            isinstance(each, Instance | UserInstance) and getattr(each, "node", None) is of.node
            for each in values
        )

    @cached_property
    def _trained(self) -> dict[Site, frozenset[str]]:
        """The names of the variables that each step trains; those of its optimizer and pairs if its models
        are unknown.
        """
        return {
            step.site: frozenset().union(
                *(self._words_of(at(each, step.site)) for each in step.models or _unseen(step))
            )
            for step in self._program.fact(Steps).steps
        }


def _unseen(step: Step) -> Iterator[ast.expr]:
    """Yield the expressions that hint at a step's variables if its models are unknown: its optimizer and its
    pairs.
    """
    yield step.receiver
    if step.pairs is not None:
        yield step.pairs


def _words(node: ast.expr) -> frozenset[str]:
    """The names and attributes in an expression that identify its object."""
    parts = (last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))
    return frozenset(parts) - _COMMON
