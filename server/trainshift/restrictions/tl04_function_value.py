"""A function that trains must be called by its name, not passed on as a value.

    steps = {"train": train}                    train(data)
    steps[mode](data)

## Why it matters

Code that gets the function may call it in one process only, and on two GPUs the other one then waits forever.
The conversion may also miss the call.

## What to do

Call the function by its name. `@tf.function` above it does what `tf.function(train_step)` does.

## What is reported

A function that trains and is assigned to a variable, stored in a list or a dictionary, made a default, or
passed as an argument, bound methods (`model.fit`) and lambdas included; and `step = make_step()` where that
returns one.

Not reported: decorators, and `app.run(main)`, which calls `main`.

Harmless: any other function (`ds.map(preprocess)`), and the `model_fn` and `input_fn` of an Estimator.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from trainshift.core.finding import Related
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import api
from trainshift.python.flow.traversal import closure
from trainshift.python.names.values import Function, Member
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Statement, last_name
from trainshift.python.syntax.slotted_ast import kind_of
from trainshift.training.loops.loop_kinds import FITTING
from trainshift.training.loops.loops import LAUNCHERS, Loops

_ESTIMATOR_SPECS = ("tensorflow.estimator.TrainSpec", "tensorflow.estimator.EvalSpec")
_ESTIMATOR_METHODS = frozenset({"train", "evaluate", "predict"})
# A name or a lambda, and whether it is stored in a container.
_Part: TypeAlias = tuple[ast.expr, bool]
_STORED = "stored in a container"
_FOR_ESTIMATOR = "given to an Estimator"


class _Use(Struct, frozen=True):
    """A function used as a value: the expression, its place, and the kind of use."""

    node: ast.expr
    scope: Scope
    statement: Statement | None
    how: str


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each place where a function of the script, or of a linked one, is used as a
    value.
    """
    seen: set[int] = set()
    for use in _uses(program, _names_of_functions(program)):
        if id(use.node) not in seen:  # each name of a tuple is bound to the whole tuple
            seen.add(id(use.node))
            yield from _judged(program, report, use)


def _judged(program: Program, report: Report, use: _Use) -> Findings:
    values = program.names.values(use.node, use.scope, use.statement)
    functions = [value.scope for value in values if isinstance(value, Function)]
    trains = [function for function in functions if function in program.fact(Loops).functions]
    if isinstance(use.node, ast.Lambda | ast.Call):  # which are functions, but not names of functions
        functions = trains
    method = _is_training_method(program, use)
    if not functions and not method:
        return
    span = program.script.span(use.node, use.scope)
    name = _shown(program, use)
    first = min(trains or functions, key=lambda function: _place(program, function), default=None)
    related = _definition(program, first, name) if first is not None else ()
    if (trains or method) and use.how != _FOR_ESTIMATOR:
        message = (
            f"{name} trains and is {use.how}, so the conversion may miss where it is called. Call it by its "
            "name, on every rank."
        )
        yield report.violated(span, message, related)
    else:
        what = "the Estimator runs it itself" if trains else "it does not train"
        yield report.harmless(span, f"{name} is {use.how}; {what}.", related)


def _place(program: Program, function: Scope) -> tuple[str, int]:
    """The file and offset of a function, as a sort key."""
    assert function.node is not None
    return program.script.home(function).path, program.script.span(function.node, function).start


def _shown(program: Program, use: _Use) -> str:
    """The name of the function in messages."""
    if isinstance(use.node, ast.Lambda):
        return "This lambda"
    if isinstance(use.node, ast.Call):
        return f"What {one_line(program.script.text(use.node.func, use.scope))}(...) returns"
    return one_line(program.script.text(use.node, use.scope))


def _definition(program: Program, function: Scope, name: str) -> tuple[Related, ...]:
    if function.statement is None or not function.name:
        return ()
    home = program.script.home(function)
    message = f"{name if name[0].islower() else function.name} is defined here"
    span = home.header_span(function.statement)
    return (Related(span, message, program.elsewhere(home)),)


def _is_training_method(program: Program, use: _Use) -> bool:
    """Return whether the value is the `fit` of a Keras model, or the `train` of an Estimator."""
    if not isinstance(use.node, ast.Attribute):
        return False
    families = api.MODEL if use.node.attr in FITTING else api.ESTIMATOR if use.node.attr == "train" else ()
    values = program.names.values(use.node, use.scope, use.statement)
    return any(isinstance(value, Member) and program.names.is_a(value.owner, *families) for value in values)


