"""Lets batch normalization use the statistics of all ranks' batches, if `sync-batch-norm` is chosen.

    x = BatchNormalization(momentum=0.9)(x)

becomes

    x = hvd.SyncBatchNormalization(
        momentum=0.9,
        name=f"batch_normalization_{tf.keras.backend.get_uid('batch_normalization')}",
    )(x)

## Why it matters

Each of two GPUs normalizes by the mean and the variance of its own batch. With small batches you would see a
loss that is noisier than on one GPU with the batches of both.

## How it is done

Horovod's layer replaces that of Keras. It gives every layer the same name, so each gets a unique one, as from
Keras. Layers inside of `tf.keras.applications`, of classes of your own and in TensorFlow 1 graphs
stay as they are, and the report says so.

A saved model contains Horovod's layer: load it with `custom_objects={"SyncBatchNormalization":
tf.keras.layers.BatchNormalization}`, or load the weights alone.
"""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Change, Edit
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.horovod.existing_use import TENSORFLOW
from trainshift.training.initial_state.batch_norms import BatchNorm, BatchNorms
from trainshift.transforms.rule import Proposals

_PREFIX = "batch_normalization"
_DECISION = (
    "the layer uses the statistics of all ranks; load a saved model with "
    "custom_objects={'SyncBatchNormalization': tf.keras.layers.BatchNormalization}"
)


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each layer, and a remark on layers that keep the statistics of each rank."""
    for each in program.fact(BatchNorms).all:
        if each.reason:
            span = program.script.span(each.site.node, each.site)
            yield report.remark(span, f"each rank keeps its own batch statistics here: {each.reason}")
        else:
            yield _change(program, report, each)


def _change(program: Program, report: Report, layer: BatchNorm) -> Change:
    site, script, layout = layer.site, program.script, program.fact(Layout)
    names = program.at(site).fact(Prerequisites)
    called = script.span(site.node.func, site)
    edits = [Edit(called.start, called.end, f"{names.modules[TENSORFLOW]}.SyncBatchNormalization")]
    for name, given in zip(layer.positions, site.node.args, strict=True):
        at = layout.enclosed(given, site).start
        edits.append(Edit(at, at, f"{name}="))
    if not layer.is_named:
        unique = f"{names.tf}.keras.backend.get_uid('{_PREFIX}')"
        edits += layout.add_keyword(site, "name", f'f"{_PREFIX}_{{{unique}}}"')
    title = "Normalize by the statistics of all ranks' batches"
    target = script.statement_span(site.statement)
    return report.change(title, target, tuple(edits), decisions=(_DECISION,))
