"""The GPU must be chosen before anything starts TensorFlow's devices.

    model = tf.keras.Sequential()           hvd.init()
    hvd.init()                              tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    tf.config.set_visible_devices(...)      model = tf.keras.Sequential()

## Why it matters

TensorFlow raises a RuntimeError: visible devices cannot be modified after they were initialized.

## What to do

Move the choice directly below `hvd.init()`, above all code that creates tensors, models, datasets or
optimizers.

## What is reported

`set_visible_devices` after a tensor, a variable, a `Dataset`, a Keras model, an optimizer, a metric, or
`list_logical_devices`. Not reported: losses, seeds, policies, and functions that are only defined above.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import api
from trainshift.python.names.values import Class, Function, Library
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import Site, Statement
from trainshift.restrictions.fixes.moves import abreast, moved, needed
from trainshift.restrictions.fixes.places import beside
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.execution_order import Course
from trainshift.training.ranks.unsupported_api import Strangers

_CLASSES = (*api.MODEL, *api.OPTIMIZERS, *api.METRIC, *api.VARIABLE, *api.DATASET)
_TENSORS = frozenset(
    f"tensorflow.{name}"
    for name in (
        "constant", "convert_to_tensor", "zeros", "ones", "eye", "fill", "range", "linspace", "cast",
        "reshape", "stack", "concat", "one_hot", "matmul", "zeros_like", "ones_like", "expand_dims",
        "config.list_logical_devices", "config.experimental.list_logical_devices", "reduce_sum",
        "reduce_mean", "transpose", "add", "multiply", "square", "sqrt", "tensordot", "Variable",
    )
)  # fmt: skip
_MODULES = (
    "tensorflow.data.Dataset.",
    "tensorflow.keras.applications.",
    "tensorflow.math.",
    "tensorflow.data.",
)
_ASKING = ("tensorflow.config.", "horovod.", "builtins.", "os.", "logging.")
_RANDOM, _SEEDS = "tensorflow.random.", ("set_seed", "set_random_seed")


def check(program: Program, report: Report) -> Findings:
    """One finding for each choice of a GPU that comes after devices were started."""
    if program.fact(Strangers).uses_graphs:
        return
    first: Site | None = None
    for site in program.fact(Course).calls():
        if site.name == "set_visible_devices":
            names = program.names.full_names(site.node.func, site.scope, site.statement)
            if first is not None and any(name.startswith("tensorflow.config") for name in names):
                message = (
                    "Devices are started before this: RuntimeError: Visible devices cannot be modified after "
                    "being initialized. Move it above."
                )
                related = (beside(program, first, "this starts the devices"),)
                fix = _chosen_above(program, report, first, site)
                yield report.violated(site, message, related, fix, asks=True)
            return
        if first is None and _starts(program, site):
            first = site


def _chosen_above(program: Program, report: Report, first: Site, choice: Site) -> Change | None:
    """Move the choice above the code that starts the devices, with `init` and all that it needs, if possible.

    If functions do either, their calls are moved.
    """
    pairs = ((one, other) for one in _run_by(program, first) for other in _run_by(program, choice))
    beside = next((found for one, other in pairs if (found := abreast(program, one, other))), None)
    if beside is None or beside[0] is beside[1]:
        return None
    starting, choosing = beside
    script, course = program.script, program.fact(Course)
    block, index = script.siblings(choosing)
    since = script.siblings(starting)[1]
    moving = set(needed(program, choosing, starting))
    inits = set(program.fact(Horovod).calls("init"))
    moving |= {each for each in block[since:index] if not inits.isdisjoint(_reached(program, each))}
    sites = {site for each in moving for site in _reached(program, each)}
    if starting in moving or not all(_is_harmless(program, each) for each in sites):
        return None
    if any(course.index.get(site, -1) > course.index[choice] for site in inits):
        return None
    ordered = [each for each in block[since : index + 1] if each in moving]
    return moved(report, "Choose the GPU first", ordered, starting)


def _run_by(program: Program, site: Site) -> list[Statement]:
    """The statement of a call, and the calls of its function, as long as each is called once."""
    found = [site.statement]
    while (function := site.scope.function()) is not None:
        sites, elsewhere = program.names.callers(function)
        if elsewhere or len(sites) != 1 or sites[0].statement in found:
            break
        site = sites[0]
        found.append(site.statement)
    return found


def _reached(program: Program, statement: Statement) -> set[Site]:
    """The calls of a statement, and those in the functions of the script that it calls."""
    inside, called = set(statement.walk()), program.fact(Executions).functions_reached(statement)
    sites = program.script.sites
    return {each for each in sites if each.statement in inside or each.scope.function() in called}


def _is_harmless(program: Program, site: Site) -> bool:
    """Return whether a call only lists devices, ranks or similar facts, and starts nothing."""
    callee = program.names.callee(site)
    if callee and all(isinstance(each, Function) for each in callee):
        return True  # Its own calls are checked as well.
    names = [each.name for each in callee if isinstance(each, Library)]
    return (
        len(names) == len(callee) > 0
        and all(name.startswith(_ASKING) for name in names)
        and not _starts(program, site)
    )


def _starts(program: Program, site: Site) -> bool:
    """Return whether a call starts TensorFlow's devices."""
    for value in program.names.callee(site):
        if isinstance(value, Class):
            if program.names.descends(value.scope, *api.MODEL, *api.METRIC):
                return True
        if not isinstance(value, Library):
            continue
        name = api.canonical(value.name) or value.name
        if name in _TENSORS or api.is_subclass(name, *_CLASSES) or name.startswith(_MODULES):
            return True
        if name.startswith(_RANDOM) and not name.endswith(_SEEDS):
            return True
    return False
