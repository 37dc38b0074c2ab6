"""Each dataset and optimizer must be created by one assignment and have one name.

    iterator = iter(tf.data.Dataset.range(8))       dataset = tf.data.Dataset.range(8)
                                                    iterator = iter(dataset)

A rewrite remembers what each name stands for: the rate of an optimizer is scaled, the optimizer is wrapped
and its variables are broadcast, and the batches of a dataset are divided among the ranks, all by the name.
An object without a name of its own, with two names, or a name that is given two objects, is changed in one
place and used unchanged in the other, so that the ranks train apart. `name = call(...)` is the form that is
understood, with methods chained to the call; unpacking a call (`(train, test), info = tfds.load(...)`) is
such an assignment too.

Violated: a creation inside another call, in a container, returned, iterated, used without a name
(`Adam().minimize(loss)`), as a `with` item, as a default, in `a = b = Adam()`; a second creation for one
name; and a second name (`opt2 = opt`, `opt = self.optimizer`).

Harmless: an annotated assignment, an attribute (`self.optimizer = Adam()`, `self.optimizer = optimizer`), an
optimizer written inside `compile(...)`, a creation that nothing keeps, and a name that is put in a container
or passed to a function of the script, whose parameter is its second name. A name that is passed to a library
(`model.compile(optimizer=optimizer)`, `zip(a, b)`, `iter(dataset)`,
`tf.train.Checkpoint(optimizer=optimizer)`) gets no second name in the script and is not reported.

Not reported either: a dataset derived from another (`return ds.batch(2)`, `Dataset.zip((a, b))`), an
optimizer wrapped around another (`opt = LossScaleOptimizer(opt)`), the call of a function of the script that
returns one (the creation is inside), a name that is returned, and branches that each create the one object,
which are TF07.

Unknown: a call that may create one, or a name that may hold one, where the script does not show the class,
such as `train(getattr(tf.keras.optimizers, name)())`.

The fixes name the creation on the line before, split `a, b = Adam(), SGD()`, or use the first name for the
second. They are offered only where nothing else is evaluated earlier than before.

By hand: create each object in an assignment of its own and use that name throughout.

Seeds: S1 restriction 5; S2 restriction 5.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.facts import one_name
from trainshift.restrictions.facts.creations import MadeKind
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each creation that no plain name holds first, each second creation, each alias."""
    yield from one_name.check(program, "TF05", MadeKind.DATASET, MadeKind.OPTIMIZER)


RULE = Restriction("TF05", "dataset-or-optimizer-alias", check)
