"""Must run, may raise: the parts of a statement that certainly run, those that may raise an exception, and
tests with one outcome.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from trainshift.python.syntax.node_classes import COMPOUND, DEFINITIONS

Ends = Callable[[ast.Call], bool]
"""Returns whether a call never returns: it ends the process, or always raises."""

Swallows = Callable[[ast.withitem], bool]
"""Returns whether a context manager may suppress an exception of its block."""

_HEADED = (*COMPOUND, *DEFINITIONS)
_STILL = (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)


def never_ends(_call: ast.Call) -> bool:
    """Assume that every call returns."""
    return False


def may_swallow(_item: ast.withitem) -> bool:
    """Assume of every context manager that it may suppress exceptions."""
    return True


def heads(statement: ast.stmt) -> list[ast.AST]:
    """Return the nodes that a statement evaluates itself, in order: all of a simple one, the head of a
    compound one.
    """
    if not isinstance(statement, _HEADED):
        return [statement]
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For() | ast.AsyncFor():
            return [statement.iter, statement.target]
        case ast.With() | ast.AsyncWith():
            return [*statement.items]
        case ast.Match(subject=subject):
            return [subject]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*statement.decorator_list, statement.args, *filter(None, [statement.returns])]
        case ast.ClassDef():
            return [*statement.decorator_list, *statement.bases, *statement.keywords, *statement.body]
    return []


def always_evaluated(*nodes: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the parts of code that run whenever it runs to its end, without branches and bodies of
    functions.
    """
    for node in nodes:
        if node is None:
            continue
        yield node
        match node:
            case ast.BoolOp(values=values):
                yield from always_evaluated(values[0])
            case ast.IfExp(test=test):
                yield from always_evaluated(test)
            case ast.Compare(left=left, comparators=comparators):
                yield from always_evaluated(left, comparators[0])
            case ast.Assert(test=test):
                yield from always_evaluated(test)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield from always_evaluated(node.generators[0].iter)
            case ast.Lambda(args=args):
                yield from always_evaluated(args)
            case ast.arguments(defaults=defaults, kw_defaults=keyword_defaults):
                yield from always_evaluated(*defaults, *keyword_defaults)
            case ast.AnnAssign(value=value):
                yield from always_evaluated(value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from always_evaluated(*node.decorator_list, node.args)
            case ast.ClassDef():
                yield from always_evaluated(*node.decorator_list, *node.bases, *node.keywords)
            case ast.stmt() | ast.expr() | ast.withitem() | ast.keyword():
                yield from always_evaluated(
                    *(part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt))
                )


def surely_ends(ends: Ends, *nodes: ast.AST | None) -> bool:
    """Return whether code surely makes a call that never returns."""
    if ends is never_ends:
        return False
    return any(isinstance(part, ast.Call) and ends(part) for part in always_evaluated(*nodes))


def may_fail(*nodes: ast.AST | None) -> bool:
    """Return whether evaluating code may raise an exception; only constants and similar expressions
    cannot.
    """
    return any(node is not None and _may_fail(node) for node in nodes)


def _may_fail(node: ast.AST) -> bool:
    match node:
        case ast.Constant():
            return False
        case ast.Lambda(args=args):
            return _may_fail(args)
        case ast.arguments(defaults=defaults, kw_defaults=keyword_defaults):
            own = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            annotations = [each.annotation for each in (*own, node.vararg, node.kwarg) if each is not None]
            return may_fail(*defaults, *keyword_defaults, *annotations)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return not isinstance(node.ctx, ast.Load) or may_fail(*parts)
        case ast.Name(ctx=context):
            return not isinstance(context, ast.Store)
        case ast.Expr(value=value) | ast.Return(value=value):
            return may_fail(value)
        case ast.Assign(targets=targets, value=value):
            return may_fail(value, *targets)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return may_fail(*heads(node))
    return not isinstance(node, _STILL)


def block_may_fail(block: Sequence[ast.stmt]) -> bool:
    """Return whether running statements, and those inside them, may raise an exception."""
    for statement in block:
        match statement:
            case ast.If():
                if may_fail(statement.test) or block_may_fail([*statement.body, *statement.orelse]):
                    return True
            case ast.While():
                if may_fail(statement.test) or block_may_fail([*statement.body, *statement.orelse]):
                    return True
            case _:
                if may_fail(statement):
                    return True
    return False


def outcome(test: ast.expr) -> bool | None:
    """Return the constant outcome of a test, or None if it is not constant."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = outcome(operand)
            return None if found is None else not found
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [outcome(each) for each in values]
            return False if parts[0] is False else (True if all(parts) else None)
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [outcome(each) for each in values]
            return True if parts[0] is True else (False if all(each is False for each in parts) else None)
    return None


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches every exception: `except:` or `except BaseException:`."""
    match handler.type:
        case None | ast.Name(id="BaseException"):
            return True
        case ast.Tuple(elts=parts):
            return any(isinstance(part, ast.Name) and part.id == "BaseException" for part in parts)
    return False


def is_irrefutable(case: ast.match_case) -> bool:
    """Return whether a case of a `match` takes every subject."""
    return case.guard is None and _takes_all(case.pattern)


def _takes_all(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _takes_all(inner)
        case ast.MatchOr(patterns=patterns):
            return any(_takes_all(each) for each in patterns)
    return False