def _names_of_functions(program: Program) -> set[str]:
    """The names of functions: their own, those of imports, and those assigned to them."""
    script = program.script
    names = {scope.name for scope in script.scopes if scope.kind == "function" and scope.name}
    names |= {*FITTING, "train"}
    for other in script.workspace.reachable if script.workspace is not None else ():
        names |= {scope.name for scope in other.scopes if scope.kind == "function" and scope.name}
    names |= {new for new, old in script.code.renamed_imports if old in names}
    aliases: dict[str, list[str]] = {}
    for name, value in script.code.bound_values:
        origins = value.args[:1] if isinstance(value, ast.Call) else [value]
        for origin in origins:
            aliases.setdefault(last_name(origin), []).append(name)
    return closure(names, aliases)


def _uses(program: Program, candidates: set[str]) -> Iterator[_Use]:
    """Each function that is assigned, stored or passed."""
    script = program.script
    for site in script.sites:
        called = site.node.func
        if isinstance(called, (ast.Attribute, ast.Subscript)) and isinstance(called.value, _CONTAINERS):
            for node, _ in _parts(called.value, candidates):
                yield _Use(node, site.scope, site.statement, _STORED)
    for site, arguments in script.code.given.items():
        given = [part for each in arguments for part in _parts(each, candidates)]
        if given:
            yield from _passed(program, site, given)
    for binding in (each for facts in script.facts for each in facts.bindings):
        if binding.value is None or binding.kind not in ("value", "parameter", "element"):
            continue
        plain = "a default argument" if binding.kind == "parameter" else "assigned to a variable"
        for node, stored in _parts(binding.value, candidates):
            if stored or binding.kind != "element":
                yield _Use(node, binding.scope, binding.statement, _STORED if stored else plain)
        if binding.kind == "value" and isinstance(binding.value, ast.Call) and not binding.path:
            yield from _made(program, binding, binding.value)
    for scope in script.scopes:
        for value, statement in scope.returns:
            for node, stored in _parts(value, candidates):
                if stored:
                    yield _Use(node, scope, statement, _STORED)


def _passed(program: Program, site: Site, given: list[_Part]) -> Iterator[_Use]:
    """Yield the functions among a call's arguments."""
    names = program.names.full_names(site.node.func, site.scope, site.statement)
    if not names.isdisjoint(LAUNCHERS):
        return
    estimator = _is_for_estimator(program, site, names)
    for node, stored in given:
        how = _STORED if stored else "passed as an argument"
        yield _Use(node, site.scope, site.statement, _FOR_ESTIMATOR if estimator else how)


def _made(program: Program, binding: Binding, call: ast.Call) -> Iterator[_Use]:
    """A call of a function of the script that returns a function: ``step = make_step(model)``."""
    if not program.script.may_run(call):
        return
    called = program.names.values(call.func, binding.scope, binding.statement)
    if any(isinstance(value, Function) and value.scope.returns for value in called):
        yield _Use(call, binding.scope, binding.statement, "assigned to a variable")


_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


def _parts(node: ast.expr, candidates: set[str], stored: bool = False) -> list[_Part]:
    """The names and lambdas in an expression that may be functions."""
    if isinstance(node, ast.Name):
        return [(node, stored)] if node.id in candidates else []
    if isinstance(node, ast.Attribute):
        return [(node, stored)] if node.attr in candidates else []
    if isinstance(node, ast.Lambda):
        return [(node, stored)]
    inside = _INSIDE.get(kind_of(node))
    if inside is None:
        return []
    stored = stored or isinstance(node, _CONTAINERS)
    return [part for each in inside(node) if each is not None for part in _parts(each, candidates, stored)]


# The parts of an expression that may be its value, by class; any other class hides them.
_INSIDE: dict[type[ast.AST], Callable[..., list[ast.expr | None]]] = {
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), lambda node: node.elts),
    ast.Dict: lambda node: node.values,
    ast.IfExp: lambda node: [node.body, node.orelse],
    ast.BoolOp: lambda node: node.values,
    ast.BinOp: lambda node: [
        each
        for each in (node.left, node.right)
        if isinstance(node.op, (ast.Add, ast.BitOr)) and isinstance(each, _CONTAINERS)
    ],
    **dict.fromkeys((ast.Starred, ast.NamedExpr), lambda node: [node.value]),
}


def _is_for_estimator(program: Program, site: Site, names: frozenset[str]) -> bool:
    if any(api.is_subclass(name, *api.ESTIMATOR, *_ESTIMATOR_SPECS) for name in names):
        return True
    if any(name.endswith(("estimator.TrainSpec", "estimator.EvalSpec")) for name in names):
        return True
    if site.name not in _ESTIMATOR_METHODS or not isinstance(site.node.func, ast.Attribute):
        return False
    return program.names.may_be(program.names.site_values(site.node.func.value, site), *api.ESTIMATOR)
