"""Origins: the calls that create the object of an expression, to distinguish models.

Followed through names, attributes, tuples, parameters, functions and the files of the workspace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.classes import class_around
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Class, Function, Library, Unknown, UserInstance
from trainshift.python.syntax.chunk_syntax import (
    Scope,
)

_SUPER = Library("builtins.super")
# Nothing is traced through more steps than this: anything further is unknown.
_DEEPEST = 40
_NOWHERE = frozenset[ast.AST | None]()
_UNSEEN = frozenset[ast.AST | None]({None})


class Origins:
    """The calls that create the objects of one program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._known = Questions(_NOWHERE, _UNSEEN, deepest=_DEEPEST)

    def creations(self, at: Occurrence) -> frozenset[ast.AST]:
        """The calls that create the object of an expression; empty if they are unknown."""
        return frozenset(node for node in self.of(at) if node is not None)

    def inside_and_out(self, at: Occurrence) -> frozenset[ast.AST]:
        """The calls that create an object, and the calls of the functions that return it."""
        found = self.creations(at)
        giving: list[Scope | None] = [at.scope.function()]
        for function in giving:
            returned = (
                (Occurrence(value, function, where) for value, where in function.returns) if function else ()
            )
            if function is not None and any(not found.isdisjoint(self.creations(each)) for each in returned):
                sites = self._names.callers(function)[0]
                found |= {site.node for site in sites}
                giving += {site.scope.function() for site in sites}.difference(giving)
        return found

    def of(self, at: Occurrence) -> frozenset[ast.AST | None]:
        """The calls that create the object of an expression; includes None if some are unknown."""
        return self._known.ask((id(at.node), id(at.scope)), lambda: frozenset(self._trace(at)))

    def _trace(self, at: Occurrence) -> Iterator[ast.AST | None]:
        node, names = at.node, self._names
        if isinstance(node, ast.Call):
            yield from self._trace_call(node, at)
        elif isinstance(node, ast.Name) and names.is_self(node, at.scope):
            yield from self._trace_self(at)
        elif (step := names.steps_back(at)) is not None:
            for source in step.sources:
                yield from self.of(source)
            if step.unseen:
                yield None
        elif not (isinstance(node, ast.Constant) and node.value is None):
            yield None

    def _trace_call(self, node: ast.Call, at: Occurrence) -> Iterator[ast.AST | None]:
        """Yield the creations behind a call: the call itself, unless its function returns an object created
        elsewhere.
        """
        values = self._names.values(node.func, at.scope, at.statement)
        owner = class_around(at.scope)
        if owner is not None and _SUPER in values:
            yield from self._trace_class(owner)
            return
        functions = [value.scope for value in values if isinstance(value, Function)]
        if not values or any(isinstance(value, Unknown) for value in values):
            yield None
        outside: set[ast.AST | None] = set()
        inside = not functions
        for function in functions:
            for value, statement in function.returns:
                for made in self.of(Occurrence(value, function, statement)):
                    site = self._script.site_of(made) if isinstance(made, ast.Call) else None
                    if site is not None and site.scope.function() is not function:
                        outside.add(made)
                    else:
                        inside = True
        if inside or not outside:
            yield node
        yield from outside

    def _trace_self(self, at: Occurrence) -> Iterator[ast.AST | None]:
        for value in self._names.values(at.node, at.scope, at.statement):
            if isinstance(value, UserInstance):
                yield from self._trace_class(value.scope)

    def _trace_class(self, cls: Scope) -> Iterator[ast.AST | None]:
        """Yield the calls that create objects of a class of the script, or of its subclasses."""
        names = self._names
        for each in (cls, *names.heirs(cls)):
            # The class itself represents an object whose construction is not visible.
            yield each.node
            for script in self._script.home(each).users:
                for site in script.sites_named(each.name):
                    if any(isinstance(v, Class) and v.scope is each for v in names.callee(site)):
                        yield site.node

    def built_from(self, at: Occurrence, wanted: frozenset[ast.AST | None]) -> bool:
        """Return whether a model is built from another one, whose weights it then shares."""
        made = (self._script.site_of(each) for each in self.creations(at) if isinstance(each, ast.Call))
        starts = [part for site in made for part in _named_parts(of_call(site))]

        def behind(each: Occurrence) -> Iterator[Occurrence]:
            step = self._names.steps_back(each)
            for whole in (*step.sources, *step.within) if step is not None else ():
                yield from _named_parts(whole)

        parts = reachable(starts, behind, lambda each: each.node)
        return any(not (self.of(each) & wanted) <= {None} for each in parts)


def _named_parts(whole: Occurrence) -> Iterator[Occurrence]:
    """Yield the names and attributes in an expression."""
    for part in ast.walk(whole.node):
        if isinstance(part, ast.Name | ast.Attribute):
            yield whole.part(part)
