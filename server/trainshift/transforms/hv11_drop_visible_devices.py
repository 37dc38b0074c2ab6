"""Drops the script's own choice of GPUs, which would undo the pinning of one GPU per rank.

    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    os.environ.update({"CUDA_VISIBLE_DEVICES": "0", "TF_CPP_MIN_LOG_LEVEL": "3"})
    tf.config.set_visible_devices(gpus[0], "GPU")

## Why it matters

With that choice both processes use the same GPU. They run out of memory, or share one GPU while the other is
idle.

## How it is done

The first and the third statement go; from the second, only the entry does. Comments stay, and an emptied
block gets `pass`. The choice may be made anywhere. The environment that a script passes to another process is
left alone. If the choice cannot be removed, the script is refused.

A condition under which a script hides all GPUs (`"-1"`), to train on the CPU, stays.

Each rank sees its GPU as `/gpu:0`. A script that places operations on another one by `tf.device`, or builds a
tower on each of several, is refused.

A memory limit stays. If it names one GPU by its number, it names the rank's GPU afterwards:

    tf.config.set_logical_device_configuration(gpus[0], ...)     gpus[hvd.local_rank() % len(gpus)]
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.values import Library, Module, Value
from trainshift.python.source.edit import Change, Edit, Remark
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Statement, arguments, last_name
from trainshift.python.syntax.precedence import does_more
from trainshift.rewriting.edits.entries import without
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.devices.device_choices import Choices, DeviceChoices, Entry
from trainshift.training.devices.device_places import DevicePlaces, Where
from trainshift.training.devices.pinning import Pinning
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import is_plain
from trainshift.transforms.rule import Proposals

_TOO_LATE = (
    "this hides the GPUs after the ranks have taken theirs; to train on CPUs, set "
    "CUDA_VISIBLE_DEVICES=-1 for the command"
)
# Methods and functions that set variables of the environment.
_OF_ENVIRONMENT = frozenset({"__setitem__", "putenv", "setdefault", "update"})
_TITLE = "Let each rank choose its GPU"


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that chooses GPUs other than by rank, or limits the memory of
    one.
    """
    choices = program.fact(DeviceChoices)
    chosen = [choices.of_tensorflow]
    if choices.of_environment.places and choices.is_read:
        reason = "the variable is read elsewhere in the script, which would fail without it"
        for statement in choices.of_environment.places:
            yield report.withheld(program.script.statement_span(statement), reason)
    else:
        chosen.append(choices.of_environment)
    dropped = {statement for each in chosen for statement in each.statements}
    for each in chosen:
        yield from _dropped(program, report, each, dropped)
        yield from _taken_out(program, report, each)
        for hidden in each.hidden:
            span = program.script.span(hidden.node, hidden.statement)
            yield report.withheld(span, hidden.reason, True)
    yield from _unseen_places(program, report)
    if not program.fact(Pinning).is_done and program.fact(Loops).runs_eagerly:
        for statement in choices.of_none:
            yield report.remark(program.script.statement_span(statement), _TOO_LATE)
    # If the environment shows a rank only its own GPU, that GPU is the first.
    limited = [] if program.fact(Pinning).by_environment else choices.limited
    for device, statement in limited:
        span = program.script.span(device.slice, statement)
        number = f"{program.at(statement).fact(Prerequisites).hvd}.local_rank()"
        if is_plain(device.value):
            number += f" % len({program.script.text(device.value, statement)})"
        edits = (Edit(span.start, span.end, number),)
        target = program.script.statement_span(statement)
        yield report.change("Limit the memory of the rank's own GPU", target, edits)


def _unseen_places(program: Program, report: Report) -> Iterator[Remark]:
    """Yield remarks on unknown arguments of `tf.device`: they must suit a rank, which has one GPU."""
    for place in program.fact(DevicePlaces).all:
        if place.where is Where.UNSEEN:
            call = one_line(program.script.text(place.site.node, place.site))
            text = f"{call} must name no GPU but /gpu:0, the only one that a rank has"
            yield report.remark(program.script.span(place.site.node, place.site), text)


