"""Helpers: short definitions that a file gets for newer versions, which Horovod does not support.

Each is below the set-up of the file that uses it, and is recognised by its behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.training.horovod.own_horovod import AVERAGE, BROADCAST, HOOK, OwnHorovod
from trainshift.training.keras_version.target import Target
from trainshift.training.optimizers.agents import AgentOptimizers
from trainshift.training.optimizers.compiled import Compiled
from trainshift.training.optimizers.reductions import Form, Reductions
from trainshift.training.rank_regions.callbacks import CallbackLists
from trainshift.training.rank_regions.hooks import HookLists

DISTRIBUTE = "hvd_distribute"
AVERAGED = "hvd_averaged"
_NAMES = {
    DISTRIBUTE: DISTRIBUTE,
    AVERAGED: AVERAGED,
    BROADCAST: "HvdBroadcast",
    AVERAGE: "HvdAverage",
    HOOK: "HvdBroadcastHook",
}
_TEXTS = {
    DISTRIBUTE: '''
def {name}(model):
    """Average the gradients over all ranks, without XLA, which knows no Horovod."""
    model.jit_compile = False
    apply = model.optimizer.apply

    def distributed_apply(grads, trainable_variables=None):
        grads = [None if grad is None else {hvd}.allreduce(grad{more}) for grad in grads]
        return apply(grads, trainable_variables)

    model.optimizer.apply = distributed_apply
''',
    AVERAGED: '''
def {name}(optimizer):
    """Average the gradients over all ranks before an optimizer applies them."""
    apply = optimizer.apply_gradients

    def averaged(grads_and_vars, *args, **kwargs):
        pairs = [(g if g is None else {hvd}.allreduce(g{more}), v) for g, v in grads_and_vars]
        return apply(pairs, *args, **kwargs)

    optimizer.apply_gradients = averaged
    return optimizer
''',
    BROADCAST: '''
class {name}({tf}.keras.callbacks.Callback):
    """Give all ranks rank 0's weights, and its optimizers after the first batch."""

    def on_train_begin(self, logs=None):
        self.is_done = False
        {hvd}.broadcast_variables([v if isinstance(v, {tf}.Variable) else v.value \
for v in self.model.weights], root_rank=0)

    def on_train_batch_end(self, batch, logs=None):
        if not self.is_done:
            held = [*vars(self.model).values()]
            for each in [*held]:
                if isinstance(each, (list, tuple, dict)):
                    held.extend(each.values() if isinstance(each, dict) else each)
            optimizers = [each for each in held if isinstance(each, {tf}.keras.optimizers.Optimizer)]
            for variables in [self.model.weights, *(each.variables for each in optimizers)]:
                {hvd}.broadcast_variables([v if isinstance(v, {tf}.Variable) else v.value \
for v in variables], root_rank=0)
            self.is_done = True
''',
    AVERAGE: '''
class {name}({tf}.keras.callbacks.Callback):
    """Replace each metric of an epoch by its average over all ranks."""

    def on_epoch_end(self, epoch, logs=None):
        for name in sorted(logs or {{}}):
            logs[name] = {hvd}.allreduce({tf}.cast(logs[name], {tf}.float64)).numpy()
''',
    HOOK: '''
class {name}({v1}.train.SessionRunHook):
    """Give all ranks the variables of rank 0 when a session begins."""

    def begin(self):
        self.broadcast = {hvd}.broadcast_global_variables(0)

    def after_create_session(self, session, coord):
        session.run(self.broadcast)
''',
}


class Helpers:
    """The helper functions of one file of a program, by the Horovod name that they replace."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each helper that the file needs."""
        return {role: self._there.get(role) or self._script.fresh(_NAMES[role]) for role in self._needed}

    def lines(self, tf: str, v1: str, hvd: str, unit: str) -> list[str]:
        """The definitions that the file lacks, each with two blank lines above, as in a module."""
        lines: list[str] = []
        more = self._program.whole.fact(Reductions).given(Form.TAPE, hvd)
        for role, name in self.names.items():
            if role not in self._there:
                text = _TEXTS[role].format(name=name, tf=tf, v1=v1, hvd=hvd, more=more)
                lines += ["", *text.rstrip("\n").replace("    ", unit).split("\n")]
        return lines and [*lines, ""]

    @cached_property
    def _needed(self) -> list[str]:
        return list(dict.fromkeys(self._wanted()))

    def _wanted(self) -> Iterator[str]:
        whole = self._program.whole
        if whole.fact(Target).has_own_hook and any(
            self._program.holds(site) and not hooks.broadcasts
            for site, hooks in whole.fact(HookLists).monitored.items()
        ):
            yield HOOK
        if any(self._program.holds(agent.site) for agent, _ in whole.fact(AgentOptimizers).bare):
            yield AVERAGED
        if not whole.fact(Target).is_keras3:
            return
        compiled = whole.fact(Compiled)
        sites = [each.site for each in compiled.to_distribute] + [each.site for each in compiled.loaded]
        if any(map(self._program.holds, sites)):
            yield DISTRIBUTE
        lists = whole.fact(CallbackLists)
        roles = [
            each for own in lists.all if self._program.holds(own.fit.site) for each in lists.missing(own)
        ]
        yield from (each for each in (BROADCAST, AVERAGE) if each in roles)

    @cached_property
    def _there(self) -> dict[str, str]:
        """The names of helpers that the file already has, by the Horovod name that they replace."""
        own, found = self._program.fact(OwnHorovod), dict[str, str]()
        for name, bindings in self._script.module_bindings.items():
            inner = bindings[0].inner if len(bindings) == 1 else None
            if inner is not None:
                role = own.role(inner) if inner.kind == "class" else _role(own, inner)
                if role:
                    found.setdefault(role, name)
        return found


def _role(own: OwnHorovod, function: Scope) -> str:
    """The role of a function in the script that does the same as a helper."""
    if own.distributes(function):
        return DISTRIBUTE
    return AVERAGED if own.averages_what_it_is_given(function) else ""
