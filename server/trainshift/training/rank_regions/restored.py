"""Restored: the variables that a call restores from a checkpoint, and whether only rank 0 has written it."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import called_from, calls_leading_to, functions_leading_to
from trainshift.training.execution.executions import Executions, run_apart
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.uniformity.uniformity import Uniformity

# Methods that read an earlier checkpoint.
_METHODS = (*named("restoring"), "load_weights")
# Methods of callbacks that Keras calls before the first step.
_EARLY = frozenset({"__init__", "set_model", "set_params", "on_train_begin"})
# A checkpoint is followed through at most this many managers: beyond, its contents are unknown.
_DEEPEST = 3


class Restored:
    """The calls of one script that restore or load weights: when they run, and the variables they set."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def follows_training(self, site: Site) -> bool:
        """Return whether a training step may precede the call, wherever its function is called."""
        for call in calls_leading_to(self._names, site):
            function = call.scope.function()
            late = function is not None and function.name not in _EARLY and self._is_of_callback(call)
            if late or self._follows_here(call.statement):
                return True
        return False

    def waits(self, site: Site) -> bool:
        """Return whether a call runs a function of the script in which ranks wait for rank 0's file."""
        return bool(self._waiting) and not self._waiting.isdisjoint(self._names.called_functions(site))

    @cached_property
    def _waiting(self) -> set[Scope]:
        """The functions that read files saved earlier, and their callers."""
        late = (site for site in self._script.sites_named(*_METHODS) if self.follows_training(site))
        return set(functions_leading_to((site.scope.function() for site in late), called_from(self._names)))

    def together(self, statement: Statement) -> bool:
        """Return whether all ranks at a statement's block certainly reach the statement."""
        return not any(
            isinstance(above.node, ast.Try)
            or (isinstance(above.node, ast.If) and not self._is_same(above.node.test, above))
            for above in statement.ancestors()
        )

    def path(self, site: Site) -> ast.expr | None:
        """The path argument of a restoring call."""
        return argument(site.node, 0, "filepath" if site.name == "load_weights" else "save_path")

    def is_shared(self, site: Site) -> bool:
        """Return whether rank 0 already sends the path to the others."""
        path = self.path(site)
        return isinstance(path, ast.Call) and any(
            path is each.node for each in self._program.fact(Horovod).calls("broadcast_object", "broadcast")
        )

    def is_trained(self, site: Site) -> bool:
        """Return whether the method's object is a model that some step or `fit` trains."""
        assert isinstance(site.node.func, ast.Attribute)
        known = self._names.site_values(site.node.func.value, site)
        trained = [(model, step.site) for step in self._program.fact(Steps).steps for model in step.models]
        for fit in self._program.fact(WhatTrains).others:
            if isinstance(fit.node.func, ast.Attribute):
                trained.append((fit.node.func.value, fit))
        return any(
            (value in known and self._is_made_once(value))
            or (dotted(model) == dotted(site.node.func.value) != "" and at.scope is site.scope)
            or self._is_one_name(model, at, site.node.func.value, site)
            for model, at in trained
            if not run_apart(at.statement, site.statement)
            for value in self._names.site_values(model, at)
        )

    def _is_made_once(self, value: Value) -> bool:
        """Return whether a value is a single object, and not one of several that a function creates."""
        if isinstance(value, UserInstance) and value.node is None:
            return True
        made = value.node if isinstance(value, Instance | UserInstance) else None
        return made is not None and self._program.fact(Executions).runs_once(self._script.site_of(made))

    def _is_one_name(self, one: ast.expr, at: Site, other: ast.expr, site: Site) -> bool:
        """Return whether two names mean the same, whatever object that is."""
        if not isinstance(one, ast.Name) or not isinstance(other, ast.Name):
            return False
        found = self._names.lookup(one.id, at.scope, at.statement)[1]
        return len(found) == 1 and found == self._names.lookup(other.id, site.scope, site.statement)[1]

    def of_saver(self, site: Site) -> bool:
        """Return whether the method is of a TensorFlow 1 `Saver`, which restores into a session."""
        assert isinstance(site.node.func, ast.Attribute)
        values = self._names.site_values(site.node.func.value, site)
        return self._names.may_be(values, *api.SAVER)

    def variables(self, site: Site, tf: str) -> list[str]:
        """The code of the variables that every step trains, where the names mean the same at the call.

        `tf` is the name of TensorFlow's module.
        """
        of = {True: self._program.fact(Target).of_model, False: self._program.fact(Target).of_optimizer}
        found = [
            of[is_model](self._script.text(node, at), tf) for node, at, is_model in self._trained_at(site)
        ]
        return list(dict.fromkeys(found))

    def is_trained_alone(self, site: Site) -> bool:
        """Return whether a checkpoint certainly contains only the objects of `variables`."""
        assert isinstance(site.node.func, ast.Attribute)
        held = self._held(site.node.func.value, site)
        if held is None:
            return False
        trained = {value for node, at, _ in self._trained_at(site) for value in self._objects(node, at)}
        return all(bool(found := self._objects(*each)) and found <= trained for each in held)

    # Checkpointed objects, and trained objects

    def _trained_at(self, site: Site) -> list[tuple[ast.expr, Site, bool]]:
        """The models or optimizers of the steps that are the same objects at `site`, each with whether it
        is a model.
        """
        return [
            (node, step.site, is_model)
            for step in self._program.fact(Steps).steps
            for node, is_model in [*((model, True) for model in step.models), (step.receiver, False)]
            if self._names.site_values(node, step.site) == self._names.site_values(node, site)
            and self._program.fact(Executions).is_single(node, step.site)
        ]

    def _held(self, node: ast.expr, site: Site, depth: int = 0) -> list[tuple[ast.expr, Site]] | None:
        """The objects in a checkpoint, or in a manager's; None if they are unknown."""
        found: list[tuple[ast.expr, Site]] = []
        values = self._names.site_values(node, site)
        for value in values:
            if not isinstance(value, Instance) or depth > _DEEPEST:
                return None
            made = self._script.site_of(value.node)
            if self._names.is_a(value, *api.CHECKPOINT_MANAGER):
                given = argument(value.node, 0, "checkpoint")
                inner = self._held(given, made, depth + 1) if given is not None else None
                if inner is None:
                    return None
                found += inner
            elif self._names.is_a(value, *api.CHECKPOINT):
                found += [(each, made) for each in value.node.args]
                found += [(word.value, made) for word in value.node.keywords]
                if any(word.arg is None for word in value.node.keywords):
                    return None
            else:
                return None
        return found if values else None

    def _objects(self, node: ast.expr, site: Site) -> set[Value]:
        """The possible objects of an expression; none if one of them is unknown."""
        values = set(self._names.site_values(node, site))
        return values if all(isinstance(each, Instance | UserInstance) for each in values) else set()

    # When a call runs

    def _follows_here(self, statement: Statement) -> bool:
        """Return whether a step in the same function may precede the statement."""
        trains = self._program.fact(WhatTrains).statement_trains
        for current in statement.path():
            if current is not statement and isinstance(current.node, LOOPS) and trains(current):
                return True
            block, index = self._script.siblings(current)
            if any(trains(before) for before in block[:index] if _runs(before)):
                return True
        return False

    def _is_of_callback(self, site: Site) -> bool:
        """Return whether the code is a method of a Keras callback."""
        cls = class_around(site.scope)
        return cls is not None and self._names.is_a(UserInstance(cls, None), *api.CALLBACK)

    def _is_same(self, test: ast.expr, statement: Statement) -> bool:
        return self._program.fact(Uniformity).is_uniform(Occurrence(test, statement.scope, statement))


def _runs(statement: Statement) -> bool:
    """Return whether the body of a statement runs in place, unlike that of a definition."""
    return not isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
