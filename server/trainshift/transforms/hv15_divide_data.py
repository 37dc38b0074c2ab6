"""Gives each rank its own share of the data, so that an epoch of all ranks together is one of the original.

    train = Dataset.from_tensor_slices((x, y))
    train = train.shuffle(1000).batch(32)
    for x, y in train:

becomes

    train = Dataset.from_tensor_slices((x, y))
    train = train.shard(hvd.size(), hvd.rank()).take(len(train) // hvd.size()).shuffle(1000).batch(32)
    for x, y in train:

## Why it matters

Without it each of four GPUs goes through all of the data: four times the work, and no time saved.

## How it is done

All ranks take the same number of steps, always: one that ended first would stop the others. So data are
divided only where their length is known. The division comes before `shuffle`, since each rank shuffles in
another order, and before batches are made of shuffled elements. Where it must come later, since a function
makes the test data too, say, the `shuffle` gets a seed, so that all ranks have one order.

Evaluations, previews and statistics see all data. What HV06 divides by steps is not divided again. Where the
length is not known, as for `from_generator` and `filter`, every rank goes through all data, and the report
says so.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Edit, Remark
from trainshift.core.text.expressions import Frame, Level
from trainshift.core.text.facts import Site, Statement, dotted
from trainshift.core.text.source import one_line
from trainshift.rewriting.data.divided_data import DividedData, How, LoopData, Place
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.transforms.rule import Guard, Proposals, Transform


def propose(program: Program) -> Proposals:
    """One change for each statement in which data are divided, and a remark on each loop with all of them."""
    places: dict[Statement, dict[ast.expr, tuple[Place, LoopData]]] = {}
    for loop in program.fact(DividedData).loops:
        if loop.how is How.WHOLE:
            text = f"every rank goes through all of {_shown(program, loop)}: {loop.reason}"
            yield Remark("HV15", program.script.statement_span(loop.statement), text)
        for place in loop.places:
            places.setdefault(place.statement, {}).setdefault(place.at.node, (place, loop))
    for statement, found in places.items():
        edits = tuple(edit for place, _ in found.values() for edit in _divided(program, place))
        unseeded = dict.fromkeys(site for place, _ in found.values() for site in place.unseeded)
        loops = dict.fromkeys(_shown(program, loop) for _, loop in found.values())
        data = " and ".join(loops)
        yield Change(
            "HV15",
            f"Give each rank its share of {data}",
            program.script.statement_span(statement),
            edits,
            tuple(edit for site in unseeded for edit in _seeded(program, site)),
            decisions=(
                f"each rank trains on its own 1/hvd.size() of {data}, and all take equally many steps",
                *(f"`{site.name}` gets a seed, so that all ranks have one order" for site in unseeded),
            ),
        )


def _divided(program: Program, place: Place) -> tuple[Edit, ...]:
    """The edits that leave each rank its share of a dataset."""
    hvd = program.at(place.statement).fact(Prerequisites).hvd
    name = dotted(place.at.node)
    data = name or "ds"
    length = f"{data}.cardinality()" if place.in_graph else f"len({data})"
    share = f".shard({hvd}.size(), {hvd}.rank()).take({length} // {hvd}.size())"
    after = share if name else f".apply(lambda {data}: {data}{share})"
    edits = program.fact(Layout).put(place.at.node, place.statement, Frame("", after, Level.ATOM))
    # What other rules add at the same place, such as callbacks, follows.
    return tuple(replace(edit, rank=-1) for edit in edits)


def _seeded(program: Program, site: Site) -> tuple[Edit, ...]:
    """The edits by which all ranks draw one order before the data are divided."""
    return program.fact(Layout).add_keyword(site, "seed", "0")


def _shown(program: Program, loop: LoopData) -> str:
    text = one_line(program.script.text(loop.data, loop.statement))
    return text if len(text) <= 60 else "the data"


RULE = Transform(
    "HV15", "divide-data", propose, guards=(Guard("TF03"), Guard("TF05"), Guard("TF06"), Guard("TF07"))
)
