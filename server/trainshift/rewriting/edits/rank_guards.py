"""The edits that keep a call to rank 0, shared by several rules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Change, Edit, Withheld
from trainshift.python.source.source import one_line
from trainshift.python.syntax import precedence as framed
from trainshift.python.syntax.chunk_syntax import Site, Statement, arguments, expression_path, root_name
from trainshift.python.syntax.precedence import ELEMENT, Frame
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.call_effects import Effects
from trainshift.training.rank_regions.guard_forms import Form, RootCall, RootKind
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.training.rank_regions.summary_writers import is_writer
from trainshift.training.uniformity.uniformity import Uniformity

PRINTED = "printed"
"""The name for a value that all ranks evaluate and that rank 0 prints in the statement below."""


def printed(script: Script, statement: Statement) -> tuple[str, Statement]:
    """The name of a guarded value, and the statement that prints it; "" and the unchanged statement for
    others.
    """
    node, following = statement.node, script.following(statement)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and following is not None:
        name, reads = node.targets[0].id, ast.walk(following.node)
        if name.startswith(PRINTED) and isinstance(following.node, ast.If):
            if any(isinstance(part, ast.Name) and part.id == name for part in reads):
                return name, following
    return "", statement


def guard_changes(
    report: Report,
    kinds: tuple[RootKind, ...],
    forms: Mapping[Form, Callable[[Program, RootCall], tuple[Edit, ...]]],
    title: str,
    is_optional: Callable[[RootCall], bool] = lambda call: False,
) -> Iterator[Change | Withheld]:
    """The changes for the root calls of some kinds that have one of `forms`."""
    program = report.program
    calls = program.fact(RootOnly).calls
    writing = {call.block for call in calls if call.kind is RootKind.WRITE}
    blocks: set[Statement] = set()
    for call in calls:
        kind = RootKind.WRITE if call.block is not None and call.block in writing else call.kind
        if kind not in kinds or call.form not in forms or call.statement in blocks:
            continue
        if call.block is not None:
            blocks.add(call.block)
        target = program.script.statement_span(call.statement)
        if call.reason:
            yield report.withheld(call.site, call.reason)
            continue
        if call.form is Form.WRITER and framed.does_more(call.outer):
            reason = (
                "an argument binds a name or awaits something, which every rank must do; move it up a line"
            )
            yield report.withheld(call.site, reason)
            continue
        alone = call.form in (Form.GUARD, Form.BIND, Form.RELOAD, Form.PATH_APART)
        requires = program.fact(Layout).isolate(call.statement) if alone else ()
        doubts = tuple(filter(None, (call.doubt, missed(program, call))))
        edits = forms[call.form](program, call)
        yield report.change(title, target, edits, requires, doubts, optional=is_optional(call))


def stands_alone(program: Program, call: RootCall) -> bool:
    """Return whether every rank could also make a call: its arguments have no effect and are never None."""
    given = (*call.site.node.args, *(word.value for word in call.site.node.keywords))
    read = {part.id for each in given for part in ast.walk(each) if isinstance(part, ast.Name)}
    for other in program.fact(RootOnly).calls:
        if other.kind is RootKind.WRITE and other.form is Form.CONDITIONAL:
            node = other.site.statement.node
            targets = node.targets if isinstance(node, ast.Assign) else [None]
            if not all(isinstance(each, ast.Name) and each.id not in read for each in targets):
                return False
    return all(program.fact(Effects).of_expression(each) is None for each in given)


def missed(program: Program, call: RootCall) -> str:
    """The name that is None on other ranks because only rank 0 gets its value, such as a checkpoint's
    path; or "".
    """
    node, site = call.site.statement.node, call.site
    made = program.names.full_names(site.node.func, site.scope, site.statement)
    if call.form is not Form.CONDITIONAL or not isinstance(node, ast.Assign) or any(map(is_writer, made)):
        return ""
    bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
    kept = [each for each in program.fact(RootOnly).calls if not each.reason]
    guarded = {each.statement for each in kept if each.form in (Form.GUARD, Form.BIND, Form.RELOAD)}
    alone = {each.site for each in kept}
    for use in program.script.sites:
        given = {part.id for part in arguments(use.node) if isinstance(part, ast.Name)}
        if not given & bound or use.scope.function() is not site.scope.function() or use in alone:
            continue
        if guarded.isdisjoint(use.statement.path()) and not program.fact(Horovod).site_on_root(use):
            return f"on other ranks {min(given & bound)} is None in {program.script.text(use.node, use)}"
    return _missed_part(program, site, bound, kept)


def _missed_part(program: Program, site: Site, bound: set[str], kept: list[RootCall]) -> str:
    """The name, and the expression that fails for its None on other ranks; or ""."""
    guarded = {each.statement for each in kept if each.form in (Form.GUARD, Form.BIND, Form.RELOAD)}
    own = {part for each in kept for part in ast.walk(each.outer)}
    return next(
        (
            f"on other ranks {name.id} is None in {one_line(program.script.text(part, statement))}"
            for statement in program.script.statements
            if statement.scope.function() is site.scope.function()
            and statement is not site.statement
            and guarded.isdisjoint(statement.path())
            and not program.fact(Horovod).on_root(statement)
            for part in _needed(statement)
            if part not in own and (name := root_name(part)) is not None and name.id in bound
        ),
        "",
    )


def _needed(statement: Statement) -> Iterator[ast.expr]:
    """Yield the expressions of a statement that fail for None: those of which it takes an element, an
    attribute, a turn or a context.
    """
    node = statement.node
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield from (each.context_expr for each in node.items)
    yield from (each for each in statement.own_parts() if isinstance(each, ast.Subscript | ast.Attribute))


def conditional(program: Program, call: RootCall, otherwise: str) -> tuple[Edit, ...]:
    """Turn ``call`` into ``call if hvd.rank() == 0 else otherwise``."""
    return on_root(program, call.outer, call.site, otherwise)


def or_none(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Turn ``call`` into ``call if hvd.rank() == 0 else None``; with a None for each unpacked value."""
    node = call.site.statement.node
    targets = node.targets if isinstance(node, ast.Assign) and node.value is call.outer else []
    unpacked = [len(each.elts) for each in targets if isinstance(each, ast.Tuple | ast.List)]
    none = f"({', '.join(['None'] * unpacked[0])})" if unpacked and unpacked[0] > 1 else "None"
    return conditional(program, call, none)


