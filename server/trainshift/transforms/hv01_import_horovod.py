"""Imports Horovod, starts it and gives each rank its own GPU.

    import tensorflow as tf                 import tensorflow as tf
    import numpy as np                      import horovod.tensorflow as hvd
                                            import numpy as np

                                            hvd.init()
                                            gpus = tf.config.experimental.list_physical_devices('GPU')
                                            for gpu in gpus:
                                                tf.config.experimental.set_memory_growth(gpu, True)
                                            if gpus:
                                                tf.config.experimental.set_visible_devices(
                                                    gpus[hvd.local_rank() % len(gpus)], 'GPU')

## Why it matters

Without it both processes take the first GPU and run out of memory, or train without knowing of each other.

## How it is done

A launcher that shows each process one GPU alone (Slurm's `--gpus-per-task`, Kubernetes) makes that the only
one in the list: `% len(gpus)` takes it, whatever the local rank.

The import follows the TensorFlow import. `hvd.init()`, the choice of the GPU and the broadcast flags follow
the last import at the top, before anything touches a device.

A module starts Horovod, too, if another program of the project runs what changes in it, so that this one
works before it is converted, or without. A second `hvd.init()` does nothing: delete it from the module once
every program that runs it starts Horovod.

An `import horovod.tensorflow as H` of your own is used as it is, and names that are taken are avoided.

A `tf.distribute` strategy in one branch of an `if` that cannot be taken out (HV17) is left alone and
reported: Horovod is for the other branch.
"""

from __future__ import annotations

import ast

from trainshift.core.choices import KERAS_3, KERAS_NAMES
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import argument
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.keras_version.target import Target
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loops import Loops
from trainshift.transforms.rule import Proposals

_OPEN = "written for Keras 2, as no version was found; for TensorFlow 2.16 or later set `keras` to 3"
_STATES = "in Keras 3 this is reset_state(); change it by hand"
_WEIGHTS = "Keras 3 saves weights only under a name that ends in .weights.h5; change it by hand"
_METRICS = "the third argument of compile() is loss_weights in Keras 3; pass metrics= by name"
_RATE = "lr"
_LEARNING_RATE = "in Keras 3 this is learning_rate; change it by hand"
# They are TensorFlow's own, and had a second name in tf.estimator.
_HOOKS = (
    "CheckpointSaverHook",
    "FinalOpsHook",
    "LoggingTensorHook",
    "NanTensorHook",
    "ProfilerHook",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
)
_HOOK = "tf.estimator was removed after TensorFlow 2.15; use tf.compat.v1.train.{} instead"
_STRATEGY = "this branch uses tf.distribute and is left as it is; do not run it with Horovod"


def propose(program: Program, report: Report) -> Proposals:
    """One change for each file that lacks something of the set-up, on its TensorFlow import.

    Changes of files other than the start file are made only with other changes of the same file.
    """
    for site in program.fact(Loops).beside_strategies:
        yield report.remark(program.script.statement_span(site.statement), _STRATEGY)
    yield from _left_to_do(program, report)
    for file in program.files:
        prerequisites = file.fact(Prerequisites)
        if not prerequisites.edits():
            continue
        start = program.start_of(file)
        anchor = prerequisites.anchor
        target = program.script.statement_span(anchor) if anchor is not None else Span(start, start)
        started = start == 0
        title = "Import and start Horovod, one GPU per rank" if started else "Import and start Horovod"
        decisions, doubts = _told(program) if started else ((), ())
        yield report.change(title, target, (), doubts=doubts, decisions=decisions)


def _left_to_do(program: Program, report: Report) -> Proposals:
    """Yield remarks on code that newer versions reject and that no rule changes."""
    for site in program.script.sites_named(*_HOOKS) if program.fact(Target).is_newer else ():
        func = site.node.func
        module = func.value if isinstance(func, ast.Attribute) else None
        if isinstance(module, ast.Attribute) and module.attr == "estimator":
            yield report.remark(program.script.span(func, site), _HOOK.format(site.name))
    if program.fact(Target).name != KERAS_NAMES[KERAS_3]:
        return
    for site in program.script.sites_named("reset_states", "save_weights"):
        path = argument(site.node, 0, "filepath")
        if site.name == "reset_states" and isinstance(site.node.func, ast.Attribute):
            yield report.remark(program.script.span(site.node, site), _STATES)
        elif isinstance(path, ast.Constant) and not str(path.value).endswith(".weights.h5"):
            yield report.remark(program.script.span(site.node, site), _WEIGHTS)
    for compile in program.fact(Fits).compiles:
        given = compile.site.node.args
        if len(given) > 2 and not any(isinstance(each, ast.Starred) for each in given[:3]):
            yield report.remark(program.script.span(given[2], compile.site), _METRICS)
    for statement in program.script.statements if _has_rates(program) else ():
        for part in statement.own_parts():
            if isinstance(part, ast.Attribute) and part.attr == _RATE:
                owner = Occurrence(part.value, statement.scope, statement)
                if program.fact(RateCases).is_optimizer(owner):
                    yield report.remark(program.script.span(part, statement), _LEARNING_RATE)


def _has_rates(program: Program) -> bool:
    return _RATE in program.script.identifiers


def _told(program: Program) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The decisions and the doubts about the target Keras version."""
    target = program.fact(Target)
    written = f"written for {target.name}"
    told = target.why if target.is_keras3 or target.is_newer else ""
    because = f", because {told}" if told else ""
    doubts = (target.against and f"{written}, but {target.against}", program.choices.doubt_keras)
    decisions = (f"{written}{because}",) if because else (_OPEN,) if target.is_open else ()
    return decisions, tuple(filter(None, doubts))
