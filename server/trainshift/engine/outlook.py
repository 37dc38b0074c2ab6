"""Whether the rules that are here convert the training loops of a script; if not, why, and where."""

from __future__ import annotations

from dataclasses import dataclass

from trainshift.core import api
from trainshift.core.facts import Scope, Site, argument
from trainshift.core.loops import LOOKED_FOR
from trainshift.core.names import Function
from trainshift.core.patterns import MONITORED, Loop, Pattern
from trainshift.core.program import Program
from trainshift.core.source import Span

_SESSIONS = (*api.SESSION, *MONITORED, "tensorflow.compat.v1.train.Supervisor")
_SESSION_REASON = "a TF1 session is not converted yet"
_ESTIMATOR_REASON = "an Estimator is not converted yet"
# Why a loop of a pattern is refused; `{method}` is the method that trains.
_REASONS = {
    Pattern.STRATEGY: "tf.distribute already distributes this script; remove the strategy first",
    Pattern.OPTIMIZER: "model.{method}(...) is a Keras training loop, which is not converted yet",
    Pattern.MINIMIZE: "optimizer.minimize(...) hides its tape; use apply_gradients with a tf.GradientTape",
    Pattern.ESTIMATOR: _ESTIMATOR_REASON,
    Pattern.SESSION: _SESSION_REASON,
    Pattern.MONITORED_SESSION: _SESSION_REASON,
    Pattern.BY_HAND: "a tf.GradientTape is used, but its gradients reach no optimizer.apply_gradients(...); "
    "weights that are updated by hand are not converted",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether a script can be converted; if not, whether that is a refusal, why, and where."""

    convertible: bool
    refused: bool = False
    reason: str = ""
    at: Span | None = None


def look(program: Program) -> Outlook:
    """Tell whether the loops of a program can be converted."""
    for found in (_foreign_loop(program), _foreign_setup(program), _thread(program)):
        if found is not None:
            site, reason = found
            return Outlook(False, True, reason, program.script.span(site.node, site))
    return Outlook(True) if program.training.steps else Outlook(False, False, LOOKED_FOR)


def _foreign_loop(program: Program) -> tuple[Site, str] | None:
    """A loop of another pattern than the tape's."""
    loops = program.loops.own
    taped = any(loop.pattern is Pattern.GRAD_TAPE for loop in loops)
    for loop in loops:
        # Weights that are assigned beside a tape's loop (an exponential average, say) are not trained.
        if loop.pattern in _REASONS and loop.certain and not (taped and loop.pattern is Pattern.BY_HAND):
            if not _is_unused(program, loop):
                site = loop.origin or loop.sites[0]
                return site, _REASONS[loop.pattern].format(method=loop.sites[0].name)
    return None


def _foreign_setup(program: Program) -> tuple[Site, str] | None:
    """What only a loop of another pattern needs, where the loop itself is not seen."""
    # Next to a tape's loop, a session is the TF1 way to set GPU options.
    tapes = any(step.gradients for step in program.training.steps)
    for site in program.script.sites:
        for name in program.names.full_names(site.node.func, site.scope, site.statement):
            if name in _SESSIONS and not tapes:
                return site, _SESSION_REASON
            if api.is_subclass(name, *api.ESTIMATOR):
                return site, _ESTIMATOR_REASON
            if api.is_subclass(name, *api.STRATEGY):
                return site, _REASONS[Pattern.STRATEGY]
    return None


def _thread(program: Program) -> tuple[Site, str] | None:
    """A training step in a thread: Horovod's reductions of two threads would meet."""
    reason = "threads that train at the same time cannot reduce their gradients by Horovod"
    for step in program.training.steps:
        scope: Scope | None = step.site.scope
        while scope is not None:
            if scope.kind == "class" and "threading.Thread" in program.names.library_bases(scope):
                return step.site, reason
            scope = scope.parent
    for site in program.script.sites_named("Thread"):
        target = argument(site.node, 1, "target")
        if target is not None and program.names.calls(site, "threading.Thread"):
            for value in program.names.site_values(target, site):
                if isinstance(value, Function) and value.scope in program.training.functions:
                    return site, reason
    return None


def _is_unused(program: Program, loop: Loop) -> bool:
    """Whether the loop stands in a function that nothing in the script mentions, and is no tape's."""
    function = loop.function
    return (
        loop.pattern is Pattern.OPTIMIZER
        and function is not None
        and bool(function.name)
        and program.script.loads(function.name) == 0
    )
