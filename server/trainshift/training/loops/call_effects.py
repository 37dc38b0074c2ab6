"""Effects of calls in training code: the knowledge about libraries for `python/values/effects.py`.

Entries of libraries describe the effects of their calls, and method names those of unknown objects; the
effects of functions in the workspace follow from these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.containers import MUTATING
from trainshift.libraries.entries import Role, fact, is_bar, is_pure, opener, prints
from trainshift.libraries.methods import named
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
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    argument,
    arguments,
)
from trainshift.python.values.effects import Effect, EffectAnalysis, OwnEffect, SideEffect, shown, worst
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.loops.what_trains import WhatTrains

_TRAINS = "takes a training step"
_FILES = (Effect.FILES, "changes files")
_OPENS = (Effect.FILES, "opens a file")
_STATE = (Effect.ACTS, "changes global state")
_UNSEEN = (Effect.UNKNOWN, "is unknown")
_OUTWARD = (Role.WRITER, Role.MOVES, Role.OUTSIDE, Role.TRACKER)


class Effects:
    """The effects of the calls and functions of one script, and of the scripts linked to it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._effects = EffectAnalysis(program.script, self._of_site)

    def of_call(self, site: Site) -> SideEffect | None:
        """The side effect of a call without its arguments; None if it only returns a value."""
        return self._effects.of_call(site)

    def of_function(self, function: Scope) -> SideEffect | None:
        """The side effect of running a function of the workspace; None if it only returns a value."""
        return self._effects.of_function(function)

    def of_expression(self, node: ast.expr) -> SideEffect | None:
        """The side effect of evaluating an expression of the script; None if it only returns a value."""
        return self._effects.of_expression(node)

    def acts(self, site: Site) -> bool:
        """Return whether a call is known to change state that later code reads, so that every rank must make
        it.
        """
        found = self.of_call(site)
        return found is not None and found.effect is Effect.ACTS

    # One call

    def _of_site(self, site: Site) -> OwnEffect:
        """The own effect of a call, and the functions of the workspace that it may run."""
        if self._program.fact(WhatTrains).site_trains(site):
            return SideEffect(Effect.ACTS, _TRAINS, site.node, site.scope), ()
        fetched = self._fetched(site)
        if fetched is not None:
            return self._deed(self._of_fetches(fetched, site), site), ()
        values = self._script.names.callee(site)
        found: list[SideEffect | None] = []
        functions: list[Scope] = []
        seen = False  # Return whether the library named by a `from ... import` is known.
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
        return worst(found), tuple(dict.fromkeys(functions))

    # Operations that a session runs

    def _fetched(self, site: Site) -> ast.expr | None:
        """The part of a graph that a call runs or reads (``sess.run(x)``, ``x.eval()``); None for other
        calls.
        """
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
        """The effect of running a part of a graph."""
        wanted = {each.node: each for each in self._script.sites_named(*named("graph_acting"))}
        found = reaching_calls(self._script, wanted, node, site.scope, site.statement)
        if found:
            return Effect.ACTS, f"runs {found[0].name}"
        return None if self._isshown(node, site) else _UNSEEN

    def _isshown(self, node: ast.expr, site: Site) -> bool:
        """Return whether the script shows how an operation is created."""
        if isinstance(node, ast.List | ast.Tuple):
            return all(self._isshown(part, site) for part in node.elts)
        if isinstance(node, ast.Name):
            _, bindings = self._script.names.lookup(node.id, site.scope, site.statement)
            kinds = {binding.kind for binding in bindings}
            return bool(bindings) and kinds.isdisjoint({"parameter", "import", "other"})
        if isinstance(node, ast.Attribute):
            return any(True for _ in self._script.attribute_bindings(node.attr))
        return True

    def _deed(self, effect: tuple[Effect, str] | None, site: Site) -> SideEffect | None:
        if effect is None:
            return None
        changed = None
        if effect[1] == _CHANGES[1] and isinstance(site.node.func, ast.Attribute):
            changed = site.node.func.value
            effect = (effect[0], f"changes {shown(changed)}")
        elif effect[1] == _CHANGES[1]:
            effect = (effect[0], "changes state")
        return SideEffect(*effect, site.node, site.scope, changed)

    def _of_value(self, value: Value, site: Site, functions: list[Scope]) -> tuple[Effect, str] | None:
        names = self._script.names
        if (outward := self._of_entry(value, site)) is not None:
            return outward
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
            return None if is_pure(root) and root != "builtins" else _UNSEEN
        return None if isinstance(value, Literal) else _UNSEEN

    def _of_entry(self, value: Value, site: Site) -> tuple[Effect, str] | None:
        """The effect of a call by its library's entry: it writes, moves, sends or tracks."""
        libraries = self._program.fact(Libraries)
        entry = libraries.of(value)
        sets_up = entry is not None and entry.flag("shows") and entry.text("path")
        if entry is not None and entry.role in _OUTWARD and not sets_up:
            return _UNSEEN if entry.flag("command") else _FILES
        if entry is not None and entry.role is Role.WRITER_OBJECT and isinstance(value, Library):
            return _OPENS
        made = libraries.of(value.owner) if isinstance(value, Member) else None
        is_writers = made is not None and made.role is Role.WRITER_OBJECT
        return _of_file(site.name, site) if is_writers else None

    def _of_unseen(self, site: Site) -> tuple[Effect, str] | None:
        if isinstance(site.node.func, ast.Attribute):
            receiver = self._script.names.site_values(site.node.func.value, site)
            if receiver and all(isinstance(value, Literal) for value in receiver):
                return None
            return _of_name(site.name, site)
        if site.name in named("training"):
            return Effect.ACTS, _TRAINS
        return _STATE if site.name in named("acting") else _UNSEEN

    def _may_call_back(self, values: Iterable[Value]) -> bool:
        """Return whether the callee may run, at once, the functions that it gets as arguments."""
        for value in values:
            if isinstance(value, Library):
                if fact(value.name, "calls_nothing"):
                    return False
            elif isinstance(value, Function | Class):
                return False  # The body shows how it uses its parameters.
            elif isinstance(value, Member) and self._script.names.is_a(value.owner, *api.DATASET):
                return False
        return True

    def _passed(self, site: Site) -> Iterator[Scope]:
        for given in arguments(site.node):
            if isinstance(given, ast.Name | ast.Attribute | ast.Lambda):
                for value in self._script.names.site_values(given, site):
                    if isinstance(value, Function):
                        yield value.scope


