"""Effects: what a call does besides giving a value, itself or through functions of the workspace.

A call is pure, unknown, concerned with files, or it acts: it changes what later code sees, so that every
rank must make it.  Names say what the calls of libraries do (`tables`), a function of the workspace does
what its body does; one that only changes what it has made itself is pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from trainshift.core import tables
from trainshift.core.program import Program
from trainshift.core.training.graph_slice import reaching_calls
from trainshift.core.training.what_trains import WhatTrains
from trainshift.libraries import api
from trainshift.python.names.script import Script
from trainshift.python.names.values import (
    Class,
    Function,
    Instance,
    Library,
    Literal,
    Member,
    Unknown,
    UserInstance,
    Value,
)
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    alternatives,
    argument,
    arguments,
    children,
)
from trainshift.python.syntax.slotted_ast import kind_of


class Effect(IntEnum):
    """What code does besides giving a value, the more telling the higher.

    FILES is something outside the program, such as a file, which one rank may do for all; ACTS is what
    every rank must do.
    """

    UNKNOWN = 1
    FILES = 2
    ACTS = 3


@dataclass(frozen=True, eq=False, slots=True)
class Deed:
    """One thing that code does: `what` is a verb phrase, `node` (read in `scope`) does it.

    `changed` is the object that a method changes.  `origin` is what a function that `node` runs does.
    """

    effect: Effect
    what: str
    node: ast.AST
    scope: Scope
    changed: ast.expr | None = None
    origin: Deed | None = None


# What a call does itself, and the functions of the workspace that it may run.
_Reading = tuple["Deed | None", tuple[Scope, ...]]

_TRAINS = "takes a training step"
_FILES = (Effect.FILES, "changes files")
_OPENS = (Effect.FILES, "opens a file")
_STATE = (Effect.ACTS, "changes global state")
_UNSEEN = (Effect.UNKNOWN, "is unknown")
_OPENED = frozenset(tables.OPENING) | tables.WRITING_CONTEXTS
_WRITING = (tables.WRITING | tables.MAKING_FILES | _OPENED) - {"logging.basicConfig"}
_GIVING_WAY: dict[type, str] = {
    ast.Await: "awaits a result",
    ast.Yield: "yields to the caller",
    ast.YieldFrom: "yields to the caller",
}
_ITEMS = frozenset({"values", "items", "keys", "get", "setdefault"})
_PASSING = frozenset({"zip", "enumerate", "reversed", "sorted", "iter", "list", "tuple", "next", "filter"})


class Effects:
    """The effects of the calls and functions of one script, and of those that it is linked to."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._read_sites: dict[Site, _Reading] = {}
        self._functions: dict[Scope, Deed | None] = {}
        self._own: dict[Scope, _Reading] = {}
        self._parts: dict[Script, dict[Scope, list[Site]]] = {}
        self._bindings: dict[Script, dict[Scope, list[tuple[ast.expr, Binding]]]] = {}

    def of_call(self, site: Site) -> Deed | None:
        """What the call does, its arguments left aside; None if it only gives a value."""
        if self._program.fact(WhatTrains).site_trains(site):
            return Deed(Effect.ACTS, _TRAINS, site.node, site.scope)
        own, functions = self._read(site)
        found = [own]
        for function in functions:
            deed = self.of_function(function)
            if deed is not None:
                found.append(Deed(deed.effect, deed.what, site.node, site.scope, origin=deed))
        return _worst(found)

    def of_function(self, function: Scope) -> Deed | None:
        """What running a function of the workspace does; None if it only gives a value."""
        if function not in self._functions:
            run = [function]
            for each in run:
                run += [called for called in self._body(each)[1] if called not in run]
            self._functions[function] = _worst(self._body(each)[0] for each in run)
        return self._functions[function]

    def of_expression(self, node: ast.expr) -> Deed | None:
        """What evaluating `node`, an expression of the script with a call in or around it, does.

        Of several things the most telling, and of those the first in the text.
        """
        return _worst(self._deeds(node))

    def acts(self, site: Site) -> bool:
        """Whether the call is known to change what later code sees, so that every rank must make it."""
        deed = self.of_call(site)
        return deed is not None and deed.effect is Effect.ACTS

    def _deeds(self, expression: ast.expr) -> Iterator[Deed]:
        """What is done in an expression, in text order, the outer before the inner."""
        home = self._script.facts[0].module
        waiting: list[ast.AST] = [expression]
        while waiting:  # A long sum nests deeper than Python recurses.
            node = waiting.pop()
            if isinstance(node, ast.Call):
                deed = self.of_call(self._script.site_of(node))
                if deed is not None:
                    yield deed
            elif isinstance(node, ast.NamedExpr):
                yield Deed(Effect.ACTS, f"assigns {node.target.id}", node, home)
            elif kind_of(node) in _GIVING_WAY:
                yield Deed(Effect.ACTS, _GIVING_WAY[kind_of(node)], node, home)
            waiting += reversed(children(node))

    # One call

    def _read(self, site: Site) -> _Reading:
        known = self._read_sites.get(site)
        if known is None:
            known = self._read_sites[site] = self._reading(site)
        return known

    def _reading(self, site: Site) -> _Reading:
        fetched = self._fetched(site)
        if fetched is not None:
            return self._deed(self._of_fetches(fetched, site), site), ()
        values = self._script.names.callee(site)
        found: list[Deed | None] = []
        functions: list[Scope] = []
        seen = False  # Whether the library that a `from ... import` names is known.
        for value in values:
            if isinstance(value, Unknown):
                continue
            if isinstance(value, Function):
                functions.append(value.scope)
                continue
            effect = self._of_value(value, site, functions)
            seen = seen or (isinstance(value, Library) and (effect is None or effect[0] is not _UNSEEN[0]))
            found.append(self._deed(effect, site))
        if Unknown() in values and not seen:
            found.append(self._deed(self._of_unseen(site), site))
        if self._may_call_back(values):
            functions += self._passed(site)
        return _worst(found), tuple(dict.fromkeys(functions))

    # What a session runs

    def _fetched(self, site: Site) -> ast.expr | None:
        """What a call runs or reads of a graph (``sess.run(x)``, ``x.eval()``); None for other calls."""
        if site.name not in ("run", "eval") or not isinstance(site.node.func, ast.Attribute):
            return None
        receiver = self._script.names.site_values(site.node.func.value, site)
        if self._script.names.may_be(receiver, *api.SESSION, *api.MONITORED_SESSION):
            return argument(site.node, 0, "fetches") if site.name == "run" else None
        graphs = [
            value for value in receiver if isinstance(value, Instance) and value.cls.startswith("tensorflow.")
        ]
        return site.node.func.value if graphs and len(graphs) == len(receiver) else None

    def _of_fetches(self, node: ast.expr, site: Site) -> tuple[Effect, str] | None:
        """What running a part of a graph does."""
        wanted = {each.node: each for each in self._script.sites_named(*tables.GRAPH_ACTING)}
        found = reaching_calls(self._script, wanted, node, site.scope, site.statement)
        if found:
            return Effect.ACTS, f"runs {found[0].name}"
        return None if self._is_shown(node, site) else _UNSEEN

    def _is_shown(self, node: ast.expr, site: Site) -> bool:
        """Whether the script shows what an operation is made by."""
        if isinstance(node, ast.List | ast.Tuple):
            return all(self._is_shown(part, site) for part in node.elts)
        if isinstance(node, ast.Name):
            _, bindings = self._script.names.lookup(node.id, site.scope, site.statement)
            kinds = {binding.kind for binding in bindings}
            return bool(bindings) and kinds.isdisjoint({"parameter", "import", "other"})
        if isinstance(node, ast.Attribute):
            return any(True for _ in self._script.attribute_bindings(node.attr))
        return True

    def _deed(self, effect: tuple[Effect, str] | None, site: Site) -> Deed | None:
        if effect is None:
            return None
        changed = None
        if effect[1] == _CHANGES[1] and isinstance(site.node.func, ast.Attribute):
            changed = site.node.func.value
            effect = (effect[0], f"changes {_shown(changed)}")
        elif effect[1] == _CHANGES[1]:
            effect = (effect[0], "changes state")
        return Deed(*effect, site.node, site.scope, changed)

    def _of_value(self, value: Value, site: Site, functions: list[Scope]) -> tuple[Effect, str] | None:
        names = self._script.names
        if isinstance(value, Library):
            return _of_library(api.canonical(value.name) or value.name)
        if isinstance(value, Member):
            bases = [value.owner.cls] if isinstance(value.owner, Instance) else []
            if isinstance(value.owner, UserInstance):
                bases = sorted(names.library_bases(value.owner.scope))
            known = [_of_method(base, value.name, site) for base in bases] or [_of_name(value.name, site)]
            return max((each for each in known if each is not None), default=None)
        if isinstance(value, Instance | UserInstance) and names.is_a(value, *api.METRIC):
            return Effect.ACTS, "updates a metric"
        if isinstance(value, Class):
            init = names.function_named(value.scope, "__init__")
            functions += [init] if init is not None else []
            return None
        if isinstance(value, UserInstance):
            if names.is_a(value, *api.MODEL, *api.LAYER, *api.MODULE):
                return None
            method = names.function_named(value.scope, "__call__")
            functions += [method] if method is not None else []
            return _UNSEEN if method is None else None
        if isinstance(value, Instance):
            root = value.cls.partition(".")[0]
            return None if root in tables.PURE_LIBRARIES and root != "builtins" else _UNSEEN
        return None if isinstance(value, Literal) else _UNSEEN

    def _of_unseen(self, site: Site) -> tuple[Effect, str] | None:
        if isinstance(site.node.func, ast.Attribute):
            receiver = self._script.names.site_values(site.node.func.value, site)
            if receiver and all(isinstance(value, Literal) for value in receiver):
                return None
            return _of_name(site.name, site)
        if site.name in tables.TRAINING_METHODS:
            return Effect.ACTS, _TRAINS
        return _STATE if site.name in tables.ACTING else _UNSEEN

    def _may_call_back(self, values: Iterable[Value]) -> bool:
        """Whether the called may run, at once, the functions that it is handed."""
        for value in values:
            if isinstance(value, Library):
                if value.name in tables.NOT_CALLING or value.name.startswith(tables.NOT_CALLING_MODULES):
                    return False
            elif isinstance(value, Function | Class):
                return False  # What it does with a parameter is seen in its body.
            elif isinstance(value, Member) and self._script.names.is_a(value.owner, *api.DATASET):
                return False
        return True

    def _passed(self, site: Site) -> Iterator[Scope]:
        for given in arguments(site.node):
            if isinstance(given, ast.Name | ast.Attribute | ast.Lambda):
                for value in self._script.names.site_values(given, site):
                    if isinstance(value, Function):
                        yield value.scope

    # The body of a function

    def _body(self, function: Scope) -> _Reading:
        """What the function does itself, and the functions that it runs."""
        known = self._own.get(function)
        if known is None:
            found: list[Deed | None] = list(self._bound_outside(function))
            run: list[Scope] = []
            for site in self._sites_of(function):
                if self._program.fact(WhatTrains).site_trains(site):
                    found.append(Deed(Effect.ACTS, _TRAINS, site.node, site.scope))
                    continue
                own, functions = self._read(site)
                run += functions
                if own is None or own.changed is None or not self._is_local(own.changed, site.scope):
                    found.append(own)
            known = self._own[function] = (_worst(found), tuple(dict.fromkeys(run)))
        return known

    def _bound_outside(self, function: Scope) -> Iterator[Deed]:
        """The names, attributes and items that the function binds and that outlive its call."""
        for name in sorted(function.declared_global | function.declared_nonlocal):
            for binding in function.bindings.get(name, ()):
                kind = "global" if name in function.declared_global else "outer variable"
                node = binding.target or (binding.statement and binding.statement.node)
                if isinstance(node, ast.AST):
                    yield Deed(Effect.ACTS, f"sets the {kind} {name}", node, function)
        names = self._script.names
        for base, binding in self._bindings_of(function):
            if function.name in ("__init__", "__new__") and names.is_self(base, binding.scope):
                continue
            target = binding.target
            if isinstance(target, ast.expr) and not self._is_local(base, binding.scope):
                yield Deed(Effect.ACTS, f"sets {_shown(target)}", target, function)

    def _sites_of(self, function: Scope) -> list[Site]:
        home = self._script.home(function)
        if home not in self._parts:
            parts = self._parts[home] = {}
            for site in home.sites:
                inside = site.scope.function()
                if inside is not None:
                    parts.setdefault(inside, []).append(site)
        return self._parts[home].get(function, [])

    def _bindings_of(self, function: Scope) -> list[tuple[ast.expr, Binding]]:
        """How the function binds attributes and items: of which object, and the binding."""
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
        """Whether the function that `node` is read in made the object itself."""
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
        if binding in seen:  # What it gives is being looked at already.
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


