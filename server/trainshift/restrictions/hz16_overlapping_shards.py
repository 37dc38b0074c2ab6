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

from trainshift.core.program import Program
from trainshift.core.report import Report, span_of
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Scope, Site, arguments, dotted
from trainshift.restrictions.fixes.moves import lines_of
from trainshift.restrictions.fixes.places import beside, replaced
from trainshift.training.data.shares import Shares
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.ranks.shared_loops import Together


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each part that overlaps with those of other ranks."""
    shares, runs = program.fact(Shares), program.fact(Together).runs
    told = set[tuple[ast.AST | Scope, str]]()
    for part in sorted(shares.parts, key=lambda each: span_of(program, each.at).start):
        if not runs(part.at.scope):
            continue
        if part.wrong:
            fix = _swapped(program, report, part.site) if part.wrong == "swapped" and part.site else None
            if part.wrong == "local":
                fix = _by_rank(program, report, part.at)
            if fix is None and isinstance(part.at.node, ast.Subscript):
                # One wrong number cuts all of some arrays.
                wrong = part.at.scope, ast.unparse(part.at.node.slice)
                if wrong in told:
                    continue
                told.add(wrong)
            message = {
                "swapped": "shard takes the number of shards first and then the index. Swap the arguments.",
                "local": "local_rank() is the same on all machines, so their shards are equal. Use rank().",
            }[part.wrong]
            yield report.violated(part.at, message, fix=fix)
        elif (shuffle := shares.shuffled_apart(part)) is not None:
            if isinstance(part.at.node, ast.Subscript):
                # The arrays of one shuffle are cut alike.
                cut = shuffle.node, ast.unparse(part.at.node.slice)
                if cut in told:
                    continue
                told.add(cut)
            message = (
                "Each rank shuffles in its own order first, so the shards overlap. Shard before the shuffle."
            )
            related = (beside(program, shuffle, "the shuffle"),)
            fix = _sharded_first(program, report, part.site, shuffle) if part.site else None
            yield report.violated(part.at, message, related, fix)


def _swapped(program: Program, report: Report, site: Site) -> Change | None:
    if len(site.node.args) != 2:
        return None
    spans = [program.script.span(each, site) for each in site.node.args]
    texts = [program.script.text(each, site) for each in site.node.args]
    edits = (Edit(spans[0].start, spans[0].end, texts[1]), Edit(spans[1].start, spans[1].end, texts[0]))
    return report.change("Swap the arguments", program.script.span(site.node, site), edits)


def _sharded_first(program: Program, report: Report, shard: Site, shuffle: Site) -> Change | None:
    """Move the call of `shard` before that of `shuffle`, for one dataset in one function."""
    script, cut, mixed = program.script, shard.node.func, shuffle.node.func
    if not isinstance(cut, ast.Attribute) or not isinstance(mixed, ast.Attribute):
        return None
    if shard.scope.function() is not shuffle.scope.function():
        return None
    at, span = of_call(shard), script.span
    taken = Span(span(cut.value, shard).end, span(shard.node, shard).end)
    place = span(mixed.value, shuffle).end
    read = (each for given in arguments(shard.node) for each in ast.walk(given) if isinstance(each, ast.Name))
    bound = [binding.statement for each in read for binding in program.names.bindings(at.part(each))]
    late = any(each is not None and script.statement_span(each).end > place for each in bound)
    if late or place > taken.start:
        return None
    text = script.source.text[taken.start : taken.end]
    statement = shard.statement.node
    if isinstance(statement, ast.Assign) and statement.value is shard.node:
        if dotted(statement.targets[0]) == dotted(cut.value) != "":
            lines, whole = lines_of(program, shard.statement), script.statement_span(shard.statement)
            if lines is not None:
                # A comment beside it stays in its place.
                taken = whole if script.source.text[whole.end : lines.end].strip() else lines
    edits = (Edit(place, place, text), Edit(taken.start, taken.end, ""))
    return report.change("Take the part first", span(shard.node, shard), edits)


def _by_rank(program: Program, report: Report, part: Occurrence) -> Change | None:
    """Replace the local rank by the global one."""
    horovod = program.fact(Horovod)
    for node in ast.walk(part.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if horovod.is_call(program.script.site_of(node), "local_rank"):
                at = part.part(node.func)
                text = program.script.text(node.func.value, part.scope)
                return replaced(report, "Use rank()", at, f"{text}.rank")
    return None
