"""Parts of the data must be taken by rank from one order.

    ds = ds.shuffle(1000)                   ds = ds.shard(hvd.size(), hvd.rank())
    ds = ds.shard(hvd.size(), hvd.rank())   ds = ds.shuffle(1000)

## Why it matters

Each rank shuffles in an order of its own, so some rows are in several parts and some in none.

## What to do

Take the part first, or shuffle with one seed. Give `shard` first `hvd.size()` and then `hvd.rank()`.

## What is reported

A part that is taken after an unseeded shuffle, permutation or split; arguments of `shard` that are swapped;
and `local_rank` with `size`.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Verdict
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.program import Program
from trainshift.core.ranks.together import Together
from trainshift.core.ranks.work.shares import Shares
from trainshift.core.text.edit import Change, Edit
from trainshift.core.text.facts import Site
from trainshift.core.training.horovod import Horovod
from trainshift.restrictions.facts.places import beside, hazard, replaced
from trainshift.restrictions.restriction import Findings


def check(program: Program) -> Findings:
    """One finding for each part that overlaps with those of other ranks."""
    shares, runs = program.fact(Shares), program.fact(Together).runs
    for part in shares.parts:
        if not runs(part.at.scope):
            continue
        if part.wrong:
            fix = _swapped(program, part.site) if part.wrong == "swapped" and part.site else None
            if part.wrong == "local":
                fix = _by_rank(program, part.at)
            message = {
                "swapped": "shard takes the number of parts first and then which one. Swap the arguments.",
                "local": "local_rank() is alike on all machines, so they take the same parts. Use rank().",
            }[part.wrong]
            yield hazard(program, "HZ16", Verdict.VIOLATED, part.at, message, fix=fix)
        elif (shuffle := shares.shuffled_apart(part)) is not None:
            message = (
                "Each rank shuffles in an order of its own before, so parts overlap. Take the part first."
            )
            related = (beside(program, shuffle, "the shuffle"),)
            yield hazard(program, "HZ16", Verdict.VIOLATED, part.at, message, related)


def _swapped(program: Program, site: Site) -> Change | None:
    if len(site.node.args) != 2:
        return None
    spans = [program.script.span(each, site) for each in site.node.args]
    texts = [program.script.text(each, site) for each in site.node.args]
    edits = (Edit(spans[0].start, spans[0].end, texts[1]), Edit(spans[1].start, spans[1].end, texts[0]))
    return Change("HZ16", "Swap the arguments", program.script.span(site.node, site), edits)


def _by_rank(program: Program, part: Occurrence) -> Change | None:
    """The rank of all machines, where the part asks for that of one itself."""
    horovod = program.fact(Horovod)
    for node in ast.walk(part.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if horovod.is_call(program.script.site_of(node), "local_rank"):
                at = part.part(node.func)
                text = program.script.text(node.func.value, part.scope)
                return replaced(program, "HZ16", "Use rank()", at, f"{text}.rank")
    return None