def _dropped(program: Program, report: Report, choices: Choices, dropped: set[Statement]) -> Proposals:
    for statement in choices.statements:
        if does_more(statement.node):
            reason = "this statement also binds a name or awaits something; give the choice of GPUs its own"
            yield report.withheld(program.script.statement_span(statement), reason, True)
            continue
        # If a whole block is dropped, its last statement becomes `pass`, whichever edit is applied first.
        emptied = statement.parent is not None and all(each in dropped for each in statement.block)
        last = statement.index == len(statement.block) - 1
        edits = program.fact(Layout).remove(statement, emptied and last)
        yield report.change(
            _TITLE,
            program.script.statement_span(statement),
            edits,
            decisions=(
                *_unheard(program, _of_statement(statement), statement),
                *program.fact(Layout).left_behind(statement, dropped),
            ),
        )


def _of_statement(statement: Statement) -> list[ast.expr]:
    """The expressions by which a statement chooses GPUs."""
    node = statement.node
    asked: list[ast.expr] = [node.value] if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        given = (part for each in arguments(node.value) for part in ast.walk(each))
        asked += [part.slice for part in given if isinstance(part, ast.Subscript)]
        if last_name(node.value.func) in _OF_ENVIRONMENT:
            # The name of a variable may be a name, too.
            named = last_name(node.value.func) != "update"
            for each in arguments(node.value)[1 if named else 0 :]:
                asked += each.values if isinstance(each, ast.Dict) else [each]
    return asked


def _unheard(program: Program, asked: Iterable[ast.expr], statement: Statement) -> tuple[str, ...]:
    """Remark on an argument or setting for choosing the GPU that nothing reads any more."""
    for part in (setting for each in asked for setting in _settings(each)):
        values = program.names.values(part, statement.scope, statement)
        if isinstance(part, ast.Subscript) or not any(map(_is_of_library, values)):
            name = one_line(program.script.text(part, statement))
            return (f"{name} no longer chooses a GPU; each rank uses its own",)
    return ()


def _is_of_library(value: Value) -> bool:
    """Return whether a value is a module or a library's member, other than a flag of the command line."""
    return isinstance(value, Module) or (isinstance(value, Library) and ".FLAGS." not in value.name)


def _settings(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the names, attributes and elements whose values make an expression, not its functions."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        yield node
        return
    parts = arguments(node) if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        parts = [*parts, node.func.value]
    for part in parts:
        if isinstance(part, ast.expr):
            yield from _settings(part)


def _taken_out(program: Program, report: Report, choices: Choices) -> Iterator[Change]:
    """Yield changes to statements that choose devices together with other work, which stays."""
    by_container: dict[ast.expr, list[Entry]] = {}
    for entry in choices.entries:
        by_container.setdefault(entry.container, []).append(entry)
    for entries in by_container.values():
        spans = sorted(_span(program, each) for each in entries)
        target = program.script.statement_span(entries[0].statement)
        asked = [each.last.value if isinstance(each.last, ast.keyword) else each.last for each in entries]
        shown = [each for each in asked if isinstance(each, ast.expr)]
        decisions = _unheard(program, shown, entries[0].statement)
        yield report.change(_TITLE, target, without(program, spans), decisions=decisions)
    for each in choices.targets:
        assignment = each.statement.node
        assert isinstance(assignment, ast.Assign)
        parts = [*assignment.targets, assignment.value]
        span, *following = (program.script.span(part, each.statement) for part in parts[each.index :])
        edits = (Edit(span.start, following[0].start, ""),)
        yield report.change(_TITLE, program.script.statement_span(each.statement), edits)


def _span(program: Program, entry: Entry) -> Span:
    """An entry's code, with the parentheses around its first and its last part."""
    layout = program.fact(Layout)
    spans = [
        layout.enclosed(part, entry.statement)
        if isinstance(entry.container, ast.Dict) and isinstance(part, ast.expr)
        else program.script.span(part, entry.statement)
        for part in (entry.first, entry.last)
    ]
    return Span(spans[0].start, spans[-1].end)
