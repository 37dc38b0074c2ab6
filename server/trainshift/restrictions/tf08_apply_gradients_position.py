"""A call of apply_gradients must be a statement of its own, or all that is assigned.

    return opt.apply_gradients(pairs)       result = opt.apply_gradients(pairs)
                                            return result

## Why it matters

After a `return` or inside an expression there is no line that could copy rank 0's weights to the others. On
two GPUs you would train two different models.

Every process starts with its own random weights, and the conversion copies rank 0's right after the first
step.

## What to do

Give `apply_gradients` a statement of its own.

## What is reported

A call in a `return`, a larger expression, a condition, a lambda or a comprehension, and the method itself
passed on without a call (`strategy.run(opt.apply_gradients, ...)`). A call of `apply`, which steps an
optimizer on Keras 3, counts as well.

Not reported: a whole statement, the whole right side of an assignment, and `super().apply_gradients(...)` in
an optimizer's own `apply_gradients`, which is not a training step.

Unknown: a call on something that may not be an optimizer.

The fix gives it a statement of its own; inside an expression only if nothing is evaluated before it that the
step could change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.finding import Finding, Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.values import Member
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Scope,
    Site,
    Statement,
    dotted,
    expression_path,
    last_name,
)
from trainshift.training.objects.creations import Creations, MadeKind

# The step methods of optimizers: the second on Keras 3, where other objects also have one.
_METHODS = ("apply_gradients", "apply")
# The averaging wrapper on Keras 3 replaces the second method, and calls it.
_PASSED = _METHODS[0]
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_REASON = "so the variables cannot be broadcast after it. Give it a statement of its own"


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each `apply_gradients`, or `apply` of an optimizer, in any other position."""
    called = set()
    for site in program.script.sites_named(*_METHODS):
        called.add(site.node.func)
        if isinstance(site.node.func, ast.Attribute) and not _is_alone(site):
            found = _judge(program, report, site, site.node.func)
            if found is not None:
                yield found
    if program.script.loads(_PASSED) > sum(last_name(each) == _PASSED for each in called):
        yield from _passed_on(program, report, called)


def _is_alone(site: Site) -> bool:
    """Return whether the call is a statement, or the right side of an assignment."""
    node = site.parent
    return isinstance(node, ast.Expr) or (isinstance(node, _ASSIGNMENTS) and node.value is site.node)


def _judge(program: Program, report: Report, site: Site, method: ast.Attribute) -> Finding | None:
    if _is_definition(site):
        return None
    verdict = _of_receiver(program, method.value, site.scope, site.statement)
    if verdict is None or (verdict is Verdict.UNKNOWN and site.name != _PASSED):
        return None
    span = (
        program.script.statement_span(site.statement)
        if site.in_fstring
        else program.script.span(site.node, site)
    )
    shown = _shown(method)
    if verdict is Verdict.UNKNOWN:
        message = f"{shown}(...) is {_place(site)}, {_REASON} if {_shown(method.value)} is an optimizer."
        return report.finding(verdict, span, message)
    message = f"{shown}(...) is {_place(site)}, {_REASON}."
    return report.finding(verdict, span, message, fix=_fix(program, report, site))


def _is_definition(site: Site) -> bool:
    """Return whether the call is a part of a class's own method of that name, or one of `super()`."""
    receiver = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super":
        return True
    function = site.scope.function()
    while function is not None:
        if function.name in _METHODS and function.owner() is not None:
            return True
        function = function.parent.function() if function.parent is not None else None
    return False


def _of_receiver(program: Program, node: ast.expr, scope: Scope, statement: Statement) -> Verdict | None:
    """Judge whether the receiver is an optimizer: violated if it is, None if it is certainly not."""
    for value in program.names.values(node, scope, statement):
        if program.names.is_a(value, *api.OPTIMIZERS):
            return Verdict.VIOLATED
        if (
            isinstance(value, Member)
            and value.name == "optimizer"
            and program.names.is_a(value.owner, *api.MODEL)
        ):
            return Verdict.VIOLATED
    kinds = program.fact(Creations).kinds(node, scope, statement)
    if MadeKind.OPTIMIZER in kinds:
        return Verdict.VIOLATED
    return Verdict.UNKNOWN if MadeKind.UNSEEN in kinds or not kinds else None


