"""Each dataset and optimizer must be created by one assignment and have one name.

    iterator = iter(tf.data.Dataset.range(8))       dataset = tf.data.Dataset.range(8)
                                                    iterator = iter(dataset)

## Why it matters

An object without a name, or with two, may be changed in one place and used unchanged in another. On two GPUs
the two models then drift apart.

The conversion follows an object by its name: it scales and wraps an optimizer, broadcasts its variables, and
shares a dataset's batches.

## What to do

Create each object in an assignment of its own, `name = call(...)`, and use that name throughout.

## What is reported

A creation inside another call, in a container, returned, iterated, used without a name
(`Adam().minimize(loss)`), in a `with`, as a default, or in `a = b = Adam()`; a second creation for one name;
and a second name (`opt2 = opt`, `opt = self.optimizer`).

Not reported: a chain of methods, unpacking a call (`(train, test), info = tfds.load(...)`), a dataset derived
from another (`return ds.batch(2)`), an optimizer wrapped around another (`opt = LossScaleOptimizer(opt)`), a
name that is returned or passed to a library (`zip(a, b)`, `tf.train.Checkpoint(optimizer=optimizer)`), and
the call of a function of the script that returns one. Branches that each create the object are TF07.

Harmless: an annotated assignment, an attribute (`self.optimizer = Adam()`), an optimizer written inside
`compile(...)`, a creation that nothing keeps, and a name that is put in a container or passed to a function
of the script.

Unknown: a call that may create one, or a name that may hold one, such as
`train(getattr(tf.keras.optimizers, name)())`.

The fixes assign the creation on the line before, split `a, b = Adam(), SGD()`, or use the first name for the
second, where that changes nothing about what is evaluated when.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.restrictions.names import one_name
from trainshift.training.objects.creations import MadeKind


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each creation not held by a plain name first, each second creation, each alias."""
    yield from one_name.check(report, MadeKind.DATASET, MadeKind.OPTIMIZER)
