"""Find the training loops of a script that cannot be converted, with the reason and the place."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from trainshift.core.finding import Verdict
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.engine.findings import ON_LOOPS, find
from trainshift.engine.outlook.chosen import chosen_training
from trainshift.engine.outlook.hidden import hidden_horovod
from trainshift.engine.outlook.sessions import only_predicts
from trainshift.engine.outlook.starred import hidden_fit, hidden_start
from trainshift.engine.outlook.unseen import (
    handed_optimizer,
    is_handed_on,
    unrun_step,
    unseen_run,
    unseen_training,
)
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.engine.versions.runtime import contradiction
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Instance
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument
from trainshift.rewriting.strategies.leaving import Leaving
from trainshift.rewriting.strategies.uses import Strategies
from trainshift.training.devices.device_places import DevicePlaces, Where
from trainshift.training.execution.executions import is_of_one_branch
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import HOOK
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.keras_version.keras_signs import TENSORFLOW, KerasSigns
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.agents import Agents
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import LOOKED_FOR, Loops
from trainshift.training.loops.steps import Step, Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.optimizers.agents import AgentOptimizers
from trainshift.training.optimizers.graphs import Graphs

# Names that distribute a script themselves, or hide its training loop.
_SERVERS = "parameter servers already distribute this script; remove them first"
_SPLIT = (
    "multi_gpu_model splits each batch over the GPUs of one process, but each rank has one GPU; "
    "remove it and its option, and train the model passed to it"
)
_TOWERS = "each rank has one GPU, /gpu:0; build the model once, on that one"
_KERAS_OWN = "keras.distribution already places this script's model and data on devices; remove it first"
_FOREIGN = {
    "train.Supervisor": "a Supervisor hides its session; use a MonitoredTrainingSession",
    "train.SyncReplicasOptimizer": _SERVERS,
    "train.Server": _SERVERS,
    "train.ClusterSpec": _SERVERS,
    "train.replica_device_setter": _SERVERS,
    "distribute.Server": _SERVERS,
    "keras.distribution.DataParallel": _KERAS_OWN,
    "keras.distribution.ModelParallel": _KERAS_OWN,
    "keras.distribution.initialize": _KERAS_OWN,
    "keras.distribution.set_distribution": _KERAS_OWN,
    "keras.utils.multi_gpu_model": _SPLIT,
    "keras.utils.training_utils.multi_gpu_model": _SPLIT,
    "contrib.training.train": "slim's training loop hides its session; use a MonitoredTrainingSession",
    "contrib.slim.learning.train": "slim's training loop hides its session; use a MonitoredTrainingSession",
}
_PLACES = {Where.OTHER_GPU: _TOWERS, Where.OTHER_PROCESS: _SERVERS}
_HIDING = ("create_train_op", "optimize_loss")
# The reason to refuse a loop of a pattern; `{call}` is the called name.
_REASONS = {
    Pattern.STRATEGY: "tf.distribute already distributes this script; remove the strategy first",
    Pattern.MINIMIZE: "{call}(...) computes its gradients itself; use a tf.GradientTape and apply_gradients",
    Pattern.LIBRARY: "this trains through a library that hides the fit; call the model's own fit instead",
    Pattern.BY_HAND: "the gradients of this tf.GradientTape reach no optimizer.apply_gradients(...); "
    "use one, as weights updated by hand cannot be converted",
}
# The reason if the script does not show whether it is one.
_PERHAPS = {
    Pattern.STRATEGY: (
        "{call}() may belong to a tf.distribute strategy, which already distributes; remove "
        "the strategy first"
    ),
}


_NO_TEXT = "{name} cannot be converted for Keras 3 yet; use TensorFlow 2.15"
# Horovod's names for Keras 2, and the silent effect of its optimizer on Keras 3.
_FOR_KERAS_2 = ("DistributedOptimizer", "DistributedGradientTape", "BroadcastGlobalVariablesCallback")
_APART = "hvd.{name} does not work on Keras 3, where the ranks would diverge; remove it first"
_FAILS = "hvd.{name} {told}; remove it first"
_GONE = "Horovod has no hvd.{name} from TensorFlow 2.16 on; remove it first"
_ESTIMATOR = "tf.estimator was removed after TensorFlow 2.15; use that version, or a Keras model"
_PRIVATE_KERAS = "tensorflow.python.keras."
_PRIVATE = (
    "{call} trains a model of tensorflow.python.keras, a private copy of Keras that Horovod does not know; "
    "import Keras from tensorflow.keras"
)
_BARE = "line {line} imports keras, which is Keras 3 beside tf_keras; import it from tensorflow or tf_keras"
_STATELESS = "stateless_apply"
_APPLIED = "stateless_apply(...) of an optimizer is not converted; use apply_gradients(zip(grads, weights))"
_BACKEND = 'Keras runs on {backend} here, and Horovod needs TensorFlow; set KERAS_BACKEND to "tensorflow"'
_OF_LOOPS = "TL02"  # Its page lists the loops that can be converted.


class Outlook(Struct, frozen=True):
    """The answer to "can this script be converted?"; if not, whether that is a refusal, the reason, and the
    place.

    The page of `code` explains a refusal; `causes` are further places that caused it.
    """

    convertible: bool
    refused: bool = False
    reason: str = ""
    at: Span | None = None
    code: str = ""
    causes: tuple[Span, ...] = ()


def look(program: Program, pause: Callable[[], None] = lambda: None) -> Outlook:
    """Return whether the loops of a program can be converted.

    `pause` is called repeatedly, and may raise to abort.
    """
    strategy = program.fact(Leaving).problem
    if strategy is not None:
        makers = (program.script.span(site.node, site) for site in program.fact(Strategies).makers)
        return Outlook(False, True, strategy[1], strategy[0], "HV17", tuple(makers))
    if only_predicts(program):
        return Outlook(False, reason=LOOKED_FOR)
    for obstacle in (
        _foreign_loop,
        _foreign_setup,
        _librarys_training,
        _agents,
        _foreign_place,
        unseen_run,
        unrun_step,
        _thread,
        hidden_start,
        hidden_horovod,
    ):
        found = obstacle(program)
        if found is not None:
            return _refused(program, *found)
    loops = (
        any(_is_loops(program, step) for step in program.fact(Steps).steps)
        or program.fact(Fits).fits
        or program.fact(Fits).batches
        or program.fact(Graphs).is_used
        or program.fact(Agents).trainings
    )
    if loops:
        return _without_text(program) or Outlook(True)
    return _perhaps(program) or _doubted(program, pause) or Outlook(False, reason=LOOKED_FOR)


def _without_text(program: Program) -> Outlook | None:
    """Refuse code that the rules cannot write for TensorFlow 2.16 and later, or for the chosen options."""
    if told := contradiction(program.choices):
        return Outlook(False, True, told, code=UNSUPPORTED_VERSION.code)
    target = program.fact(Target)
    loops = program.fact(Loops).own if target.is_newer else []
    estimator = next((loop for loop in loops if loop.pattern is Pattern.ESTIMATOR), None)
    if estimator is not None:
        return _refused(program, estimator.sites[0], _ESTIMATOR)
    for site in program.fact(Horovod).calls(HOOK) if target.is_newer else ():
        return _refused(program, site, _GONE.format(name=site.name))
    if target.is_legacy and (bare := program.whole.fact(KerasSigns).bare) is not None:
        return Outlook(False, True, _BARE.format(line=bare.line), code=_OF_LOOPS)
    if not target.is_keras3:
        return None
    backend, setting = program.fact(KerasSigns).backend
    if backend not in ("", TENSORFLOW):
        return Outlook(False, True, _BACKEND.format(backend=backend), setting, _OF_LOOPS)
    chosen, told = program.choices.backend
    if not backend and chosen not in ("", TENSORFLOW):
        reason = f"{_BACKEND.format(backend=chosen)} ({told})"
        return Outlook(False, True, reason, code=_OF_LOOPS)
    for site in program.script.sites_named(_STATELESS):
        return _refused(program, site, _APPLIED)
    for site in program.fact(Horovod).calls(*_FOR_KERAS_2):
        if not program.fact(ForKeras2).is_of_graph(site):
            return _refused(program, site, _APART.format(name=site.name))
    for failing in program.fact(ForKeras2).failing:
        return _refused(program, failing.site, _FAILS.format(name=failing.name, told=failing.told))
    strategies = program.fact(Strategies).makers
    if strategies or program.choices.sync_batch_norm:
        reason = _NO_TEXT.format(name="this program")
        if strategies:
            return _refused(program, strategies[0], reason)
        return Outlook(False, True, reason, code=_OF_LOOPS)
    return None


def _refused(program: Program, site: Site, reason: str) -> Outlook:
    return Outlook(False, True, reason, program.script.span(site.node, site), _OF_LOOPS)


def _is_loops(program: Program, step: Step) -> bool:
    """Return whether a loop makes the step, rather than an optimizer in its own loop."""
    fed = bool(step.gradients) or step.reduced
    return fed or not program.fact(Steps).is_optimizers_own(step.site.scope)


def _perhaps(program: Program) -> Outlook | None:
    """Refuse a program whose only possible training call is a `fit` of an unknown object."""
    for loop in program.fact(Loops).possible:
        if any(_is_of_private_keras(program, each) for each in loop.models):
            return Outlook(False, True, _PRIVATE.format(call=loop.call), loop.span, _OF_LOOPS)
    for loop in program.fact(Loops).possible:
        reason = (
            f"Trainshift cannot tell whether {loop.call} trains a Keras model; make the model in this program"
        )
        return Outlook(False, True, reason, loop.span, _OF_LOOPS)
    for sought in (hidden_fit, chosen_training, unseen_training, handed_optimizer):
        hidden = sought(program)
        if hidden is not None:
            return _refused(program, *hidden)
    return None


def _is_of_private_keras(program: Program, model: Occurrence) -> bool:
    values = program.names.values(*model[:3])
    return any(isinstance(each, Instance) and each.cls.startswith(_PRIVATE_KERAS) for each in values)


def _doubted(program: Program, pause: Callable[[], None]) -> Outlook | None:
    """Refuse a script without a known loop in which a restriction on loops has a finding."""
    for found in find(program, ON_LOOPS, pause).found:
        if found.verdict is not Verdict.HARMLESS:
            return Outlook(False, True, f"{found.code}: {found.message}", found.span, found.code)
    return None


def _foreign_loop(program: Program) -> tuple[Site, str] | None:
    """A loop of another pattern than the tape's."""
    loops = program.fact(Loops).own
    taped = any(loop.pattern is Pattern.GRAD_TAPE for loop in loops)
    for loop in loops:
        # Weights that are assigned beside a tape's loop (an exponential average, say) are not trained.
        if loop.pattern in _REASONS and not (taped and loop.pattern is Pattern.BY_HAND):
            site = loop.origin or loop.sites[0]
            reasons = _REASONS if loop.certain else _PERHAPS
            reason = reasons.get(loop.pattern, _REASONS[loop.pattern])
            known = program.fact(Libraries).called(site, Role.TRAINS)
            if loop.pattern is Pattern.LIBRARY and known is not None:
                return site, known.text("reason")
            return site, reason.format(call=one_line(program.script.text(site.node.func, site)))
    return None


