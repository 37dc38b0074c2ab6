"""Side effects: the effects of code besides its value, directly or through its callees.

The client supplies the effects of library calls; a function of the workspace has the effects of its body and
of its callees.  A function that mutates only objects that it has created is pure.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

from msgspec import Struct

from trainshift.python.names.script import Script
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, alternatives, children
from trainshift.python.syntax.slotted_ast import kind_of


class Effect(IntEnum):
    """The effect of code beside its value; the more serious, the higher.

    FILES is an effect outside the program, such as on a file, which one process may perform for all; ACTS
    changes state that later code reads.  Code without these is pure.
    """

    UNKNOWN = 1
    FILES = 2
    ACTS = 3


class SideEffect(Struct, frozen=True, eq=False):
    """One side effect: `what` is a verb phrase, and `node` (read in `scope`) has it.

    `changed` is the object that a method mutates.  `origin` is the effect in a function that `node` runs.
    """

    effect: Effect
    what: str
    node: ast.AST
    scope: Scope
    changed: ast.expr | None = None
    origin: SideEffect | None = None


OwnEffect = tuple[SideEffect | None, tuple[Scope, ...]]
"""The direct effects of some code, and the functions of the workspace that it may run."""

_GIVING_WAY: dict[type, str] = {
    ast.Await: "awaits a result",
    ast.Yield: "yields to the caller",
    ast.YieldFrom: "yields to the caller",
}
# Methods and functions that pass on elements of their arguments.
_ITEMS = frozenset({"values", "items", "keys", "get", "setdefault"})
_PASSING = frozenset({"zip", "enumerate", "reversed", "sorted", "iter", "list", "tuple", "next", "filter"})


class EffectAnalysis:
    """The side effects of calls, expressions and functions of one script, and of its linked scripts.

    `of_site` returns the own effect of a call, and the functions of the workspace that it may run.
    """

    def __init__(self, script: Script, of_site: Callable[[Site], OwnEffect]) -> None:
        self._script = script
        self._of_site = of_site
        self._sites: dict[Site, OwnEffect] = {}
        self._functions: dict[Scope, SideEffect | None] = {}
        self._bodies: dict[Scope, OwnEffect] = {}
        self._bindings: dict[Script, dict[Scope, list[tuple[ast.expr, Binding]]]] = {}

    def of_call(self, site: Site) -> SideEffect | None:
        """The side effect of a call, without its arguments; None if it has none."""
        own, functions = self._own(site)
        found = [own]
        for function in functions:
            inner = self.of_function(function)
            if inner is not None:
                found.append(SideEffect(inner.effect, inner.what, site.node, site.scope, origin=inner))
        return worst(found)

    def of_function(self, function: Scope) -> SideEffect | None:
        """The side effect of running a function of the workspace; None if it has none."""
        if function not in self._functions:
            run = [function]
            for each in run:
                run += [called for called in self._body(each)[1] if called not in run]
            self._functions[function] = worst(self._body(each)[0] for each in run)
        return self._functions[function]

    def of_expression(self, node: ast.expr) -> SideEffect | None:
        """The side effect of evaluating an expression of the script with a call in or around it.

        Of several, the most serious; of equals, the first in the text.
        """
        return worst(self._in(node))

    def _in(self, expression: ast.expr) -> Iterator[SideEffect]:
        """The side effects in an expression, in text order, outer ones before inner ones."""
        home = self._script.facts[0].module
        waiting: list[ast.AST] = [expression]
        while waiting:  # A long sum nests deeper than Python recurses.
            node = waiting.pop()
            if isinstance(node, ast.Call):
                found = self.of_call(self._script.site_of(node))
                if found is not None:
                    yield found
            elif isinstance(node, ast.NamedExpr):
                yield SideEffect(Effect.ACTS, f"assigns {node.target.id}", node, home)
            elif kind_of(node) in _GIVING_WAY:
                yield SideEffect(Effect.ACTS, _GIVING_WAY[kind_of(node)], node, home)
            waiting += reversed(children(node))

    def _own(self, site: Site) -> OwnEffect:
        if site not in self._sites:
            self._sites[site] = self._of_site(site)
        return self._sites[site]

    def _body(self, function: Scope) -> OwnEffect:
        """The function's own effect, and the functions that it runs."""
        known = self._bodies.get(function)
        if known is None:
            found: list[SideEffect | None] = list(self._bound_outside(function))
            run: list[Scope] = []
            for site in self._sites_of(function):
                own, functions = self._own(site)
                run += functions
                if own is None or own.changed is None or not self._is_local(own.changed, site.scope):
                    found.append(own)
            known = self._bodies[function] = (worst(found), tuple(dict.fromkeys(run)))
        return known

    def _bound_outside(self, function: Scope) -> Iterator[SideEffect]:
        """The names, attributes and items that the function binds and that outlive its call."""
        for name in sorted(function.declared_global | function.declared_nonlocal):
            for binding in function.bindings.get(name, ()):
                kind = "global" if name in function.declared_global else "outer variable"
                node = binding.target or (binding.statement and binding.statement.node)
                if isinstance(node, ast.AST):
                    yield SideEffect(Effect.ACTS, f"sets the {kind} {name}", node, function)
        names = self._script.names
        for base, binding in self._bindings_of(function):
            if function.name in ("__init__", "__new__") and names.is_self(base, binding.scope):
                continue
            target = binding.target
            if isinstance(target, ast.expr) and not self._is_local(base, binding.scope):
                yield SideEffect(Effect.ACTS, f"sets {shown(target)}", target, function)

    def _sites_of(self, function: Scope) -> list[Site]:
        return self._script.home(function).code.sites_by_function.get(function, [])

    def _bindings_of(self, function: Scope) -> list[tuple[ast.expr, Binding]]:
        """Return the bindings of attributes and items by a function, each with its object."""
        home = self._script.home(function)
        if home not in self._bindings:
            found = self._bindings[home] = {}
            for facts in home.facts:
                attributes = [
                    (each.base, each.binding) for given in facts.attributes.values() for each in given
                ]
                items = [
                    (each.base, each.binding) for given in facts.items.values() for each in given if each.key
                ]
                for base, binding in (*attributes, *items):
                    inside = binding.scope.function()
                    if inside is not None:
                        found.setdefault(inside, []).append((base, binding))
        return self._bindings[home].get(function, [])

    def _is_local(self, node: ast.expr, scope: Scope, seen: set[Binding] | None = None) -> bool:
        """Return whether the function that `node` is read in made the object itself."""
        seen = set() if seen is None else seen
        while isinstance(node, ast.Attribute | ast.Subscript | ast.NamedExpr | ast.Starred):
            node = node.value
        if isinstance(node, ast.Name):
            bindings = _own_bindings(node.id, scope)
            return bool(bindings) and all(self._binds_local(each, seen) for each in bindings)
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _ITEMS:
                parts = [node.func.value]
            elif isinstance(node.func, ast.Name) and node.func.id in _PASSING:
                parts = node.args
        else:
            parts = alternatives(node)
        return all(self._is_local(part, scope, seen) for part in parts)

    def _binds_local(self, binding: Binding, seen: set[Binding]) -> bool:
        if binding in seen:  # Its result is already being computed.
            return True
        seen.add(binding)
        if binding.kind not in ("value", "element", "context") or binding.value is None:
            return False
        held = [binding.value]
        if binding.kind == "element" and isinstance(binding.value, ast.List | ast.Tuple):
            held = binding.value.elts
        elif binding.kind == "value":
            held = [binding.taken or binding.value]
        return all(self._is_local(each, binding.scope, seen) for each in held)


def worst(effects: Iterable[SideEffect | None]) -> SideEffect | None:
    """The most serious of some side effects, the first among equals."""
    found: SideEffect | None = None
    for each in effects:
        if each is not None and (found is None or each.effect > found.effect):
            found = each
    return found


def shown(node: ast.expr) -> str:
    """An expression, as shown in messages."""
    text = one_line(ast.unparse(node))
    return text if len(text) <= 40 else "an object"


def _own_bindings(name: str, scope: Scope) -> list[Binding]:
    """Return the bindings of `name` in the function around `scope`; none for a name from outside."""
    current: Scope | None = scope
    while current is not None:
        if name in current.declared_global or name in current.declared_nonlocal:
            return []
        if name in current.bindings:
            return current.bindings[name]
        if current.kind == "function":
            return []
        current = current.parent
    return []
