"""Each checkpoint must be created by one assignment and have one name.

    tf.train.Checkpoint(model=model).save(path)     checkpoint = tf.train.Checkpoint(model=model)
                                                    checkpoint.save(path)

## Why it matters

A checkpoint without a name, or with two, may be kept to rank 0 in one place and not in another. On two GPUs
both processes then write the same files, and may leave a broken one.

## What to do

Create each checkpoint in an assignment of its own and use that name throughout.

## What is reported

A creation inside another call (`CheckpointManager(tf.train.Checkpoint(...), path, 3)`), in a container,
returned, used without a name, as a default, or in `a = b = Checkpoint(...)`; a second creation for one name;
and a second name (`saver = checkpoint`).

Not reported: a name that is returned or passed to a library (`CheckpointManager(checkpoint, path, 3)`), the
call of a function of the script that returns one, and branches that each create the one object.

Harmless: an annotated assignment, an attribute (`self.checkpoint = tf.train.Checkpoint(...)`), a creation
that nothing keeps, and a name that is put in a container or passed to a function of the script.

Unknown: a call that may create one, or a name that may hold one.

The fixes assign the creation on the line before, or use the first name for the second.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.restrictions.names import one_name
from trainshift.training.objects.creations import MadeKind


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each creation not held by a plain name first, each second creation, each alias."""
    yield from one_name.check(report, MadeKind.CHECKPOINT, MadeKind.MANAGER)
