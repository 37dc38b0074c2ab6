"""Gives each rank a random seed of its own where a script fixes its seeds, if `seed-by-rank` is chosen.

    tf.random.set_seed(22)                  tf.random.set_seed(22 + hvd.rank())
    Dropout(0.5, seed=7)                    Dropout(0.5, seed=7 + hvd.rank())

## Why it matters

A script that fixes its seed makes two GPUs draw the same dropout and the same noise and, where the data are
not divided, the same order: they would do the same work twice.

## How it is done

This covers seeds of TensorFlow, Keras, NumPy and `random`, of their generators, of layers and of `shuffle`.
The weights are broadcast, so they are equal anyway. Without this setting the report says that there are such
seeds.

A seed stays as it is if all ranks must draw the same numbers with it. The report says for what:

- an order by which the data are divided: a `shuffle` before `shard`, `np.random.permutation`
- a split into data for training and validation: `shuffle` before `skip`, `train_test_split`
- data, or anything else, that is drawn before the training begins
"""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Change, Remark
from trainshift.python.syntax.precedence import total
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.seeds.seed_places import SeedPlace, SeedPlaces
from trainshift.training.seeds.seeds import Seeds
from trainshift.transforms.rule import Proposals


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each seed, and a remark on those that stay; without the option, a single
    remark.
    """
    reasons = {each: program.fact(Seeds).reason(each.site) for each in program.fact(SeedPlaces).all}
    if not program.choices.seed_by_rank:
        free = [each for each, reason in reasons.items() if not reason]
        if free:
            yield _offer(program, report, free)
        return
    for each, reason in reasons.items():
        if reason:
            span = program.script.span(each.node, each.site)
            yield report.remark(span, f"this seed is the same on every rank: {reason}")
        else:
            yield _change(program, report, each)


def _offer(program: Program, report: Report, seeds: list[SeedPlace]) -> Remark:
    first, number = seeds[0], len(seeds) - 1
    others = f" and {number} more" * bool(number)
    return report.remark(
        program.script.statement_span(first.site.statement),
        f"this seed{others} makes every rank draw the same numbers; `seed-by-rank` gives each its own",
    )


def _change(program: Program, report: Report, seed: SeedPlace) -> Change:
    rank = f"{program.at(seed.site).fact(Prerequisites).hvd}.rank()"
    edits = program.fact(Layout).put(seed.node, seed.site, total(rank))
    target = program.script.statement_span(seed.site.statement)
    doubts = (seed.doubt,) if seed.doubt else ()
    return report.change("Give each rank a seed of its own", target, edits, doubts=doubts, optional=True)
