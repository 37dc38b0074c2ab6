"""Agents: objects of a library (TF-Agents) that compute gradients in `train`, and apply them with given
optimizers.
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
from trainshift.python.names.values import Instance, Member, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, dotted

TRAIN = "train"
_INITIALIZE = "initialize"
_GIVEN = "optimizer"
_STEPS = frozenset({TRAIN, "_train"})


class Agent(Struct, frozen=True, eq=False):
    """A call that creates an agent; `optimizers` are its optimizer arguments."""

    site: Site
    optimizers: tuple[ast.expr, ...]


class Beginning(Struct, frozen=True, eq=False):
    """The statement after which an agent `name` has all its variables, with rank 0's values."""

    name: str
    site: Site

    @property
    def statement(self) -> Statement:
        """The statement that makes the variables, or sets their first values."""
        return self.site.statement


class Agents:
    """The agents of one script."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._libraries = program.fact(Libraries)

    @cached_property
    def all(self) -> list[Agent]:
        """Every call that makes an agent."""
        if not self._is_used:
            return []
        own = {
            scope.name for scope in self._script.scopes if scope.kind == "class" and self._is_agents(scope)
        }
        named = own | self._libraries.names(Role.AGENT)
        return [
            Agent(site, tuple(self._optimizers(site)))
            for site in self._script.sites_calling(named)
            if self._are_agents(self._names.site_values(site.node, site))
        ]

    @cached_property
    def trainings(self) -> list[Site]:
        """The calls of an agent's `train`, or of the function traced from it."""
        if not self._is_used:
            return []
        own = [site for site in self._script.sites_named(TRAIN) if self._is_method(site)]
        return own or [site for site in self._script.sites if self._calls_traced(site)]

    @cached_property
    def beginnings(self) -> list[Beginning]:
        """The places where agents get their first values: their initialization, otherwise their creation."""
        found = [
            Beginning(dotted(site.node.func.value), site)
            for site in (self._script.sites_named(_INITIALIZE) if self._is_used else ())
            if isinstance(site.node.func, ast.Attribute) and self._is_method(site)
        ]
        return found or [Beginning(_name(each.site), each.site) for each in self.all]

    @cached_property
    def _is_used(self) -> bool:
        return self._libraries.has(Role.AGENT)

    def _is_method(self, site: Site) -> bool:
        """Return whether a call is a method of an agent."""
        function = site.node.func
        return isinstance(function, ast.Attribute) and self._are_agents(
            self._names.site_values(function.value, site)
        )

    def _calls_traced(self, site: Site) -> bool:
        """Return whether a call runs the method by another name, or a function that ``common.function`` made
        from it.
        """
        for value in self._names.callee(site):
            if (
                isinstance(value, Member)
                and value.name == TRAIN
                and self._are_agents(frozenset({value.owner}))
            ):
                return True
            made = value.node if isinstance(value, Instance) else None
            given = made.args[0] if made is not None and made.args else None
            if made is not None and isinstance(given, ast.Attribute) and given.attr == TRAIN:
                inner = self._script.site_of(made)
                if self._are_agents(self._names.site_values(given.value, inner)):
                    return True
        return False

    def _are_agents(self, values: frozenset[Value]) -> bool:
        return any(
            self._is_agents(value.scope)
            if isinstance(value, UserInstance)
            else (known := self._libraries.of(value)) is not None and known.role is Role.AGENT
            for value in values
        )

    def _is_agents(self, cls: Scope) -> bool:
        """Return whether a class of the script inherits from an agent, and leaves its steps to the
        library.
        """
        bases = map(self._libraries.entry, self._names.library_bases(cls))
        return not _STEPS.intersection(cls.bindings) and any(
            each is not None and each.role is Role.AGENT for each in bases
        )

    def _optimizers(self, made: Site) -> Iterator[ast.expr]:
        """Yield the arguments of an agent that are named optimizer, or are one."""
        for node in made.node.args:
            if self._names.may_be(self._names.site_values(node, made), *api.OPTIMIZERS):
                yield node
        for word in made.node.keywords:
            is_none = isinstance(word.value, ast.Constant)
            if word.arg is not None and word.arg.rpartition("_")[2] == _GIVEN and not is_none:
                yield word.value


def _name(site: Site) -> str:
    """The plain name bound to a call's result; "" without one."""
    node = site.statement.node
    is_made = isinstance(node, ast.Assign) and node.value is site.node and len(node.targets) == 1
    return dotted(node.targets[0]) if is_made else ""  # type: ignore[attr-defined]
