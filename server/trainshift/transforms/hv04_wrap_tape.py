"""Wraps every tape whose gradients reach an optimizer step, so that the gradients are averaged.

    with tf.GradientTape() as tape:         with tf.GradientTape() as tape:
        loss = compute(x)                       loss = compute(x)
    grads = tape.gradient(loss, weights)    tape = hvd.DistributedGradientTape(tape)
                                            grads = tape.gradient(loss, weights)

## Why it matters

Without the wrap each of two GPUs trains on its own gradients. You would see two losses that have nothing to
do with each other, and save one of two models.

## How it is done

The wrap stands after the `with` and before the first `.gradient`; a later one averages nothing. If
`.gradient` is called inside the `with` or in another function, the tape is wrapped where it is made: `with
hvd.DistributedGradientTape(tf.GradientTape()) as tape`. A tape that is also used for other gradients is
wrapped at the call. A tape that feeds no optimizer (a gradient penalty, a saliency map) is left alone.

Horovod takes a list of variables: `tape.gradient(x, w)` becomes `tape.gradient(x, [w])[0]`, dictionaries and
nested lists go through `tf.nest`. `.jacobian`, `unconnected_gradients=` and XLA (`jit_compile=True`) do not
work with Horovod's tape and are refused.

A step by `optimizer.minimize` is written out as a tape and `apply_gradients`.

With `keras = "3"` the call becomes `[None if grad is None else hvd.allreduce(grad) for grad in
tape.gradient(loss, weights)]`, since Horovod's tape does not know the variables of Keras 3.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string, in_stars
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Display, Instance, Value
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Change, Edit, Withheld
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted
from trainshift.python.syntax.precedence import ARGUMENT, ELEMENT, Frame, Level, handed_to
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.steps.minimizing import Minimizing
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.choice import Choice
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.steps import VARIABLE_LISTS, Gradient, Steps, Tape, is_plain
from trainshift.training.optimizers.reductions import Form, Reductions
from trainshift.training.uniformity.list_members import members
from trainshift.transforms.rule import Proposals

_WRAPPER = "DistributedGradientTape"
_SOMETIMES = (
    "DistributedGradientTape wraps the tape in some cases only, and nothing is averaged in "
    "the others; wrap it in all cases"
)


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each `with` statement, or for each other place of a wrap."""
    yield from _written(program, report)
    taken = list(dict.fromkeys(each for step in program.fact(Steps).steps for each in step.gradients))
    yield from _perhaps_wrapped(program, report, taken)
    wanted = [each for each in taken if any(map(each.needs_wrap, each.tapes))]
    if program.fact(Target).is_keras3:
        yield from (_averaged(program, report, each) for each in wanted)
        return
    bare = {tape for each in program.fact(Steps).gradients if each not in taken for tape in each.bare}
    unused = _with_unused_wraps(program)
    by_with: dict[Statement, list[Tape]] = {}
    done: set[Gradient] = set()
    for tape in program.fact(Steps).tapes:
        mine = [each for each in wanted if each.needs_wrap(tape)]
        if not mine or tape in bare or tape in unused:
            continue
        done.update(mine)
        if tape.with_statement is not None and _can_rebind(program, tape, mine):
            by_with.setdefault(tape.with_statement, []).append(tape)
        else:
            yield _change(
                program,
                report,
                tape.creation.statement,
                _wrap(program, tape.creation.node, tape.creation),
                mine,
            )
    for statement, tapes in by_with.items():
        mine = [each for each in wanted if any(map(each.needs_wrap, tapes))]
        yield _change(program, report, statement, _rebind(program, statement, tapes), mine)
    for gradient in wanted:
        if gradient in done:
            continue
        site = gradient.site
        assert isinstance(site.node.func, ast.Attribute)
        if gradient.wrapped:
            yield report.withheld(program.script.span(site.node, site), _SOMETIMES, True)
        else:
            wrap = _wrap(program, site.node.func.value, site)
            yield _change(program, report, site.statement, wrap, [gradient])


def _written(program: Program, report: Report) -> Iterator[Change]:
    """Yield the `minimize` steps of the program before its edits, which are done already."""
    if program.origin is None:
        return
    origin, passage = program.origin
    for each in origin.fact(Minimizing).written:
        former = origin.script.statement_span(each.statement)
        at = passage.forward(former.start)
        yield report.change(each.title, Span(at, at), (), former=former)


def _with_unused_wraps(program: Program) -> set[Tape]:
    """The tapes that the script itself wraps without using the wrapper for a gradient.

    They are wrapped where a gradient is taken, so that the existing wraps are not wrapped again.
    """
    used = {wrap for each in program.fact(Steps).gradients for wrap in each.wraps}
    unused = [each for each in program.fact(Horovod).calls(_WRAPPER) if each not in used]
    given = frozenset[Value]().union(
        *(program.names.site_values(each.node.args[0], each) for each in unused if each.node.args)
    )
    made = {value.node for value in given if isinstance(value, Instance)}
    return {tape for tape in program.fact(Steps).tapes if tape.creation.node in made}


