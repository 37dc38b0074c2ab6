"""Gives `fit` the broadcast, keeps the script's callbacks, and shows its progress on rank 0 only.

    model.fit(x, y, callbacks=[EarlyStopping(), ModelCheckpoint("best.h5")])

becomes

    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        EarlyStopping(),
    ]
    if hvd.rank() == 0:
        callbacks.append(ModelCheckpoint("best.h5"))
    model.fit(x, y, callbacks=callbacks, verbose=1 if hvd.rank() == 0 else 0)

## Why it matters

Without the broadcast two GPUs start from different weights. With `EarlyStopping` on local metrics one of
them stops first, and the other waits forever.

## How it is done

The broadcast comes first. If a callback reads metrics, their average over the ranks comes next, so that all
ranks stop, or lower their rate, at the same time. Callbacks that steer training stay on every rank. Those
that only write, such as `ModelCheckpoint` and `TensorBoard`, are kept to rank 0 where they are put into the
list, which gets a name for this. The order of your callbacks stays. If an argument before the list calls
something, the list stays in its place, with `*([ModelCheckpoint("best.h5")] if hvd.rank() == 0 else [])`.

An unknown callback runs on every rank. Prints and writes in a callback class of your own are guarded inside
it. With `warmup-epochs = 5` in the settings, Horovod's callback raises the rate over the first five epochs.

Horovod's callback broadcasts after the first batch. If the script copies weights earlier, in a callback's
`on_train_begin` or above the `fit`, and uses them later, the model is also broadcast above the copy.

For Keras 3, which Horovod's callbacks do not support, the broadcast and the average are two short classes
below the set-up.

Keras draws its progress bars on every rank, so `evaluate`, `predict` and `Progbar` are silenced likewise. A
`verbose` of your own stays as it is on rank 0.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec.structs import replace

from trainshift.core.layout import Layout
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string, in_stars
from trainshift.core.report import Report
from trainshift.libraries.entries import Role as Known
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance
from trainshift.python.source.edit import Change, Edit, Suits, Withheld
from trainshift.python.syntax.chunk_syntax import Binding, Site, argument, last_name
from trainshift.rewriting.edits.early_weights import UNBUILT, broadcast_above, told_of
from trainshift.rewriting.edits.list_edits import left, placed, put_first, run, titled
from trainshift.rewriting.edits.rank_guards import guard_changes, only_argument
from trainshift.rewriting.edits.root_elements import kept_to_root
from trainshift.rewriting.keras.helpers import Helpers
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.data.divided_data import DividedData
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import BROADCAST
from trainshift.training.initial_state.first_batches import FirstBatches
from trainshift.training.initial_state.set_weights import OTHER_BEGINNING, SetWeights
from trainshift.training.keras_version.target import Target
from trainshift.training.learning_rates.warm_ups import WARM_UP, WarmUps
from trainshift.training.loops.fits import Fit, Fits, hides
from trainshift.training.loops.stops import Stops
from trainshift.training.rank_regions.callbacks import CallbackLists, Callbacks
from trainshift.training.rank_regions.guard_forms import Form, RootCall, RootKind
from trainshift.training.rank_regions.list_roles import Role
from trainshift.training.rank_regions.root_only import verbosity
from trainshift.training.seeds.agreement import Agreement
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.value_flow import ValueFlow
from trainshift.transforms.rule import Proposals

_WHOLE = "every rank reads all of the data in each epoch, because fit has no steps_per_epoch to divide"
# The names of arguments that are learning rates.
_RATE = re.compile(r"(^|_)(lr|learning_rate)(_|$)")


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each `fit`, for each callback that writes, and for each other progress bar."""
    for callbacks in program.fact(CallbackLists).all:
        change = _fit(program, report, callbacks)
        if change is not None:
            yield change
        yield from left(report, callbacks)
    written = program.fact(CallbackLists).written_on_all_ranks
    yield from kept_to_root(report, [(each.element, each.name) for each in written])
    for shown in guard_changes(
        report, (RootKind.PRINT,), {Form.VERBOSE: _verbose}, "Show the progress bar on rank 0 only"
    ):
        # The bar of a single process is that of rank 0.
        yield replace(shown, suits=Suits.ALL) if isinstance(shown, Change) else shown


def _stop_alike(program: Program) -> bool:
    """Return whether all ranks certainly end each `fit` at one step, now or by a change."""
    stops = program.fact(Stops)
    return not stops.set_by_name and all(_is_alike(program, each) for each in stops.bindings)


