"""Each checkpoint must be created by one assignment and have one name.

    tf.train.Checkpoint(model=model).save(path)     checkpoint = tf.train.Checkpoint(model=model)
                                                    checkpoint.save(path)

What a checkpoint or a checkpoint manager writes is written by rank 0 only, or ranks overwrite each other's
files; what it restores, rank 0 restores before the broadcast. A rewrite finds these calls by the name of the
object, so that a checkpoint without a name of its own, with two names, or a name that is given two
checkpoints, may be guarded in one place and not in the other.

Violated: a creation inside another call (`CheckpointManager(tf.train.Checkpoint(...), path, 3)`), in a
container, returned, used without a name (`tf.train.Checkpoint(...).restore(path)`), as a default, in `a = b
= Checkpoint(...)`; a second creation for one name; and a second name (`saver = checkpoint`).

Harmless: an annotated assignment, an attribute (`self.checkpoint = tf.train.Checkpoint(...)`,
`self.checkpoint = checkpoint`), a creation that nothing keeps, and a name that is put in a container or
passed to a function of the script. A name that is passed to a library (`CheckpointManager(checkpoint, path,
3)`) gets no second name in the script and is not reported. Nor are the call of a function of the script that
returns one (the creation is inside), a name that is returned, and branches that each create the one object.

Unknown: a call that may create one, or a name that may hold one, where the script does not show the class.

The fixes name the creation on the line before, or use the first name for the second, where nothing else is
evaluated earlier than before.

By hand: create each checkpoint in an assignment of its own and use that name throughout.

Seeds: S1 restriction 10; S2 restriction 10.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.facts import one_name
from trainshift.restrictions.facts.creations import MadeKind
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each creation that no plain name holds first, each second creation, each alias."""
    yield from one_name.check(program, "TF10", MadeKind.CHECKPOINT, MadeKind.MANAGER)


RULE = Restriction("TF10", "checkpoint-alias", check)