def _foreign_setup(program: Program) -> tuple[Site, str] | None:
    """A call that only a loop of another pattern needs, whose loop was not found."""
    foreign_names = api.last_names(
        *(f"tensorflow.{prefix}{name}" for prefix in ("", "compat.v1.") for name in _FOREIGN)
    )
    for site in program.script.sites_calling(foreign_names.union(_HIDING, api.last_names(*api.STRATEGY))):
        if site.name in _HIDING and program.fact(Graphs).is_used and not _is_own(program, site):
            return site, f"the optimizer that {site.name} uses cannot be wrapped; call its minimize instead"
        for name in program.names.full_names(site.node.func, site.scope, site.statement):
            foreign = _FOREIGN.get(name.removeprefix("tensorflow.").removeprefix("compat.v1."))
            trains = program.fact(Loops).own or program.fact(Loops).possible
            if foreign is _SPLIT and not trains and not is_handed_on(program, site):
                continue  # It predicts.
            if foreign is not None and name.startswith(("tensorflow.", "keras.")):
                return site, foreign
            if api.is_subclass(name, *api.STRATEGY) and not is_of_one_branch(site):
                return site, _REASONS[Pattern.STRATEGY]
    return None


def _librarys_training(program: Program) -> tuple[Site, str] | None:
    """A call that trains through a library in a way that Trainshift does not convert."""
    for site, known in program.fact(Libraries).sites(Role.TRAINS):
        if not program.fact(Horovod).site_on_root(site):
            return site, known.text("reason")
    return None


