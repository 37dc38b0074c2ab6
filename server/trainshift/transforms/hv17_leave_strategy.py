"""Removes the strategies of TensorFlow's own distribution: each rank is one replica.

    strategy = tf.distribute.MirroredStrategy()       model = make_model()
    with strategy.scope():                            optimizer = tf.keras.optimizers.Adam(0.01)
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.01)
    ...                                               ...
    loss = strategy.run(step, args=(batch,))          loss = step(batch)

## Why it matters

A `MirroredStrategy` averages gradients by itself, over the GPUs of one process. With Horovod each process has
one GPU, and both would average.

## How it is done

`tf.distribute.MirroredStrategy` goes, and so does any other that copies the model to several GPUs. The
script of one replica remains, which all other rules read. A scope becomes its body, `run` becomes a call,
`experimental_distribute_dataset` becomes the dataset itself, and `reduce` the rank's own value.
`num_replicas_in_sync` becomes 1 in a computation, and the number of ranks in a message.

The gradients are the same. A strategy sums the gradients of a loss that is divided by the global batch. Here
the loss is divided by the rank's own batch, and Horovod takes the mean.

`tf.distribute.get_replica_context()` stays: without a strategy it is the context of a single replica.

## What is refused

Strategies for TPUs and parameter servers, and any use of a `MirroredStrategy` that Trainshift does not
understand: the refusal names the place. Such a strategy stays if it is in one branch of an `if` and the other
branch has none (HV01). `keras.distribution` of Keras 3, which places model and batches itself, is refused
too.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.strategies.leaving import Leaving
from trainshift.transforms.rule import Proposals


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that created or used a strategy in the original program.

    Its edits are those that need Horovod; the others have been made.
    """
    if program.origin is None:
        return
    origin, passage = program.origin
    for left in origin.fact(Leaving).left:
        former = origin.script.statement_span(left.statement)
        edits = []
        for span, member in left.shown:
            at = passage.forward(span.start)
            file = program.linked(program.script.at(at)[0])
            edits.append(Edit(at, at + span.end - span.start, f"{file.fact(Prerequisites).hvd}.{member}"))
        at = passage.forward(former.start)
        yield report.change(
            left.title, Span(at, at), tuple(edits), decisions=tuple(left.decisions), former=former
        )
