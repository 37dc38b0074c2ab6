"""Horizons: the numbers of steps in a script's schedules (spec.md 8).

A TensorFlow schedule gets them as arguments.  A schedule of the script is called with a step, which must then
be the step of the original.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Instance, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, arguments, hides_arguments
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.steps_taken.step_division import Pace

# The arguments of schedules that count steps: numbers, and steps to compare with.
_NUMBERS = ("decay_steps", "first_decay_steps", "warmup_steps")
_COMPARED = ("boundaries",)
_COUNTING = (Role.SCHEDULE, Role.OPTIMIZER, Role.OPTIMIZER_FACTORY, Role.COUNTS)


class Horizon(Struct, frozen=True, eq=False):
    """A step count of a TensorFlow schedule.

    With `whole`, it must be a whole number; with `each`, it is a list of such numbers.
    """

    site: Site
    node: ast.expr
    name: str
    whole: bool = False
    each: bool = False


class OwnSchedule(Struct, frozen=True, eq=False):
    """A schedule class of the script: the parameter that is the step, and the first statement that reads it.

    `made` are the calls that create its objects. `reason` is the reason why the step must stay unchanged;
    empty if it need not.
    """

    name: str
    step: str
    first: Statement
    made: frozenset[ast.Call]
    reason: str = ""


class Horizons:
    """The horizons of one program that do not match a rank's share of the steps yet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._pace = program.fact(Pace)

    @cached_property
    def given(self) -> list[Horizon]:
        """The step counts of TensorFlow's schedules, except those that a schedule of the script calls."""
        return [
            each
            for each in self._given
            if each.site.node not in self._asked
            and not self._inside(each.site)
            and not self._pace.agrees(each.node, each.site.scope, each.site.statement)
        ]

    @cached_property
    def hidden(self) -> list[Site]:
        """The TensorFlow schedules whose arguments cannot be resolved."""
        return [
            site
            for site, words in self._schedules
            if hides_arguments(site.node)
            and not any(argument(site.node, words[word], word) is not None for word in words)
        ]

    @cached_property
    def own(self) -> list[OwnSchedule]:
        """The schedule classes of the script that are called with a step of a rank."""
        found = []
        for cls in self._classes:
            call = self._names.function_named(cls, "__call__")
            body = call.statement.branches.get("body") if call is not None and call.statement else None
            if call is None or call.parent is not cls or not body:
                continue
            assert isinstance(call.node, ast.FunctionDef | ast.AsyncFunctionDef)
            taken = [*call.node.args.posonlyargs, *call.node.args.args][1:2]
            first = body[1] if _is_text(body[0]) and len(body) > 1 else body[0]
            made = [site for site in self._made(cls) if self._inside(site) is not cls]
            asked = [site for site in made if site.node in self._asked or self._inside(site)]
            inherited = self._asked_by_heirs(cls)
            if not taken or self._is_moved(taken[0].arg, call) or ((asked or inherited) and asked == made):
                continue
            reason = self._counted_already(cls)
            if asked or inherited:
                reason = "another schedule uses it too"
            calls = frozenset(site.node for site in made)
            found.append(OwnSchedule(cls.name, taken[0].arg, first, calls, reason))
        return found

    @cached_property
    def _given(self) -> list[Horizon]:
        found = []
        for site, words in self._schedules:
            for word in words:
                node = argument(site.node, words[word], word)
                if node is None or (isinstance(node, ast.Constant) and not node.value):
                    continue
                elements = node.elts if isinstance(node, ast.List | ast.Tuple) else []
                if word not in _COMPARED:
                    found.append(Horizon(site, node, word))
                elif elements and not any(isinstance(each, ast.Starred) for each in elements):
                    found += [Horizon(site, each, word, whole=True) for each in elements]
                elif not elements:
                    found.append(Horizon(site, node, word, whole=True, each=True))
        return found

    @cached_property
    def _schedules(self) -> list[tuple[Site, dict[str, int | None]]]:
        """The calls that create a TensorFlow schedule, and the positions of its step counts."""
        libraries = self._program.fact(Libraries)
        found: list[tuple[Site, dict[str, int | None]]] = []
        for site, entry in libraries.sites(*_COUNTING):
            signature = api.read_signature(entry.signature)
            if signature is not None:
                found.append((site, {word: signature.position(word) for word in entry.listed("steps")}))
        stated = {site.node for site, _ in found}
        for site in self._script.sites_calling(api.last_names(*api.SCHEDULES)):
            if site.node in stated:
                continue
            for name in sorted(self._names.full_names(site.node.func, site.scope, site.statement)):
                signature = api.constructor(name) or api.function(name)
                if signature is not None and api.rate_parameters(name):
                    known = {each.name for each in signature.parameters}
                    words = [word for word in (*_NUMBERS, *_COMPARED) if word in known]
                    found.append((site, {word: signature.position(word) for word in words}))
                    break
        return found

    @cached_property
    def _classes(self) -> list[Scope]:
        """The classes of the script that are schedules."""
        return [
            scope
            for scope in self._script.scopes
            if scope.kind == "class" and self._names.descends(scope, *api.SCHEDULE)
        ]

    def _made(self, cls: Scope | None = None) -> Iterator[Site]:
        """Yield the calls that create an object of one of the classes, or of the given one."""
        wanted = self._classes if cls is None else [cls]
        for site in self._script.sites_calling({each.name for each in wanted}):
            if any(isinstance(value, Class) and value.scope in wanted for value in self._names.callee(site)):
                yield site

    @cached_property
    def _asked(self) -> set[ast.Call]:
        """The schedules that get passed to a schedule of the script."""
        given = [(each, site) for site in self._made() for each in arguments(site.node)]
        values = [value for each, site in given for value in self._names.site_values(each, site)]
        return {value.node for value in values if isinstance(value, Instance | UserInstance) and value.node}

    def _asked_by_heirs(self, cls: Scope) -> bool:
        """Return whether a subclass calls the schedule: ``super().__call__(step)``."""
        return any(
            (owner := function.owner()) in self._classes
            and owner is not cls
            and cls in self._names.ancestry(owner)
            for site in self._script.sites_named("__call__")
            if (function := site.scope.function()) is not None
        )

    def _inside(self, site: Site) -> Scope | None:
        """The schedule class of the script around a call."""
        scope: Scope | None = site.scope
        while scope is not None and scope not in self._classes:
            scope = scope.parent
        return scope

    def _is_moved(self, step: str, call: Scope) -> bool:
        """Return whether the script or a conversion already adapts the step to the ranks."""
        return any(
            binding.value is not None and self._horovod.divided(binding.value, call, binding.statement)
            for binding in call.bindings.get(step, ())
            if binding.statement is not call.statement
        )

    def _counted_already(self, cls: Scope) -> str:
        """The reason why a class's step must stay: some objects already get the steps of one rank."""
        for site in self._made(cls):
            told = [(each, site) for each in arguments(site.node)]
            told += [(each.node, each.site) for each in self._given if each.site.node in self._asked]
            for node, at in told:
                if self._pace.counts_share(node, at.scope, at.statement):
                    return f"{self._script.text(node, at)} is the number of steps of one rank already"
        return ""


def _is_text(statement: Statement) -> bool:
    """Return whether a statement is a docstring."""
    value = getattr(statement.node, "value", None)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