def _is_alike(program: Program, binding: Binding) -> bool:
    """Return whether all ranks come to a binding of the flag together, and set the same value."""
    stop, value, function = binding.statement, binding.value, binding.scope.function()
    if stop is None or function is None or not function.name.startswith("on_"):
        return False  # Its callers decide, too.
    if any(each.scope is stop.scope and isinstance(each.node, ast.Try) for each in stop.ancestors()):
        return False  # An error may decide.
    given = [Occurrence(value, stop.scope, stop)] if value is not None else []
    asked = [*program.fact(Stops).deciding(stop), *given]
    mended = {each.node for each in program.fact(Agreement).mends}
    flow, uniformity = program.fact(ValueFlow), program.fact(Uniformity)
    decided = [each.node in mended or flow.is_collected(each) for each in asked]
    return all(
        is_decided or uniformity.is_uniform(each) or (any(decided) and not uniformity.causes(each))
        for each, is_decided in zip(asked, decided, strict=True)
    )


def _fit(program: Program, report: Report, callbacks: Callbacks) -> Change | Withheld | None:
    site = callbacks.fit.site
    span = program.script.span(site.node, site)
    if hides(program.script, site, "callbacks"):
        return report.withheld(span, in_stars("the callbacks may be", "pass callbacks= by name"), True)
    if site.in_fstring:
        return report.withheld(span, in_f_string(), True)
    if program.fact(Executions).runs_in_graphs:
        return report.withheld(span, "Horovod's callback needs eager execution, which is disabled", True)
    stopping = [each.name for each in callbacks.members if each.stops_in_epoch]
    if stopping and not _stop_alike(program):
        reason = (
            f"{stopping[0]} may stop one rank in the middle of an epoch, and the others would wait for it"
        )
        return report.withheld(span, reason, True)
    edits: list[Edit] = []
    added: dict[str, str] = {}
    missing = program.fact(CallbackLists).missing(callbacks)
    first = [_made(program, site, each) for each in missing]
    if BROADCAST in missing and _warms_up(program, callbacks):
        first.append(_warm_up(program, callbacks.fit))
    if first and callbacks.given is None:
        added["callbacks"] = f"[{', '.join(first)}]"
    elif first:
        edits += put_first(program, callbacks, site, first, flattens=True)
    given = callbacks.fit.given("verbose")
    if program.fact(Horovod).site_on_root(site):
        pass
    elif given is not None:
        edits += _silence(program, site, given)
    elif not hides(program.script, site, "verbose"):
        added["verbose"] = f"1 if {program.at(site).fact(Prerequisites).root} else 0"
    edits += program.fact(Layout).add_keywords(site, added)
    if not edits:
        return None
    target = program.script.statement_span(site.statement)
    title = titled("Broadcast from rank 0 when fit begins", callbacks)
    early = program.fact(SetWeights).early_before(callbacks.fit) if BROADCAST in missing else []
    return report.change(
        title,
        target,
        tuple(edits),
        tuple(edit for each in early for edit in broadcast_above(program, each)),
        doubts=_doubts(program, callbacks),
        decisions=(
            *_decisions(program, callbacks),
            *(told_of(program, each) for each in early),
        ),
    )


def _made(program: Program, site: Site, name: str) -> str:
    """The call that creates one of Horovod's callbacks, or its replacement on Keras 3."""
    if program.fact(Target).is_keras3:
        return f"{program.at(site).fact(Helpers).names[name]}()"
    given = "0" if name == BROADCAST else ""
    return f"{program.at(site).fact(Prerequisites).hvd_keras}.callbacks.{name}({given})"


def _warms_up(program: Program, callbacks: Callbacks) -> bool:
    """Return whether a warm-up was chosen, is not there yet, and is possible."""
    chosen = program.choices.warmup_epochs > 0 and not callbacks.has(WARM_UP)
    return chosen and not program.fact(WarmUps).obstacle(callbacks.fit)


def _warm_up(program: Program, fit: Fit) -> str:
    """The callback that warms up the rate; it cannot set the momentum of current Keras optimizers."""
    model, hvd = ast.unparse(fit.model), program.at(fit.site).fact(Prerequisites).hvd_keras
    rate, epochs = f"{model}.optimizer.learning_rate.numpy()", program.choices.warmup_epochs
    return f"{hvd}.callbacks.{WARM_UP}({rate}, warmup_epochs={epochs}, momentum_correction=False)"