def _place(site: Site) -> str:
    """The position of the call, in words."""
    node, parent = site.statement.node, site.parent
    if isinstance(parent, ast.Return):
        return "in a `return`"
    if isinstance(parent, ast.Lambda):
        return "in a lambda"
    if isinstance(parent, ast.NamedExpr):
        return "in an assignment expression"
    if site.deferred:
        return "in a lambda or a comprehension"
    if isinstance(node, ast.If | ast.While | ast.Assert):
        return "in a condition"
    if isinstance(node, ast.With | ast.AsyncWith):
        return "in the head of a `with`"
    return "inside an expression"


def _passed_on(program: Program, report: Report, called: set[ast.expr]) -> Iterator[Finding]:
    """Yield findings for the method where it is passed on without a call."""
    for statement in program.script.statements:
        if _PASSED not in statement.scope.facts.loads:
            continue
        expressions = list(_expressions(statement))
        asked = {each.value for each, _ in expressions if isinstance(each, ast.Attribute) and _is_about(each)}
        for node, scope in expressions:
            if not isinstance(node, ast.Attribute) or node.attr != _PASSED or node in called | asked:
                continue
            if isinstance(node.ctx, ast.Load) and (
                _of_receiver(program, node.value, scope, statement) is Verdict.VIOLATED
            ):
                message = (
                    f"{_shown(node)} is passed on, so its step cannot be found. Call it in a statement of "
                    "its own."
                )
                yield report.violated(program.script.span(node, statement), message)


def _is_about(node: ast.Attribute) -> bool:
    """Return whether an attribute of a method describes it, without running it: ``step.__doc__``."""
    return node.attr.startswith("__") and node.attr != "__call__"


def _expressions(statement: Statement) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes of the statement's own expressions, with the scopes in which they are read."""

    def inside(at: tuple[ast.AST, Scope]) -> Iterator[tuple[ast.AST, Scope]]:
        for child in ast.iter_child_nodes(at[0]):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield child, at[1].facts.scope_of.get(child, at[1])

    return reachable([(statement.node, statement.scope)], inside)


def _shown(node: ast.AST) -> str:
    return one_line(ast.unparse(node))


# The fix


def _fix(program: Program, report: Report, site: Site) -> Change | None:
    """Bind the result of the call on the line before, if it can be evaluated there."""
    statement = site.statement
    span = program.script.statement_span(statement)
    simple = isinstance(statement.node, ast.Return | ast.Expr | ast.Assign | ast.AnnAssign | ast.If)
    if (
        not simple
        or site.in_fstring
        or site.deferred
        or program.script.source.text.startswith("elif", span.start)
    ):
        return None
    if not _is_first(statement.node, site.node):
        return None
    call = program.script.span(site.node, site)
    text = program.script.source.text[call.start : call.end]
    head = program.script.text(site.node.func, site)
    if "\n" in head or "\r" in head:
        text = f"({text})"
    name = program.script.fresh("result")
    edits = (
        program.fact(Layout).before(statement, [f"{name} = {text}"]),
        Edit(call.start, call.end, name),
    )
    title = f"Give {_shown(site.node.func)}(...) a statement of its own"
    return report.change(title, span, edits, program.fact(Layout).isolate(statement))


def _is_first(statement: ast.stmt, call: ast.Call) -> bool:
    """Return whether the call is certainly evaluated, and before anything that the step could change."""
    path = expression_path(statement, call)
    for parent, child in pairwise(path):
        if isinstance(parent, (ast.Lambda, ast.Await, *COMPREHENSIONS)):
            return False
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            return False
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return False
        if isinstance(parent, ast.Compare) and child not in (parent.left, parent.comparators[0]):
            return False
        if isinstance(parent, ast.stmt | ast.IfExp):
            continue  # The part of a statement, or of a conditional expression, that is evaluated first.
        if not all(map(_is_fixed, _before(parent, child))):
            return False
    return True


def _before(parent: ast.AST, child: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression that are evaluated before `child`."""
    for part in ast.iter_child_nodes(parent):
        if part is child:
            return
        if isinstance(part, ast.expr | ast.keyword):
            yield part


def _is_fixed(node: ast.AST) -> bool:
    """Return whether `node` has the same value before and after the step."""
    if isinstance(node, ast.keyword):
        return _is_fixed(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_fixed, node.elts))
    return isinstance(node, ast.Constant | ast.Lambda) or (isinstance(node, ast.expr) and dotted(node) != "")