def guard(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Put the statement under ``if hvd.rank() == 0:``."""
    return only_statement(program, call.statement)


def only_statement(program: Program, statement: Statement) -> tuple[Edit, ...]:
    """Put a statement under ``if hvd.rank() == 0:``, as an edit alone."""
    return program.fact(Layout).guard(statement, f"if {program.at(statement).fact(Prerequisites).root}:")


def only_element(program: Program, node: ast.expr, statement: Statement) -> tuple[Edit, ...]:
    """Turn an element of a list into ``*([element] if hvd.rank() == 0 else [])``.

    An element of a comprehension gets an additional condition instead.
    """
    layout, root = program.fact(Layout), program.at(statement).fact(Prerequisites).root
    parent = expression_path(statement.node, node)[-2]
    if isinstance(parent, ast.ListComp | ast.GeneratorExp) and parent.elt is node:
        last = parent.generators[-1]
        end = layout.enclosed([last.iter, *last.ifs][-1], statement).end
        return (Edit(end, end, f" if {root}"),)
    return layout.put(node, statement, Frame("*([", f"] if {root} else [])", ELEMENT))


def only_argument(program: Program, given: ast.expr, site: Site, otherwise: str = "None") -> tuple[Edit, ...]:
    """Turn an argument into ``argument if hvd.rank() == 0 else otherwise``, unless it depends on the rank."""
    nothing = isinstance(given, ast.Constant) and given.value is None
    if nothing or program.fact(Uniformity).on_rank(of_call(site).part(given)):
        return ()
    return on_root(program, given, site, otherwise)


def on_root(program: Program, node: ast.expr, site: Site, otherwise: str) -> tuple[Edit, ...]:
    """Turn an expression into ``expression if hvd.rank() == 0 else otherwise``.

    One that binds a name, awaits or yields is evaluated on every rank:
    ``[otherwise, expression][hvd.rank() == 0]``.
    """
    root = program.at(site).fact(Prerequisites).root
    frame = framed.conditional(root, otherwise)
    if framed.does_more(node):
        frame = Frame(f"[{otherwise}, ", f"][{root}]", ELEMENT)
    return program.fact(Layout).put(node, site, frame)