def _averaged(program: Program, report: Report, gradient: Gradient) -> Change | Withheld:
    """Average a tape's gradients for Keras 3, whose variables Horovod's tape does not support."""
    site = gradient.site
    reason, kind = _against(program, gradient)
    if gradient.wrapped:
        reason = reason or _SOMETIMES
    if not reason and site.in_fstring:
        reason = in_f_string()
    if reason:
        return report.withheld(program.script.span(site.node, site), reason, True)
    hvd = program.at(site).fact(Prerequisites).hvd
    more = program.fact(Reductions).given(Form.TAPE, hvd)
    frame = Frame(f"[None if grad is None else {hvd}.allreduce(grad{more}) for grad in ", "]", ELEMENT)
    if kind == "variable":
        frame = handed_to(f"{hvd}.allreduce", more)
    elif kind == "nested":
        average = f"lambda grad: None if grad is None else {hvd}.allreduce(grad{more})"
        tf = program.at(site).fact(Prerequisites).tf
        frame = Frame(f"{tf}.nest.map_structure({average}, ", ")", ARGUMENT)
    edits = tuple(program.fact(Layout).put(site.node, site, frame))
    title = f"Average the gradients of {_receiver(gradient) or 'the tape'} over all ranks"
    given = program.script.text(site.node, site)
    doubt = f"{given} is assumed to return a list" if kind == "unknown" else ""
    return report.change(
        title,
        program.script.statement_span(site.statement),
        edits,
        (),
        (doubt,) if doubt else (),
        tuple(program.fact(Reductions).decisions(Form.TAPE)),
    )


def _perhaps_wrapped(program: Program, report: Report, gradients: list[Gradient]) -> Iterator[Withheld]:
    """Yield the gradients of a tape that the script wraps on some paths only."""
    for gradient in gradients:
        for tape in gradient.bare & gradient.wrapped:
            if any(program.fact(Choice).leaves_out(each, tape.creation) for each in gradient.wraps):
                yield report.withheld(program.script.span(gradient.site.node, gradient.site), _SOMETIMES)
                break


def _can_rebind(program: Program, tape: Tape, gradients: list[Gradient]) -> bool:
    """Return whether all gradients are taken after the `with`, under its name, in its function."""
    statement = tape.with_statement
    assert statement is not None
    end = program.script.statement_span(statement).end
    made = tape.creation.statement
    repeats = program.fact(ControlFlow).repeats(statement)
    if made is not statement and (repeats or made.scope is not statement.scope):
        return False
    return bool(tape.name) and all(
        each.tapes == [tape]
        and _receiver(each) == tape.name
        and each.site.scope.function() is statement.scope.function()
        and end <= program.script.span(each.site.node, each.site).start
        for each in gradients
    )


def _receiver(gradient: Gradient) -> str:
    assert isinstance(gradient.site.node.func, ast.Attribute)
    return dotted(gradient.site.node.func.value)


def _rebind(program: Program, statement: Statement, tapes: list[Tape]) -> tuple[list[Edit], list[Edit]]:
    """Edits and prerequisites that rebind the tapes' names after the `with`."""
    hvd = program.at(statement).fact(Prerequisites).hvd
    more = program.fact(Reductions).given(Form.TAPE, hvd)
    lines = [f"{tape.name} = {hvd}.DistributedGradientTape({tape.name}{more})" for tape in tapes]
    return [program.fact(Layout).after(statement, lines)], list(program.fact(Layout).isolate(statement))


def _wrap(program: Program, node: ast.expr, site: Site) -> tuple[list[Edit], list[Edit]]:
    """Edits that wrap an expression: the creation of a tape, or its use."""
    hvd = program.at(site).fact(Prerequisites).hvd
    more = program.fact(Reductions).given(Form.TAPE, hvd)
    wrap = handed_to(f"{hvd}.DistributedGradientTape", more)
    return [*program.fact(Layout).put(node, site, wrap)], []


def _change(
    program: Program,
    report: Report,
    statement: Statement,
    wrap: tuple[list[Edit], list[Edit]],
    gradients: list[Gradient],
) -> Change | Withheld:
    edits, requires = wrap
    target = program.script.statement_span(statement)
    doubts = []
    for gradient in gradients:
        reason, more, doubt = _sources(program, gradient)
        if reason:
            return report.withheld(program.script.span(gradient.site.node, gradient.site), reason, True)
        edits = [*edits, *more]
        doubts += [doubt] if doubt else []
    names = dict.fromkeys(_receiver(each) or "the tape" for each in gradients)
    title = f"Average the gradients of {' and '.join(names)} over all ranks"
    decisions = tuple(program.fact(Reductions).decisions(Form.TAPE))
    return report.change(title, target, tuple(edits), tuple(requires), tuple(doubts), decisions)