_CHANGES = (Effect.ACTS, "changes")


def _of_library(name: str) -> tuple[Effect, str] | None:
    """What a call of the library's function or class `name` does."""
    root, _, _ = name.partition(".")
    last = name.rpartition(".")[2]
    if name in _WRITING:
        return _OPENS if name in _OPENED else _FILES
    if name in tables.PRINTING or name in tables.PROGRESS_BARS:
        return None
    if name in tables.CALLS:
        return Effect.ACTS, tables.CALLS[name]
    if name in tables.UNSEEN_CALLS:
        return _UNSEEN
    if name.startswith("tensorflow.summary.") and last in tables.SUMMARIES:
        return Effect.FILES, "writes a summary"
    if root == "horovod":
        return (
            (Effect.ACTS, "is a call that all ranks must make together")
            if last in tables.COLLECTIVE
            else None
        )
    if root in tables.PURE_LIBRARIES:
        setting = root not in ("builtins", "os") and last.startswith(tables.SETTING)
        changing = root in ("tensorflow", "keras") and last in tables.ASSIGNING
        return _STATE if setting or changing or last in tables.SEEDING else None
    if last in tables.TRAINING_METHODS:
        return Effect.ACTS, _TRAINS
    return _STATE if last in tables.ACTING else _UNSEEN