def _doubts(program: Program, callbacks: Callbacks) -> tuple[str, ...]:
    doubts = []
    if not callbacks.fit.certain:
        assumed = (
            f"{program.script.text(callbacks.fit.model, callbacks.fit.site)} is assumed to be a Keras model"
        )
        values = program.names.site_values(callbacks.fit.model, callbacks.fit.site)
        is_strange = program.fact(Fits).is_of_stranger
        if any(isinstance(value, Instance) or is_strange(value) for value in values):
            assumed += "; a train_step of its own may average nothing"
        doubts.append(assumed)
    if callbacks.given is not None and not callbacks.found.complete:
        given = program.script.text(callbacks.given, callbacks.fit.site)
        doubts.append(f"{given} is assumed to be a list of callbacks that every rank needs")
    doubts += _of_rates(program, callbacks)
    if assumed := program.fact(FirstBatches).doubt(callbacks.fit):
        doubts.append(assumed)
    if copy := program.fact(SetWeights).beside(callbacks.fit):
        doubts.append(OTHER_BEGINNING.format(copy))
    if name := program.fact(SetWeights).unbuilt(callbacks.fit.site, [callbacks.fit.model]):
        doubts.append(UNBUILT.format(name))
    return tuple(doubts)


def _of_rates(program: Program, callbacks: Callbacks) -> Iterator[str]:
    """Yield a doubt for each unknown callback that gets learning rates by name, which stay as they are."""
    for member in callbacks.members:
        at = member.element
        values = program.names.values(at.node, at.scope, at.statement) if member.role is Role.UNKNOWN else ()
        for made in (each.node for each in values if isinstance(each, Instance)):
            rates = [word.arg for word in made.keywords if word.arg and _RATE.search(word.arg)]
            if rates:
                yield f"{last_name(made.func)} is unknown; its {' and '.join(rates)} may need `* hvd.size()`"


def _decisions(program: Program, callbacks: Callbacks) -> tuple[str, ...]:
    """The decisions about the callbacks and the data, one line each."""
    decisions = placed(callbacks, ", with metrics averaged over the ranks" if callbacks.reads_metrics else "")
    unknown = callbacks.named(Role.UNKNOWN)
    if unknown:
        decisions.append(f"{', '.join(unknown)} (unknown) {run(unknown)} on every rank")
    decisions += [f"{name} {said}" for name, said in callbacks.notes]
    decisions += _of_warm_up(program, callbacks)
    if program.fact(Fits).is_loaded_compiled(callbacks.fit):
        decisions.append("the learning rate of the loaded model stays as it was saved, and is not scaled")
    data = program.fact(DividedData)
    if data.of(callbacks.fit.site.statement) is None and not hides(
        program.script, callbacks.fit.site, "steps_per_epoch"
    ):
        decisions.append(f"{_WHOLE}{_what_helps(program, callbacks.fit)}")
    if callbacks.fit.given("validation_steps") is not None:
        decisions.append("validation_steps is not divided: every rank validates on as many batches as before")
    return tuple(decisions)


def _what_helps(program: Program, fit: Fit) -> str:
    """The way to shard a `fit`'s data with the library that creates them, if its entry has one."""
    data = argument(fit.site.node, 0, "x")
    made = program.names.site_values(data, fit.site) if data is not None else ()
    known = (program.fact(Libraries).of(each) for each in made if isinstance(each, Instance))
    said = [each.text("says") for each in known if each is not None and each.role is Known.DATASET]
    return f"; {said[0]}" if said else ""


def _of_warm_up(program: Program, callbacks: Callbacks) -> list[str]:
    """The decisions about a requested warm-up, for a fit that also gets the broadcast."""
    epochs = program.choices.warmup_epochs
    if not epochs or callbacks.has(BROADCAST) or program.fact(Horovod).is_elastic:
        return []
    obstacle = program.fact(WarmUps).obstacle(callbacks.fit)
    if obstacle:
        return [f"the rate is not warmed up: {obstacle}"]
    return [(f"the rate rises over the first {epochs} epochs; fit must know its number of steps for this")]


def _verbose(program: Program, call: RootCall) -> tuple[Edit, ...]:
    names = program.names.full_names(call.site.node.func, call.site.scope, call.site.statement)
    given = verbosity(call.site, names)
    if given is None:
        return program.fact(Layout).add_keyword(
            call.site, "verbose", f"1 if {program.at(call.site).fact(Prerequisites).root} else 0"
        )
    return _silence(program, call.site, given)


def _silence(program: Program, site: Site, given: ast.expr) -> tuple[Edit, ...]:
    """Limit a `verbose` argument to rank 0, unless it is silent."""
    silent = isinstance(given, ast.Constant) and given.value in (0, False)
    return () if silent else only_argument(program, given, site, "0")
