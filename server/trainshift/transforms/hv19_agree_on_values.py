"""Lets rank 0 draw and decide what all ranks must agree on.

    rate = 10 ** random.uniform(-3, -1)     rate = 10 ** hvd.broadcast_object(
                                                random.uniform(-3, -1), root_rank=0)
    if loss > best:                         if hvd.broadcast_object(
        opt.learning_rate = rate / 2                bool(loss > best), root_rank=0):
                                                opt.learning_rate = rate / 2

## Why it matters

Each rank has random numbers, a clock and losses of its own. Ranks whose rates differ silently diverge, and a
rank that skips a step makes the others wait forever.

## How it is done

Trainshift traces six kinds of values back through names, functions and files: hyperparameters of an
optimizer, shapes of layers, the variables that a step trains, the gradients that it applies, weights that a
loop sets, and variables that a loss reads and a step sets, such as the centers of center loss. They must not
depend on draws without a seed, on the clock or the machine, or on a rank's own batches.

- Rank 0 sends the others what it has drawn.
- Rank 0 decides for all ranks when a loop ends or a callback stops `fit`, and whether a test of a loss
  changes the rate or the weights. It sends the others a rate or weights that it computed from losses.
- A step that one rank skips, for example because its loss is NaN, is skipped on all ranks.
- Dropout, augmentation and noise on inputs stay each rank's own.

Data are split alike on all ranks; otherwise each would test on rows that others train on. The function that
draws the split, or samples before it, gets a seed, or rank 0 sends its result. If the length of the data
depends on a draw, rank 0 makes that draw too.

Targets that the script computes from its rows by a draw, such as clusters or the true weights of made data,
must be the same on all ranks: rank 0 draws, or the report names the draw. Noise on each row stays each
rank's own. Rank 0 also decides for all ranks whether a signal has come.

Where a loop draws a task, trains on it and then sets the weights from those before (Reptile, first-order
MAML), averaged gradients mix the tasks of all ranks. The report names the draw. Let rank 0 draw the task for
all ranks, or average the weights after the task instead of its gradients.

In a graph, in a session and within a function, ranks cannot decide together, and layers and other objects
cannot be sent. There the report names the line that makes the ranks differ, and the consequence.
"""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.libraries.divergence import CauseKind
from trainshift.python.source.edit import Change, Suits, innermost
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.python.syntax.precedence import ARGUMENT, Frame, handed_to
from trainshift.rewriting.edits.draw_edits import made_alike, said_of
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.ranks.decisions import Decides, Decisions, causes_of
from trainshift.training.seeds.agreement import Agreement, Form, Mend
from trainshift.training.seeds.drawn_alike import DrawnAlike
from trainshift.transforms.rule import Proposals

