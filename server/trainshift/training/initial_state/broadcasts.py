"""Broadcasts: calls that make variables equal on all ranks, and places where they have no effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core.choices import KERAS_3
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted, last_name
from trainshift.python.values.call_chains import callers_around
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.which_keras import WhichKeras
from trainshift.training.loops.execution_order import Course
from trainshift.training.loops.steps import VARIABLE_LISTS, Steps
from trainshift.training.ranks.branches import Branches
from trainshift.training.uniformity.uniformity import Uniformity

_ALL = "broadcast_global_variables"
_SOME = "broadcast_variables"
_CALLBACK = "BroadcastGlobalVariablesCallback"
# Calls that make graph variables whose initial values may differ between ranks.
_MAKING = ("get_variable", "Variable", "dense", "conv2d", "Dense", "Conv2D", "fully_connected", "Sequential")
# Arguments that give a `Sequential` its input shape.
_SHAPED = frozenset({"Input", "InputLayer", "build"})
_SHAPES = frozenset({"input_shape", "batch_input_shape", "input_dim", "input_length", "batch_shape"})
_BUILDING = frozenset({"build", "fit", "predict", "evaluate", "train_on_batch", "load_weights", "summary"})


class Spoiled(NamedTuple):
    """A broadcast that does nothing, or is undone, with the reason.

    With `is_empty`, its model has no variables yet.
    """

    site: Site
    reason: str
    other: Site | None = None
    is_empty: bool = False


class Broadcasts:
    """The broadcasts of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    @cached_property
    def spoiled(self) -> list[Spoiled]:
        """The broadcasts without effect (HZ11)."""
        return [
            *self._of_nothing(),
            *self._of_traced_flags(),
            *self._of_spent(),
            *self._undone(),
            *self._undone_hooks(),
            *self._by_hand(),
        ]

    # (a) variables of a model that has none yet

    def _of_nothing(self) -> Iterator[Spoiled]:
        for site in self._horovod.calls(_SOME):
            given = argument(site.node, 0, "variables")
            # On Keras 3: the values of all of them, under TensorFlow's names.
            if isinstance(given, ast.ListComp) and len(given.generators) == 1:
                given = given.generators[0].iter
            if not isinstance(given, ast.Attribute) or given.attr not in VARIABLE_LISTS:
                continue
            model = given.value
            values = self._names.site_values(model, site)
            name, text = dotted(model), ast.unparse(model)
            if values and name and all(self._is_shapeless(each, name) for each in values):
                if not self._is_called_before(name, site):
                    reason = f"{text} has no shape before it is called: ValueError. Call it first."
                    if self._program.fact(WhichKeras).keras == KERAS_3:
                        reason = f"{text} has no variables before it is called, so nothing is broadcast."
                    yield Spoiled(site, reason, is_empty=True)
                continue
            if not values or not all(self._is_unbuilt_class(each) for each in values):
                continue
            if name and not self._is_called_before(name, site):
                reason = f"{text} has no variables before it is called, so nothing is broadcast."
                yield Spoiled(site, reason, is_empty=True)

    def is_unbuilt(self, model: Occurrence) -> bool:
        """Return whether a model creates its variables only when it is first called."""
        values, name = self._names.values(*model[:3]), dotted(model.node)
        is_bare = bool(name) and all(self._is_shapeless(each, name) for each in values)
        return bool(values) and (is_bare or all(map(self._is_unbuilt_class, values)))

    def _is_shapeless(self, value: object, name: str) -> bool:
        """Return whether an object is a `Sequential` whose first layer has no input shape."""
        if not isinstance(value, Instance) or value.cls != "tensorflow.keras.Sequential":
            return False
        made = [value.node]
        for site in self._script.sites_named("add"):
            if isinstance(site.node.func, ast.Attribute) and dotted(site.node.func.value) == name:
                made.append(site.node)
        parts = [each for call in made for each in ast.walk(call)]
        words = {last_name(each.func) for each in parts if isinstance(each, ast.Call)}
        given = {each.arg for each in parts if isinstance(each, ast.keyword)}
        opaque = any(isinstance(each, ast.Starred | ast.comprehension) for each in parts)
        layers = made[0].args[0] if made[0].args else None
        shown = len(made) > 1 or isinstance(layers, ast.List)
        hidden = any(
            isinstance(each, ast.Name) or self._is_model(each, value.node)
            for each in getattr(layers, "elts", ())
        )
        return shown and not opaque and not hidden and not words & _SHAPED and not given & _SHAPES

    def _is_model(self, node: ast.expr, made: ast.Call) -> bool:
        """Return whether a layer of a model is a model itself, whose shape may be known."""
        return self._names.may_be(self._names.site_values(node, self._script.site_of(made)), *api.MODEL)

    def _is_unbuilt_class(self, value: object) -> bool:
        """Return whether an object is a model of the script's own class, which creates its variables on the
        first call.
        """
        if not isinstance(value, UserInstance) or value.node is None:
            return False
        if not self._names.descends(value.scope, *api.MODEL):
            return False
        inside = {
            site.name
            for cls in self._names.ancestry(value.scope)
            if isinstance(cls, Scope)
            for site in self._script.sites
            if site.scope.function() is not None and site.scope.function().owner() is cls  # type: ignore[union-attr]
        }
        return "build" not in inside and not {"add_weight", "Variable", "Input"} & inside

    def _is_called_before(self, name: str, broadcast: Site) -> bool:
        """Return whether a model is called, or built, before its variables are broadcast."""
        calls = []
        for site in self._script.sites:
            called = dotted(site.node.func)
            of_model = called == name or (
                isinstance(site.node.func, ast.Attribute)
                and site.name in _BUILDING
                and dotted(site.node.func.value) == name
            )
            if not of_model:
                if self._precedes(site, broadcast) and self._hands(site, name, broadcast):
                    return True
                continue
            calls.append(site)
            if site.scope.function() is not broadcast.scope.function():
                if self._function_called_before(site, broadcast):
                    return True
            elif self._precedes(site, broadcast):
                return True
        order = self._program.fact(Course).index if calls else {}
        return any(order.get(site, len(order)) < order.get(broadcast, 0) for site in calls)

    def _hands(self, site: Site, name: str, broadcast: Site) -> bool:
        """Return whether a call before the broadcast passes the model to a function that may call it."""
        if site.scope.function() is not broadcast.scope.function() or self._horovod.is_call(site, _SOME):
            return False
        functions = self._names.called_functions(site)
        return any(dotted(each) == name for each in site.node.args) and (
            bool(functions) or not self._names.full_names(site.node.func, site.scope, site.statement)
        )

    def _function_called_before(self, site: Site, broadcast: Site) -> bool:
        home = broadcast.scope.function()

        def callers(call: Site) -> list[Site]:
            is_home = call.scope.function() is home and call is not site
            return [] if is_home else callers_around(self._names, call)

        for call in reachable([site], callers):
            if call is not site and call.scope.function() is home and self._precedes(call, broadcast):
                return True
        return home is not None and site.scope.function() is None

    def _precedes(self, one: Site, other: Site) -> bool:
        """Return whether a call precedes another one in its function, or both are in one loop."""
        if one.scope.function() is not other.scope.function():
            return False
        span = self._script.span
        return span(one.node, one).start < span(other.node, other).start

    # (b) under a flag that a trace sets permanently

    def _of_traced_flags(self) -> Iterator[Spoiled]:
        executions = self._program.fact(Executions)
        told = set[Statement | None]()
        for site in self._horovod.calls(_SOME, _ALL):
            function = site.scope.function()
            if function is None or not executions.is_traced(site.scope):
                continue
            tests = [each for each in self._tests(site.statement) if self._is_set_here(each)]
            if tests and tests[0].statement not in told and not self._in_init_scope(site.statement):
                told.add(tests[0].statement)
                yield Spoiled(
                    site,
                    "The flag is set while TensorFlow traces this function, which it may do more than once: "
                    "the graph that runs has no broadcast.",
                )

    def _tests(self, statement: Statement) -> Iterator[Occurrence]:
        for below in statement.path():
            above = below.parent
            if above is not None and isinstance(above.node, ast.If) and above.scope is statement.scope:
                yield Occurrence(above.node.test, above.scope, above)

    def _is_set_here(self, test: Occurrence) -> bool:
        """Return whether a test reads a flag (global or attribute) that its own function sets to a
        constant.
        """
        names = {dotted(node) for node in ast.walk(test.node) if isinstance(node, ast.Name | ast.Attribute)}
        for statement in self._script.statements:
            node = statement.node
            if not isinstance(node, ast.Assign) or statement.scope.function() is not test.scope.function():
                continue
            targets = node.targets
            for target in targets:
                name = dotted(target)
                if name in names and isinstance(node.value, ast.Constant):
                    is_global = isinstance(target, ast.Attribute) or (
                        name in (test.scope.function() or test.scope).declared_global
                        or name in (test.scope.function() or test.scope).declared_nonlocal
                    )
                    if is_global:
                        return True
        return False

    def _in_init_scope(self, statement: Statement) -> bool:
        return any(
            isinstance(above.node, ast.With)
            and any(
                isinstance(item.context_expr, ast.Call)
                and "init_scope" in ast.unparse(item.context_expr.func)
                for item in above.node.items
            )
            for above in statement.path()
        )

    # (c) of pairs from an exhausted iterator

    def _of_spent(self) -> Iterator[Spoiled]:
        for site in self._horovod.calls(_SOME):
            for given in site.node.args[:1]:
                for name in _names_read(given):
                    zipped = self._zip(Occurrence(name, site.scope, site.statement))
                    if zipped is None:
                        continue
                    for step in self._program.fact(Steps).steps:
                        if (
                            isinstance(step.pairs, ast.Name)
                            and step.pairs.id == name.id
                            and self._precedes(step.site, site)
                        ):
                            yield Spoiled(
                                site,
                                f"apply_gradients exhausts {name.id}, so nothing is broadcast. "
                                f"Write {name.id} = list(zip(...)).",
                                zipped,
                            )

    def _zip(self, at: Occurrence) -> Site | None:
        """The call of ``zip`` that a name refers to directly."""
        step = self._names.steps_back(at)
        sources = step.sources if step is not None else ()
        if len(sources) != 1 or not isinstance(sources[0].node, ast.Call):
            return None
        site = self._script.site_of(sources[0].node)
        return site if self._names.calls(site, "builtins.zip") else None

    # (d) TensorFlow 1: before the variables, or before their initializer

    def _undone(self) -> Iterator[Spoiled]:
        if not self._runs_sessions:
            return
        for site in self._horovod.calls(_ALL):
            late = self._made_later(site)
            if late is not None:
                yield Spoiled(
                    site,
                    "Variables that are made after this operation are not broadcast. Make it last.",
                    late,
                )
                continue
            for run in self._script.sites_named("run"):
                if self._runs_broadcast(run, site):
                    again = self._initialized_later(run)
                    if again is not None and not self._is_broadcast_later(again):
                        yield Spoiled(
                            run,
                            "The initializer runs after the broadcast and undoes it. Run the broadcast last.",
                            again,
                        )

    def _undone_hooks(self) -> Iterator[Spoiled]:
        """The hooks whose broadcast is undone by an initializer that runs in their session."""
        hooks = self._horovod.calls("BroadcastGlobalVariablesHook")
        for run in self._script.sites_named("run") if hooks else ():
            if not isinstance(run.node.func, ast.Attribute) or not self._initializes(run):
                continue
            sessions = self._names.site_values(run.node.func.value, run)
            if self._names.may_be(sessions, *api.MONITORED_SESSION):
                yield Spoiled(
                    hooks[0],
                    "The initializer runs after the broadcast and undoes it. The session runs it by itself.",
                    run,
                )

    @cached_property
    def _runs_sessions(self) -> bool:
        return (
            next(self._script.sites_named("Session", "InteractiveSession", "MonitoredTrainingSession"), None)
            is not None
        )

    def _made_later(self, site: Site) -> Site | None:
        """The call that creates variables further down in the same function, or before the operation runs."""
        if self._is_inline(site):
            return None
        order = self._program.fact(Course).index
        runs = [each for each in self._script.sites_named("run") if self._runs_broadcast(each, site)]
        last = max((order.get(each, 0) for each in runs), default=0)
        return next(
            (
                each
                for each in self._script.sites_named(*_MAKING)
                if self._precedes(site, each) or order.get(site, last) < order.get(each, 0) < last
            ),
            None,
        )

    def _is_inline(self, site: Site) -> bool:
        """Return whether a broadcast is run directly where it is built."""
        return isinstance(site.parent, ast.Call) and not isinstance(site.statement.node, ast.Assign)

    def _runs_broadcast(self, run: Site, broadcast: Site) -> bool:
        for given in run.node.args[:1]:
            if given is broadcast.node:
                return True
            step = self._names.steps_back(Occurrence(given, run.scope, run.statement))
            if step is not None and any(each.node is broadcast.node for each in step.sources):
                return True
        return False

    def _is_same_session(self, run: Site, other: Site) -> bool:
        one, two = (
            self._names.site_values(each.node.func.value, each)
            for each in (run, other)
            if isinstance(each.node.func, ast.Attribute)
        )
        return bool(one & two)

    def _initialized_later(self, run: Site) -> Site | None:
        """The run of an initializer of all variables further down in the same function."""
        for other in self._script.sites_named("run"):
            if other is run or not self._precedes(run, other) or not self._is_same_session(run, other):
                continue
            if self._initializes(other):
                return other
        return None

    def _initializes(self, run: Site) -> bool:
        """Return whether a session is to run an initializer of all variables."""
        for given in run.node.args[:1]:
            parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
            steps = (self._names.steps_back(Occurrence(each, run.scope, run.statement)) for each in parts)
            nodes = [*parts, *(each.node for step in steps if step is not None for each in step.sources)]
            if any("global_variables_initializer" in ast.unparse(each) for each in nodes):
                return True
        return False

    def _is_broadcast_later(self, run: Site) -> bool:
        """Return whether all variables are broadcast further down in the same function."""
        return any(
            self._runs_broadcast(other, site) and self._precedes(run, other)
            for site in self._horovod.calls(_ALL)
            for other in self._script.sites_named("run")
        )

    # (e) the callback by hand

    def _by_hand(self) -> Iterator[Spoiled]:
        for site in self._script.sites_named("on_train_begin"):
            if not isinstance(site.node.func, ast.Attribute):
                continue
            values = self._names.site_values(site.node.func.value, site)
            if any(getattr(each, "cls", "").endswith(_CALLBACK) for each in values):
                yield Spoiled(
                    site, "The callback broadcasts when a batch ends, and not here: nothing is broadcast."
                )

    # Other ways to make ranks start alike

    def is_alike(self, seed: Occurrence) -> bool:
        """Return whether a seed is one for all ranks."""
        return self._program.fact(Uniformity).is_uniform(seed)

    def loads_for_all(self, load: Site, before: Site) -> bool:
        """Return whether all ranks load weights before a loop begins."""
        if self._program.fact(Branches).of_call(load) is not None:
            return False
        same = load.scope.function() is before.scope.function()
        return (same and self._precedes(load, before)) or (not same and load.name == "load_weights")


def _names_read(node: ast.expr) -> Iterator[ast.Name]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            yield each