def _of_method(cls: str, name: str, site: Site) -> tuple[Effect, str] | None:
    """What the method `name` of an object of the library's class (or made by its function) `cls` does."""
    root = cls.partition(".")[0]
    if cls in _OPENED or cls.endswith(".open"):
        return _of_file(name, site)
    if root == "pathlib" and name in tables.PATH_CHANGING:
        return _FILES
    if root in ("numpy", "random") and name in tables.ARRAY_CHANGING:
        return _CHANGES
    if root in tables.QUEUES and name in tables.QUEUE_METHODS:
        return _CHANGES
    if api.is_subclass(cls, *api.ESTIMATOR) and name == "train":
        return Effect.ACTS, _TRAINS
    if api.is_subclass(cls, *api.SESSION, *api.MONITORED_SESSION) and name == "run":
        return _UNSEEN
    if api.is_subclass(cls, *api.SUMMARY_WRITER) and name in tables.WRITER_METHODS:
        return _FILES
    if api.is_subclass(cls, *api.CHECKPOINT, *api.SAVER) and name in tables.RESTORING:
        return _CHANGES
    if root in ("tensorflow", "keras") and name in tables.TENSORFLOW_CHANGING:
        return _CHANGES
    if api.is_subclass(cls, *api.DATASET):
        return _FILES if name == "save" else None
    if cls == "tensorflow.TensorArray" and name == "write":
        return None
    found = _of_name(name, site)
    known = root in tables.PURE_LIBRARIES and cls != "builtins.super"
    return None if known and found == _UNSEEN and name not in tables.UNSEEN_METHODS else found


