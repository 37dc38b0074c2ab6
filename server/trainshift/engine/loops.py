"""What kind of training a script does, and whether the rules that are here convert it.

This is SPEC §2 for one file, as far as conversion needs it: the pattern, or what was looked for.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trainshift.core import api
from trainshift.core.facts import Scope, Site
from trainshift.core.names import Function
from trainshift.core.program import Program
from trainshift.core.source import Span

_FITTING = ("fit", "fit_generator", "train_on_batch")
_SESSIONS = (
    *api.SESSION,
    *api.MONITORED_SESSION,
    "tensorflow.compat.v1.train.MonitoredTrainingSession",
    "tensorflow.compat.v1.train.Supervisor",
)
_LOOKED_FOR = (
    "no training loop: looked for optimizer.apply_gradients(...) fed by a tf.GradientTape, "
    "model.fit(...), a TF1 session and an Estimator"
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether a script can be converted; if not, whether that is a refusal, why, and where."""

    convertible: bool
    refused: bool = False
    reason: str = ""
    at: Span | None = None


def look(program: Program) -> Outlook:
    """Tell the training pattern of a program."""
    for found in (_foreign_loop(program), _strategy(program), _thread(program)):
        if found is not None:
            site, reason = found
            return Outlook(False, True, reason, program.script.span(site.node, site))
    if program.training.steps:
        return Outlook(True)
    return _nothing(program)


def _foreign_loop(program: Program) -> tuple[Site, str] | None:
    """A loop of another pattern than the tape's."""
    names = program.names
    # Next to a tape's loop, a session is the TF1 way to set GPU options.
    tapes = any(step.gradients for step in program.training.steps)
    for site in program.script.sites_named(*_FITTING):
        if _is_unused(program, site):
            continue
        own = any(isinstance(value, Function) for value in names.callee(site))
        if not own and names.may_be(names.site_values(_receiver(site), site), *api.MODEL):
            return site, f"model.{site.name}(...) is a Keras training loop, which is not converted yet"
    for site in program.script.sites_named("minimize"):
        if names.may_be(names.site_values(_receiver(site), site), *api.OPTIMIZERS):
            return site, "optimizer.minimize(...) hides its tape; use apply_gradients with a tf.GradientTape"
    for site in program.script.sites:
        for name in names.full_names(site.node.func, site.scope, site.statement):
            if name in _SESSIONS and not tapes:
                return site, "a TF1 session is not converted yet"
            if api.is_subclass(name, *api.ESTIMATOR):
                return site, "an Estimator is not converted yet"
    return None


def _strategy(program: Program) -> tuple[Site, str] | None:
    for site in program.script.sites:
        for name in program.names.full_names(site.node.func, site.scope, site.statement):
            if api.is_subclass(name, *api.STRATEGY):
                return site, "tf.distribute already distributes this script; remove the strategy first"
    return None


def _thread(program: Program) -> tuple[Site, str] | None:
    """A training step in a thread: Horovod's reductions of two threads would meet."""
    for step in program.training.steps:
        scope: Scope | None = step.site.scope
        while scope is not None:
            if scope.kind == "class" and "threading.Thread" in program.names.library_bases(scope):
                return (
                    step.site,
                    "threads that train at the same time cannot reduce their gradients by Horovod",
                )
            scope = scope.parent
    return None


def _is_unused(program: Program, site: Site) -> bool:
    """Whether the call stands in a function that nothing in the script mentions."""
    function = site.scope.function()
    return function is not None and bool(function.name) and program.script.loads(function.name) == 0


def _nothing(program: Program) -> Outlook:
    tapes = program.training.tapes
    assigned = [
        site for site in program.script.sites_named("assign_sub", "assign_add") if tapes and site.node.args
    ]
    if tapes and assigned and program.training.gradients:
        site = assigned[0]
        reason = (
            "a tf.GradientTape is used, but its gradients reach no optimizer.apply_gradients(...); "
            "weights that are updated by hand are not converted"
        )
        return Outlook(False, True, reason, program.script.span(site.node, site))
    return Outlook(False, False, _LOOKED_FOR)


def _receiver(site: Site) -> ast.expr:
    """The object whose method is called; the function itself where it is no method."""
    return site.node.func.value if isinstance(site.node.func, ast.Attribute) else site.node.func
