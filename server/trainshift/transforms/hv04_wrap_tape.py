"""Wraps every tape whose gradients reach an optimizer step, so that the gradients are averaged.

    with tf.GradientTape() as tape:         with tf.GradientTape() as tape:
        loss = compute(x)                       loss = compute(x)
    grads = tape.gradient(loss, weights)    tape = hvd.DistributedGradientTape(tape)
                                            grads = tape.gradient(loss, weights)

The wrap comes before the tape's first `.gradient`: after the `with`, or inside it where `.gradient`
is called there. A wrap that comes later reduces nothing. A tape that is used for other gradients
too, or whose `.gradient` is called somewhere else, is wrapped at the call. A tape that feeds no
optimizer step (a gradient penalty, a saliency map) is left alone, because averaging its gradients
would change what is computed.

Horovod takes a list of variables only: `tape.gradient(x, w)` becomes `tape.gradient(x, [w])[0]`,
dictionaries and nested lists go through `tf.nest`. `.jacobian`, `unconnected_gradients=` and XLA
(`jit_compile=True`) are not supported by Horovod's tape and are refused.
Seeds: S1 `trans_S[[with]]`; corrections C15, C20, C21.
"""

from __future__ import annotations

import ast

from trainshift.core import api
from trainshift.core.edit import Change, Edit, Withheld
from trainshift.core.facts import Statement, dotted
from trainshift.core.names import Display, Instance
from trainshift.core.program import Program
from trainshift.core.source import Span
from trainshift.core.training import Gradient, Tape, in_loop, is_plain
from trainshift.transforms.rule import Proposals, Transform


def propose(program: Program) -> Proposals:
    """One change for each `with` statement, or for each call where the wrap is made there."""
    steps = program.training.steps
    wanted = list(dict.fromkeys(each for step in steps for each in step.gradients if not each.wrapped))
    by_with: dict[Statement, list[tuple[Tape, list[Gradient]]]] = {}
    done: set[Gradient] = set()
    for tape in program.training.tapes:
        mine = [each for each in wanted if each.tapes == [tape]]
        if mine and tape.with_statement is not None and _can_rebind(tape, mine):
            by_with.setdefault(tape.with_statement, []).append((tape, mine))
            done.update(mine)
    for statement, tapes in by_with.items():
        gradients = list(dict.fromkeys(each for _, mine in tapes for each in mine))
        yield _change(program, statement, _rebind(program, statement, tapes), gradients)
    for gradient in wanted:
        if gradient not in done:
            yield _change(program, gradient.site.statement, _wrap_in_place(program, gradient), [gradient])


def _can_rebind(tape: Tape, gradients: list[Gradient]) -> bool:
    """Whether ``tape = hvd.DistributedGradientTape(tape)`` serves all gradient calls of the tape."""
    statement = tape.with_statement
    assert statement is not None
    if not tape.name or any(not each.wrapped for each in tape.other):
        return False
    made = tape.creation.statement
    if made is not statement and (in_loop(statement) or made.scope is not statement.scope):
        return False
    return all(
        _receiver(each) == tape.name
        and each.site.scope.function() is statement.scope.function()
        and (statement in each.site.statement.path() or not _precedes(each.site.statement, statement))
        for each in gradients
    )


def _precedes(first: Statement, second: Statement) -> bool:
    return first.node.lineno < second.node.lineno


def _receiver(gradient: Gradient) -> str:
    assert isinstance(gradient.site.node.func, ast.Attribute)
    return dotted(gradient.site.node.func.value)


def _rebind(
    program: Program, statement: Statement, tapes: list[tuple[Tape, list[Gradient]]]
) -> tuple[list[Edit], list[Edit]]:
    """Edits and prerequisites that rebind the tapes' names after the `with`, or early inside it."""
    edits: list[Edit] = []
    requires: list[Edit] = []
    after = []
    for tape, gradients in tapes:
        line = f"{tape.name} = {program.setup.hvd}.DistributedGradientTape({tape.name})"
        inside = [each.site.statement for each in gradients if statement in each.site.statement.path()]
        if not inside:
            after.append(line)
            continue
        first = _first_common(statement, inside)
        requires += program.layout.isolate(first)
        edits.append(program.layout.before(first, [line], -1))
    if after:
        requires += program.layout.isolate(statement)
        edits.append(program.layout.after(statement, after))
    return edits, requires


def _first_common(statement: Statement, inside: list[Statement]) -> Statement:
    """The statement in the `with` to rebind before: in the innermost block, under no condition and in
    no loop, that holds all of `inside`."""
    block = statement.branches["body"]
    while True:
        holders = [each for each in block if any(each in one.path() for one in inside)]
        holder = holders[0]
        if len(holders) > 1 or holder in inside or not isinstance(holder.node, ast.With | ast.AsyncWith):
            return holder
        block = holder.branches["body"]


