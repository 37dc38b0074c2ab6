"""Removes the strategies of TensorFlow's own distribution: each rank is one replica.

    strategy = tf.distribute.MirroredStrategy()       model = make_model()
    with strategy.scope():                            optimizer = tf.keras.optimizers.Adam(0.01)
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.01)
    ...                                               ...
    loss = strategy.run(step, args=(batch,))          loss = step(batch)

## Why it matters

A strategy averages gradients by itself, over the GPUs of one process. With Horovod each process has one GPU,
and both would average.

## How it is done

The strategy goes, and what is left is the script of one replica, which all other rules read. A scope becomes
its body and `run` a call; `experimental_distribute_dataset` gives the dataset itself, `reduce` the rank's own
value. `num_replicas_in_sync` is 1 where something is computed with it, and the number of ranks where it is
shown.

Gradients come out alike. A strategy adds up those of a loss that is divided by the batch of all replicas;
here it is divided by the rank's own batch, and Horovod takes the mean.

`tf.distribute.get_replica_context()` stays, as there is one without a strategy too: that of one replica.

## What is refused

Strategies for TPUs and parameter servers, and any use of a strategy that is not understood: the refusal names
the place. In one branch of an `if` such a strategy stays where the other branch does without (HV01). So is
`keras.distribution` of Keras 3, which places model and batches itself.
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