def _sources(program: Program, gradient: Gradient) -> tuple[str, list[Edit], str]:
    """Fit the call to Horovod's tape (spec.md 5.21): a reason against it, edits, and a doubt."""
    call, script = gradient.site.node, program.script
    reason, kind = _against(program, gradient)
    sources = argument(call, 1, "sources")
    if reason or sources is None:
        return reason, [], ""
    layout = program.fact(Layout)
    if kind in ("variable", "nested") and gradient.site.in_fstring:
        return in_f_string(), [], ""
    if kind == "variable":
        inner = layout.put(sources, gradient.site, Frame("[", "]", ELEMENT))
        return "", [*inner, *layout.put(call, gradient.site, Frame("", "[0]", Level.ATOM))], ""
    if kind == "nested":
        text = script.text(sources, gradient.site)
        text = ast.unparse(sources) if comments_in(text) else text
        if any(isinstance(each, ast.Call) for each in ast.walk(sources)):
            return (
                "the gradient is taken of a nested structure that is made in the call; assign it first",
                [],
                "",
            )
        tf = program.at(gradient.site).fact(Prerequisites).tf
        packed = Frame(f"{tf}.nest.pack_sequence_as({text}, ", ")", ARGUMENT)
        inner = layout.put(sources, gradient.site, handed_to(f"{tf}.nest.flatten"))
        return "", [*layout.put(call, gradient.site, packed), *inner], ""
    doubt = f"{script.text(sources, gradient.site)} is assumed to be a list of variables"
    return "", [], doubt if kind == "unknown" else ""


def _against(program: Program, gradient: Gradient) -> tuple[str, str]:
    """The reason why a call's gradients cannot be averaged (empty if they can), and its sources."""
    call, method = gradient.site.node, gradient.site.name
    if method != "gradient":
        return f"Horovod's tape has no distributed .{method}()", ""
    if any(word.arg == "unconnected_gradients" for word in call.keywords):
        return "Horovod's tape does not take unconnected_gradients=", ""
    if program.fact(Executions).compiles_with_xla(gradient.site.scope):
        return "Horovod's allreduce does not run in a tf.function with jit_compile=True", ""
    sources = argument(call, 1, "sources")
    if sources is None:
        return in_stars("the sources of the gradient may be"), ""
    return "", _kind(program, sources, gradient)


def _kind(program: Program, sources: ast.expr, gradient: Gradient) -> str:
    """The kind of a gradient's sources: "list", "variable", "nested" or "unknown"."""
    site = gradient.site
    held = members(program.script, sources, site.scope, site.statement).elements
    if any(_is_list(program, each) for each in held):
        return "nested"
    if _is_variable_list(program, sources, site.scope, site.statement):
        return "list"
    if isinstance(sources, ast.Subscript) and isinstance(sources.slice, ast.Constant):
        if isinstance(sources.value, ast.Attribute) and sources.value.attr in VARIABLE_LISTS:
            return "variable"
    known = set()
    for value in program.names.site_values(sources, site):
        if isinstance(value, Display):
            known.add("nested" if isinstance(value.node, ast.Dict | ast.DictComp) else "list")
        elif isinstance(value, Instance) and program.names.is_a(value, *api.VARIABLE):
            known.add("variable")
        elif isinstance(value, Instance) and not api.is_class(value.cls) and value.cls != "builtins.next":
            known.add("list")
    listing = isinstance(sources, ast.Attribute) and sources.attr in ("variables", "weights")
    if listing or (isinstance(sources, ast.Call) and isinstance(sources.func, ast.Attribute)):
        known = known or {"list"}
    return known.pop() if len(known) == 1 else "unknown"


def _is_variable_list(program: Program, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
    """Return whether the expression is a flat list of variables, for each of its possible values."""
    if isinstance(node, ast.Attribute) and is_plain(node):
        return node.attr.startswith("trainable_")
    if isinstance(node, ast.BinOp):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_variable_list(program, node.value, scope, statement)
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.ListComp)
    _, bindings = program.names.lookup(node.id, scope, statement)
    return bool(bindings) and all(
        binding.kind == "value"
        and binding.value is not None
        and not binding.path
        and not (isinstance(binding.value, ast.Name) and binding.value.id == node.id)
        and _is_variable_list(program, binding.value, binding.scope, binding.statement)
        for binding in bindings
    )


def _is_list(program: Program, at: Occurrence) -> bool:
    """Return whether the sources of a gradient are a list of variables rather than a variable."""
    if isinstance(at.node, ast.Attribute) and at.node.attr in ("trainable_variables", "trainable_weights"):
        return True
    values = program.names.values(*at[:3])
    return bool(values) and all(isinstance(value, Display) for value in values)