def _wrap_in_place(program: Program, gradient: Gradient) -> tuple[list[Edit], list[Edit]]:
    assert isinstance(gradient.site.node.func, ast.Attribute)
    span = program.script.span(gradient.site.node.func.value, gradient.site)
    wrap = f"{program.setup.hvd}.DistributedGradientTape("
    return [Edit(span.start, span.start, wrap), Edit(span.end, span.end, ")")], []


def _change(
    program: Program, statement: Statement, wrap: tuple[list[Edit], list[Edit]], gradients: list[Gradient]
) -> Change | Withheld:
    edits, requires = wrap
    target = program.script.statement_span(statement)
    doubts = []
    for gradient in gradients:
        reason, more, doubt = _sources(program, gradient)
        if reason:
            return Withheld("HV04", program.script.span(gradient.site.node, gradient.site), reason, True)
        edits = [*edits, *more]
        doubts += [doubt] if doubt else []
    names = dict.fromkeys(_receiver(each) or "the tape" for each in gradients)
    title = f"Average the gradients of {' and '.join(names)} over all ranks"
    return Change("HV04", title, target, tuple(edits), (*program.requires, *requires), tuple(doubts))


def _sources(program: Program, gradient: Gradient) -> tuple[str, list[Edit], str]:
    """Fit the call to Horovod's tape (correction C21): a reason against it, edits, and a doubt."""
    call, script = gradient.site.node, program.script
    method = gradient.site.name
    if method != "gradient":
        return f"Horovod's tape has no distributed .{method}()", [], ""
    if any(word.arg == "unconnected_gradients" for word in call.keywords):
        return "Horovod's tape does not take unconnected_gradients=", [], ""
    if program.training.compiles_with_xla(gradient.site.scope):
        return "Horovod's allreduce does not run in a tf.function with jit_compile=True", [], ""
    sources = next((word.value for word in call.keywords if word.arg == "sources"), None)
    if sources is None and len(call.args) > 1:
        sources = call.args[1]
    if sources is None or any(isinstance(each, ast.Starred) for each in call.args):
        return "the call hides what the gradient is taken of", [], ""
    kind = _kind(program, sources, gradient)
    whole, part = script.span(call, gradient.site), script.span(sources, gradient.site)
    if kind in ("variable", "nested") and gradient.site.in_fstring:
        return "the call stands inside an f-string", [], ""
    if kind == "variable":
        return "", [Edit(part.start, part.start, "["), *_around(part, whole, "]", "[0]")], ""
    if kind == "nested":
        text = script.text(sources, gradient.site)
        if any(isinstance(each, ast.Call) for each in ast.walk(sources)):
            return "the gradient is taken of a nested structure that is made in the call", [], ""
        tf = program.setup.tf
        edits = [
            Edit(whole.start, whole.start, f"{tf}.nest.pack_sequence_as({text}, "),
            Edit(part.start, part.start, f"{tf}.nest.flatten("),
            *_around(part, whole, ")", ")"),
        ]
        return "", edits, ""
    doubt = f"{script.text(sources, gradient.site)} is taken to be a list of variables"
    return "", [], doubt if kind == "unknown" else ""


def _around(part: Span, whole: Span, inner: str, outer: str) -> list[Edit]:
    return [Edit(part.end, part.end, inner), Edit(whole.end, whole.end, outer)]


def _kind(program: Program, sources: ast.expr, gradient: Gradient) -> str:
    """What the gradient is taken of: "list", "variable", "nested" or "unknown"."""
    site = gradient.site
    if isinstance(sources, ast.BinOp | ast.ListComp) or (
        isinstance(sources, ast.Attribute) and is_plain(sources) and sources.attr.startswith("trainable_")
    ):
        return "list"
    kinds = set()
    for value in program.names.site_values(sources, site):
        if isinstance(value, Display):
            nested = isinstance(value.node, ast.Dict | ast.DictComp) or any(
                _is_list(program, part, value) for part in getattr(value.node, "elts", [])
            )
            kinds.add("nested" if nested else "list")
        elif isinstance(value, Instance) and program.names.is_a(value, *api.VARIABLE):
            kinds.add("variable")
        elif isinstance(value, Instance) and not api.is_class(value.cls):
            kinds.add("list")
        else:
            kinds.add("unknown")
    if isinstance(sources, ast.Attribute) and sources.attr in ("variables", "weights"):
        kinds.discard("unknown")
        kinds = kinds or {"list"}
    if isinstance(sources, ast.Call) and isinstance(sources.func, ast.Attribute):
        kinds.discard("unknown")
        kinds = kinds or {"list"}
    kinds.discard("unknown") if len(kinds) > 1 else None
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _is_list(program: Program, node: ast.expr, inside: Display) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in ("trainable_variables", "trainable_weights"):
        return True
    values = program.names.values(node, inside.scope, inside.statement)
    return bool(values) and all(isinstance(value, Display) for value in values)


RULE = Transform("HV04", "wrap-tape", "Averages the gradients of a training tape over all ranks.", propose)