def _of_file(name: str, site: Site) -> tuple[Effect, str] | None:
    """What the method `name` of an open file does; one that is opened for this call alone is soon gone."""
    assert isinstance(site.node.func, ast.Attribute)
    if name in tables.FILE_READING:
        return None if isinstance(site.node.func.value, ast.Call) else (Effect.ACTS, "reads on in a file")
    return None if name in tables.FILE_QUESTIONS else (Effect.FILES, "writes to a file")


def _of_name(name: str, site: Site) -> tuple[Effect, str] | None:
    """What the method `name` does of an object of which nothing is known."""
    if name in tables.TRAINING_METHODS:
        return Effect.ACTS, _TRAINS
    if name in tables.TAKING_METHODS:
        return Effect.ACTS, "takes the next element"
    if name in tables.ACTING or name in tables.CHANGING_METHODS:
        return _CHANGES
    if name in tables.PATH_WRITING:
        return _FILES if site.node.args or site.node.keywords else None
    if name in tables.WRITING_METHODS - {"summary"}:
        return _CHANGES if name == "load_weights" else _FILES
    return None if name in tables.PURE_METHODS else _UNSEEN


def _own_bindings(name: str, scope: Scope) -> list[Binding]:
    """How the function around `scope` binds `name`; none for a name from outside of it."""
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


def _worst(deeds: Iterable[Deed | None]) -> Deed | None:
    """The most telling of some deeds, the first among equals."""
    found: Deed | None = None
    for deed in deeds:
        if deed is not None and (found is None or deed.effect > found.effect):
            found = deed
    return found


def _shown(node: ast.expr) -> str:
    """An expression as a message shows it."""
    text = one_line(ast.unparse(node))
    return text if len(text) <= 40 else "an object"
