"""Pins TensorFlow 1 sessions to the GPU of their rank, and broadcasts what they initialize.

    sess = tf.Session()
    sess.run(init)

becomes

    sess = tf.Session(
        config=tf.ConfigProto(
            gpu_options=tf.GPUOptions(visible_device_list=str(hvd.local_rank()))
        )
    )
    sess.run(init)
    sess.run(hvd.broadcast_global_variables(0))

## Why it matters

Without it both processes take all GPUs, and start from different weights: you would train two models that
only share their gradients.

## How it is done

A configuration of your own is kept, whatever its name: the GPU is added where its `ConfigProto` is made. The
broadcast follows every statement that runs an initializer, however it is spelled (`init.run()`,
`tf.global_variables_initializer().run(session=sess)`, `sess.run([init, local_init])`), and every
`Saver.restore`. An initializer of some variables is followed by a broadcast of these. A session that trains
without either is refused.

The optimizer's wrap does not see gradients that go from `tf.gradients` to `apply_gradients`. HV03 averages
them where they are computed."""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string
from trainshift.core.report import Report
from trainshift.python.source.edit import Change, Edit, Withheld
from trainshift.rewriting.edits.session_broadcasts import broadcast
from trainshift.rewriting.edits.session_configs import configured, hidden
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.initializations import Initialization, Initializations
from trainshift.rewriting.tf1.sessions import PLAIN, Pin, Sessions
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.steps_taken.step_division import Pace
from trainshift.transforms.rule import Proposals

_WHOLE = "every rank runs the training loop in full: its number of steps is not divided"
_RESTORED = (
    "every rank looks for the checkpoint, so all must see its directory; the values of rank 0 are broadcast"
)


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each configuration, for each session without one and for each initialization."""
    for pin in program.fact(Sessions).pins:
        yield _pin(program, report, pin)
    for site, name in program.fact(Sessions).created:
        if name not in PLAIN:
            continue
        configuration = program.fact(Sessions).configuration(site, name)
        if configuration.hidden:
            yield hidden(report, site, configuration)
        elif configuration.missing:
            target = program.script.statement_span(site.statement)
            edits = configured(program, site, name, configuration, {})
            yield report.change(
                "Pin the session to the GPU of its rank",
                target,
                edits,
            )
    trained = [loop for loop in program.fact(Loops).own if loop.pattern is Pattern.SESSION]
    missing = program.fact(Initializations).missing
    if missing is not None:
        span = program.script.span(missing.node, missing)
        reason = (
            "nothing here initializes or restores the variables of the session, so they are not broadcast"
        )
        yield report.withheld(span, reason, True)
    for each in program.fact(Initializations).all if trained else ():
        yield _broadcast(program, report, each)


def _pin(program: Program, report: Report, pin: Pin) -> Change | Withheld:
    script, layout = program.script, program.fact(Layout)
    target = script.statement_span(pin.statement)
    rank = f"str({program.at(pin.statement).fact(Prerequisites).hvd}.local_rank())"
    if pin.site.in_fstring:
        return report.withheld(target, in_f_string("the configuration is made"))
    edits: tuple[Edit, ...]
    decisions: tuple[str, ...] = ()
    if pin.value is not None:
        edits = layout.replace(pin.value, pin.statement, rank)
        decisions = (
            f"the script's own choice of GPUs, {script.text(pin.value, pin.statement)}, is replaced",
        )
    elif pin.nested:
        v1 = program.fact(Sessions).spelling(pin.site)
        edits = layout.add_keyword(pin.site, "gpu_options", f"{v1}.GPUOptions(visible_device_list={rank})")
    else:
        edits = layout.add_keyword(pin.site, "visible_device_list", rank)
    title = "Pin the session to the GPU of its rank"
    return report.change(title, target, edits, decisions=decisions)


def _broadcast(program: Program, report: Report, each: Initialization) -> Change | Withheld:
    span = program.script.span(each.site.node, each.site)
    if each.reason:
        return report.withheld(span, each.reason, True)
    what = "restored" if each.restores else "initialized"
    title = f"Broadcast the variables from rank 0 after they are {what}"
    target = program.script.statement_span(each.site.statement)
    requires = program.fact(Layout).isolate(each.anchor)
    # HV15 reports for each loop what happens to its steps, unless data division is turned off.
    told = program.whole.choices.divide_data and program.fact(Pace).loops
    decisions = (_RESTORED,) if each.restores else () if told else (_WHOLE,)
    edits = (program.fact(Layout).after(each.anchor, broadcast(program, each)),)
    return report.change(title, target, edits, requires, decisions=decisions)