_END_ALONE = "each rank decides by its own values when the loop ends ({}); the others may wait forever"
_STEP_ALONE = (
    "each rank decides by its own values whether it takes this step ({}); the others may wait forever"
)
_END_TOGETHER = (
    "rank 0 decides for all ranks when the loop ends ({}), so that none waits for others that have left it"
)
_ONE_TOGETHER = "rank 0 decides for all ranks which step they take ({}), so that all take the same one"
_STEP_TOGETHER = (
    "a step that one rank leaves out ({}) is left out by all ranks, so that none waits for the others"
)
_CAUGHT = "a rank that catches an error here goes on without this step; the others may wait forever"
_SPLIT = "each rank splits the data by its own draw of `{}`, so it tests on rows that others train on"
_STATED = "`{}` gets a seed, so that all ranks draw alike"
_DOES = {
    CauseKind.DATA: ("compute", ""),
    CauseKind.DRAW: ("draw", ""),
    CauseKind.CLOCK: ("read", " its clock"),
    CauseKind.DISK: ("look", " at its disk"),
    CauseKind.HOST: ("ask", " its machine"),
    CauseKind.NET: ("get", ""),
}
"""The verbs for how rank 0 finds a value that it sends, by why the value may differ."""
_GATHERED = {Decides.SKIPS: "any", Decides.STEPS: "all"}
"""The function that joins the answers of all ranks to whether a step is taken."""


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each expression that rank 0 computes for all, and a doubt for the rest."""
    yield from _decided(program, report)
    yield from _caught(program, report)
    yield from _split(program, report)
    decided = {each.test for each in program.fact(Decisions).all}
    alike = {*program.fact(DrawnAlike).mended, *(each.site for each in program.fact(DrawnAlike).splitting)}
    decided |= {site.node for site in alike}
    agreement = program.fact(Agreement)
    for mend in agreement.mends:
        if mend.node in decided:
            continue
        yield _change(program, report, mend)
    told = set[str]()
    for each in agreement.left:
        at = each.cause.at
        if each.cause.site in alike or at.statement is None:
            continue
        sink = program.script.span(each.at.node, each.at.scope)
        line = program.script.line_at(sink.start)
        text = (
            f"`{_shown(program.script.text(at.node, at.scope))}` {each.cause.kind.value}: "
            f"{each.sink.value} (line {line})"
        )
        # A batch that is read twice is one doubt; each call that differs is one of its own.
        if text not in told or each.cause.kind is not CauseKind.DATA:
            told.add(text)
            yield report.remark(program.script.statement_span(at.statement), text, is_doubt=True)


def _decided(program: Program, report: Report) -> Proposals:
    """Propose a change for each test that the ranks can decide together, and a doubt for each other one."""
    layout, counts_alike = program.fact(Layout), program.fact(Agreement).counts_alike
    for each in program.fact(Decisions).all:
        causes = causes_of(program, each.statement, each.test)
        if each.decides is Decides.END and causes and all(map(counts_alike, causes)):
            continue
        text = _shown(program.script.text(each.test, each.statement))
        if not each.is_together:
            told = _END_ALONE if each.decides is Decides.END else _STEP_ALONE
            yield report.remark(
                program.script.statement_span(each.statement), told.format(text), is_doubt=True
            )
            continue
        hvd = program.at(each.statement).fact(Prerequisites).hvd
        if each.decides in _GATHERED:
            frame = Frame(f"{_GATHERED[each.decides]}({hvd}.allgather_object(bool(", ")))", ARGUMENT)
            title, decided = f"Decide together whether a step is taken ({text})", _STEP_TOGETHER.format(text)
        else:
            frame = _by_root(hvd)
            is_end = each.decides is Decides.END
            title = f"Let rank 0 decide {'when the loop ends' if is_end else 'which step is taken'} ({text})"
            decided = (_END_TOGETHER if is_end else _ONE_TOGETHER).format(text)
        edits = layout.put(each.test, each.statement, frame)
        target = program.script.header_span(each.statement)
        yield report.change(title, target, edits, decisions=(decided,))


def _caught(program: Program, report: Report) -> Proposals:
    """Propose a doubt for each `try` by which a rank continues without a step that failed."""
    for each in program.fact(Decisions).caught:
        yield report.remark(program.script.statement_span(each), _CAUGHT, is_doubt=True)


def _split(program: Program, report: Report) -> Proposals:
    """Propose a change for each draw that splits data, and a doubt for one that stays different."""
    for draw in program.fact(DrawnAlike).splitting:
        target = program.script.statement_span(draw.site.statement)
        if draw.remedy is None:
            yield report.remark(target, _SPLIT.format(draw.site.name), is_doubt=True)
        else:
            edits = made_alike(program, draw)
            title = f"Split the data alike on all ranks ({draw.site.name})"
            said = (said_of(program, draw),)
            suits = Suits.MEETING if draw.remedy.is_sent else Suits.ALL
            yield report.change(title, target, edits, decisions=said, suits=suits)
    for draw in program.fact(DrawnAlike).stated:
        target = program.script.statement_span(draw.site.statement)
        title = f"Draw alike on all ranks ({draw.site.name})"
        said, edits = (_STATED.format(draw.site.name),), made_alike(program, draw)
        yield report.change(title, target, edits, decisions=said, suits=Suits.ALL)


def _change(program: Program, report: Report, mend: Mend) -> Change:
    text = _shown(program.script.text(mend.node, mend.within))
    hvd = program.at(mend.within).fact(Prerequisites).hvd
    sink = mend.divergence.sink.value
    if mend.form is Form.TEST:
        frame = _by_root(hvd)
        title, decision = f"Let rank 0 decide ({text})", f"rank 0 decides for all ranks ({text})"
    elif mend.form is Form.SORTED:
        frame = handed_to("sorted", "")
        title, decision = f"Sort the directory listing ({text})", f"the directory listing is sorted ({text})"
    else:
        name = "broadcast" if mend.form is Form.TENSOR else "broadcast_object"
        frame = handed_to(f"{hvd}.{name}", ", root_rank=0")
        if mend.form is Form.LISTED:
            frame = Frame(f"{hvd}.{name}([*", "], root_rank=0)", ARGUMENT)
        cause = mend.divergence.cause
        is_read = cause.site is None and cause.kind is not CauseKind.DATA
        verb, how = ("read", "") if is_read else _DOES[cause.kind]
        title = f"Let rank 0 {verb}{how} for all ranks ({text})"
        decision = f"rank 0 {verb}s{how} for all ranks ({text})"
    edits = program.fact(Layout).put(mend.node, mend.within, frame)
    if mend.form is not Form.TEST:
        edits = innermost(edits)
    statement = mend.within.statement if isinstance(mend.within, Site) else mend.within
    target = program.script.header_span(statement)
    said = (f"{decision}; without that {sink}",)
    suits = Suits.ALL if mend.form is Form.SORTED else Suits.MEETING
    return report.change(title, target, edits, decisions=said, suits=suits)


def _by_root(hvd: str) -> Frame:
    """``hvd.broadcast_object(bool(test), root_rank=0)``."""
    return Frame(f"{hvd}.broadcast_object(bool(", "), root_rank=0)", ARGUMENT)


def _shown(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= 60 else f"{text[:57]}..."