def _agents(program: Program) -> tuple[Site, str] | None:
    """An agent that trains in a way that Trainshift does not convert."""
    return program.fact(AgentOptimizers).problem


def _foreign_place(program: Program) -> tuple[Site, str] | None:
    """Operations that are placed on devices which a rank does not have."""
    for place in program.fact(DevicePlaces).all:
        if place.where in _PLACES and _trains(program):
            return place.site, _PLACES[place.where]
    return None


def _trains(program: Program) -> bool:
    """Return whether a script trains in a way that could be converted."""
    return bool(program.fact(Loops).own) or program.fact(Graphs).is_used


def _is_own(program: Program, site: Site) -> bool:
    """Return whether the call runs a function of the script."""
    return any(isinstance(value, Function) for value in program.names.callee(site))


def _thread(program: Program) -> tuple[Site, str] | None:
    """A training step in a thread: Horovod's reductions of two threads would collide."""
    reason = (
        "threads that train at the same time cannot average their gradients with Horovod; train in one thread"
    )
    for step in program.fact(Steps).steps:
        scope: Scope | None = step.site.scope
        while scope is not None:
            if scope.kind == "class" and "threading.Thread" in program.names.library_bases(scope):
                return step.site, reason
            scope = scope.parent
    for site in program.script.sites_named("Thread"):
        target = argument(site.node, 1, "target")
        if target is not None and program.names.calls(site, "threading.Thread"):
            for value in program.names.site_values(target, site):
                if isinstance(value, Function) and value.scope in program.fact(WhatTrains).functions:
                    return site, reason
    return None
