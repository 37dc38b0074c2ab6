"""Own parts: a script's own replacements for the parts of Horovod that work on Keras 2 only.

A callback may broadcast or average metrics, a session hook may broadcast, and a function may make the
optimizer of a given model average its gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Class, Function, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, dotted
from trainshift.training.horovod.existing_use import Horovod

BROADCAST = "BroadcastGlobalVariablesCallback"
AVERAGE = "MetricAverageCallback"
HOOK = "BroadcastGlobalVariablesHook"
RATE_CALLBACKS = ("LearningRateWarmupCallback", "LearningRateScheduleCallback")
"""Horovod's callbacks that set a rate."""
_BATCH_ENDS = ("on_train_batch_end", "on_batch_end")
_EPOCH_ENDS = "on_epoch_end"
_APPLY = ("apply", "apply_gradients")
_BEGINS, _IN_SESSION = "begin", "after_create_session"


class OwnHorovod:
    """The callbacks and hooks of one script that replace Horovod's, and its functions that distribute."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    def role(self, cls: Scope) -> str:
        """The Horovod callback or hook that a class replaces: `BROADCAST`, `AVERAGE` or `HOOK`; ""
        if none.
        """
        family = [each for each in self._names.ancestry(cls) if isinstance(each, Scope)]
        if any(each in self._broadcasting for each in family):
            return BROADCAST
        if any(each in self._hooks for each in family):
            return HOOK
        return AVERAGE if any(each in self._averaging for each in family) else ""

    def role_of(self, value: Value) -> str:
        """The callback or hook of Horovod that an object replaces."""
        return self.role(value.scope) if isinstance(value, UserInstance) else ""

    def distributes(self, function: Scope) -> bool:
        """Return whether a function makes the optimizer of its model argument average gradients."""
        return function in self._distributors

    def averages_what_it_is_given(self, function: Scope) -> bool:
        """Return whether a function replaces the method by which its optimizer argument applies gradients."""
        return any(
            each.binding.scope is function and dotted(each.base) in function.bindings
            for name in (_APPLY if any(function in each.functions() for each in self._applying) else ())
            for each in self._script.attribute_bindings(name)
        )

    def averages(self, at: Occurrence) -> bool:
        """Return whether an expression is an optimizer whose gradients the script itself averages."""
        if not self._applying:
            return False
        values = self._names.values(at.node, at.scope, at.statement)
        if any(isinstance(each, UserInstance) and self._is_averaging(each.scope) for each in values):
            return True
        return any(
            isinstance(new, Function)
            and new.scope in self._applying
            and values & self._names.values(each.base, each.binding.scope, each.binding.statement)
            for name in _APPLY
            for each in self._script.attribute_bindings(name)
            if each.binding.value is not None
            for new in self._names.values(each.binding.value, each.binding.scope, each.binding.statement)
        )

    def _is_averaging(self, cls: Scope) -> bool:
        family = {each for each in self._names.ancestry(cls) if isinstance(each, Scope)}
        return any(each.name in _APPLY and each.owner() in family for each in self._applying)

    @cached_property
    def _applying(self) -> set[Scope]:
        """The functions that average something themselves."""
        calls = self._horovod.calls("allreduce", "grouped_allreduce")
        return {each for site in calls for each in site.scope.functions()}

    @cached_property
    def broadcasts(self) -> list[Site]:
        """The calls that create a broadcasting callback or hook."""
        return self._making(BROADCAST, HOOK) if self._broadcasting or self._hooks else []

    @cached_property
    def hooks(self) -> list[Site]:
        """The calls that create a broadcasting hook, Horovod's or one of the script."""
        return [*self._horovod.calls(HOOK), *(self._making(HOOK) if self._hooks else ())]

    def _making(self, *roles: str) -> list[Site]:
        return [
            site
            for site in self._script.sites
            if any(
                isinstance(value, Class) and self.role(value.scope) in roles
                for value in self._names.callee(site)
            )
        ]

    @cached_property
    def distributed(self) -> list[tuple[Site, ast.expr]]:
        """The calls that make a model's optimizer average its gradients, each with that model."""
        found = []
        for site in self._script.sites if self._distributors else ():
            for function in self._names.called_functions(site):
                for name in self._distributors.get(function, ()):
                    given = self._names.argument(site, function, name)
                    if given is not None:
                        found.append((site, given))
        return found

    def reductions(self, model: ast.expr, site: Site) -> list[Site]:
        """The calls in the script that average the gradients of a compiled model."""
        function = site.scope.function()
        called = {
            each
            for call, given in self.distributed
            if call.scope.function() is function and dotted(given) == dotted(model) != ""
            for each in self._names.called_functions(call)
        }
        return [
            each
            for each in (self._horovod.calls("allreduce") if called else ())
            if called.intersection(each.scope.functions())
        ]

    def is_distributed(self, model: ast.expr, site: Site) -> bool:
        """Return whether the script makes the optimizer of a compiled model average, at its `compile`."""
        function = site.scope.function()
        return any(
            call.scope.function() is function and dotted(given) == dotted(model) != ""
            for call, given in self.distributed
        )

    @cached_property
    def _broadcasting(self) -> set[Scope]:
        calls = self._horovod.calls("broadcast_variables")
        return {owner for site in calls for function, owner in _methods(site) if function.name in _BATCH_ENDS}

    @cached_property
    def _hooks(self) -> set[Scope]:
        """The classes that create a broadcast at their beginning, and run an operation once there is a
        session.
        """
        calls = self._horovod.calls("broadcast_global_variables")
        making = {owner for site in calls for function, owner in _methods(site) if function.name == _BEGINS}
        return {
            owner
            for site in (self._script.sites_named("run") if making else ())
            for function, owner in _methods(site)
            if function.name == _IN_SESSION and owner in making
        }

    @cached_property
    def _averaging(self) -> set[Scope]:
        calls = self._horovod.calls("allreduce", "grouped_allreduce")
        return {owner for site in calls for function, owner in _methods(site) if function.name == _EPOCH_ENDS}

    @cached_property
    def _distributors(self) -> dict[Scope, set[str]]:
        """The functions that replace the `apply` of a parameter's optimizer by one that averages."""
        averaging = {each for site in self._horovod.calls("allreduce") for each in site.scope.functions()}
        found: dict[Scope, set[str]] = {}
        for each in self._script.attribute_bindings("apply") if averaging else ():
            name, _, rest = dotted(each.base).partition(".")
            function = each.binding.scope.function()
            if rest == "optimizer" and function in averaging and function is not None:
                found.setdefault(function, set()).add(name)
        return found


def _methods(site: Site) -> Iterator[tuple[Scope, Scope]]:
    """Yield the methods around a call, each with its class."""
    for function in site.scope.functions():
        owner = function.owner()
        if owner is not None:
            yield function, owner