_CHANGES = (Effect.ACTS, "changes")


def _of_library(name: str) -> tuple[Effect, str] | None:
    """The effect of calling the library's function or class `name`."""
    root, _, _ = name.partition(".")
    last = name.rpartition(".")[2]
    if opener(name) is not None:
        return _OPENS
    if fact(name, "makes_files"):
        return _FILES
    if prints(name) or is_bar(name):
        return None
    if (deed := fact(name, "acts")) is not None:
        return Effect.ACTS, str(deed)
    if fact(name, "unseen"):
        return _UNSEEN
    if fact(name, "summary"):
        return Effect.FILES, "writes a summary"
    if root == "horovod":
        return (
            (Effect.ACTS, "is a call that all ranks must make together") if fact(name, "collective") else None
        )
    if is_pure(root):
        setting = root not in ("builtins", "os") and last.startswith(tuple(named("setting")))
        changing = root in ("tensorflow", "keras") and last in named("assigning")
        return _STATE if setting or changing or last in named("seeding") else None
    if last in named("training"):
        return Effect.ACTS, _TRAINS
    return _STATE if last in named("acting") else _UNSEEN


def _of_method(cls: str, name: str, site: Site) -> tuple[Effect, str] | None:
    """The effect of the method `name` of an object of the library's class (or factory function) `cls`."""
    root = cls.partition(".")[0]
    if opener(cls) is not None or cls.endswith(".open"):
        return _of_file(name, site)
    if root == "pathlib" and name in named("path_changing"):
        return _FILES
    if root in ("numpy", "random") and name in named("array_changing"):
        return _CHANGES
    if fact(cls, "queues") and name in named("queue"):
        return _CHANGES
    if api.is_subclass(cls, *api.ESTIMATOR) and name == "train":
        return Effect.ACTS, _TRAINS
    if api.is_subclass(cls, *api.SESSION, *api.MONITORED_SESSION) and name == "run":
        return _UNSEEN
    if api.is_subclass(cls, *api.SUMMARY_WRITER) and name in named("writer"):
        return _FILES
    if api.is_subclass(cls, *api.CHECKPOINT, *api.SAVER) and name in named("restoring"):
        return _CHANGES
    if root in ("tensorflow", "keras") and name in named("tensorflow_changing"):
        return _CHANGES
    if api.is_subclass(cls, *api.DATASET):
        return _FILES if name == "save" else None
    if cls == "tensorflow.TensorArray" and name == "write":
        return None
    found = _of_name(name, site)
    known = is_pure(root) and cls != "builtins.super"
    return None if known and found == _UNSEEN and name not in named("unseen") else found


def _of_file(name: str, site: Site) -> tuple[Effect, str] | None:
    """The effect of the method `name` of an open file; a file opened for this call alone is soon closed."""
    assert isinstance(site.node.func, ast.Attribute)
    if name in named("file_reading"):
        return (
            None if isinstance(site.node.func.value, ast.Call) else (Effect.ACTS, "continues reading a file")
        )
    return None if name in named("file_questions") else (Effect.FILES, "writes to a file")


def _of_name(name: str, site: Site) -> tuple[Effect, str] | None:
    """The effect of the method `name` of an unknown object, by its name."""
    if name in named("training"):
        return Effect.ACTS, _TRAINS
    if name in named("taking"):
        return Effect.ACTS, "takes the next element"
    if name in named("acting") or name in MUTATING or name in named("changing"):
        return _CHANGES
    if name in named("path_writing"):
        return _FILES if site.node.args or site.node.keywords else None
    if name in named("writing") - {"summary"}:
        return _CHANGES if name == "load_weights" else _FILES
    return None if name in named("pure") else _UNSEEN
