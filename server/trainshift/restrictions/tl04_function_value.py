"""A function that trains is called by its name, and not passed on as a value.

Whoever is handed a training function may call it in a thread, never, or on one rank only, and the
calls that every rank must make together then no longer meet: the ranks wait for each other, or train
apart. The training loop is also looked for through calls by name, so that it may be missed.

Violated: a function that is or reaches a training loop is assigned to a variable, stored in a list or a
dictionary, made a default argument, or passed as an argument, bound methods included. Harmless: any other
function of the script (`ds.map(preprocess)`), and the `model_fn` and `input_fn` of an Estimator. Not at all:
decorators, and `app.run(main)`, which is a call of `main`.

By hand: call the function by its name (`@tf.function` above it does what `tf.function(train_step)` does).

Seeds: S2 §3.1 restriction 4, S3 §3.1 restriction 4.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core import api
from trainshift.core.facts import Scope, Site, Statement, last_name
from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.names import Function
from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction

_LAUNCHERS = frozenset({"absl.app.run", "tensorflow.compat.v1.app.run", "tensorflow.app.run", "fire.Fire"})
_ESTIMATOR_SPECS = ("tensorflow.estimator.TrainSpec", "tensorflow.estimator.EvalSpec")
_ESTIMATOR_METHODS = frozenset({"train", "evaluate", "predict"})


def check(program: Program) -> Findings:
    """One finding for each place where a function of the script, or of a linked one, is used as a value."""
    candidates = _names_of_functions(program)
    seen: set[int] = set()
    for node, scope, statement, how in _used_values(program, candidates):
        if id(node) in seen:  # each name of a tuple is bound to the whole of it
            continue
        seen.add(id(node))
        functions = [
            value.scope
            for value in program.names.values(node, scope, statement)
            if isinstance(value, Function)
            and isinstance(value.scope.node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        if functions:
            yield _finding(program, node, scope, functions, how)


def _finding(program: Program, node: ast.expr, scope: Scope, functions: list[Scope], how: str) -> Finding:
    name = program.script.text(node, scope)
    trains = [function for function in functions if function in program.loops.functions]
    defined = (trains or functions)[0]
    home = program.script.home(defined)
    assert defined.statement is not None
    related = (Related(home.line_span(defined.statement), f"{name} is defined here", home),)
    span = program.script.span(node, scope)
    if trains and how != "given to an Estimator":
        message = (
            f"{name} trains and is {how} instead of called by its name; every rank must make the same "
            "training calls, and what calls it is not seen."
        )
        return Finding("TL04", Verdict.VIOLATED, span, message, related)
    what = "is what the Estimator runs itself" if trains else "does not train"
    return Finding("TL04", Verdict.HARMLESS, span, f"{name} is {how}, but it {what}.", related)


def _names_of_functions(program: Program) -> set[str]:
    """The names under which functions may be used: those that are defined, or imported from the workspace."""
    script = program.script
    names = {scope.name for scope in script.scopes if scope.kind == "function" and scope.name}
    if script.workspace is not None:
        for path in dict.fromkeys(script.workspace.imported_by(script)):
            other = script.workspace.script(path)
            if other is not None:
                names |= {scope.name for scope in other.scopes if scope.kind == "function" and scope.name}
                names |= {new for new, old in script.renamed_imports if old in names}
    return names


def _used_values(
    program: Program, candidates: set[str]
) -> Iterator[tuple[ast.expr, Scope, Statement | None, str]]:
    """Each name of a function that is assigned, stored or passed: the expression, its place, and how."""
    for site in program.script.sites:
        names = program.names.full_names(site.node.func, site.scope, site.statement)
        if not names.isdisjoint(_LAUNCHERS):
            continue
        for given in (*site.node.args, *(word.value for word in site.node.keywords)):
            for node in _parts(given, candidates):
                how = "passed as an argument" if node is given else "stored in a container"
                if _is_for_estimator(program, site, names):
                    how = "given to an Estimator"
                yield node, site.scope, site.statement, how
    for binding in program.script.bindings:
        if binding.kind not in ("value", "parameter") or binding.value is None:
            continue
        for node in _parts(binding.value, candidates):
            how = "assigned to a variable" if node is binding.value else "stored in a container"
            how = "a default argument" if binding.kind == "parameter" else how
            yield node, binding.scope, binding.statement, how


def _parts(node: ast.expr, candidates: set[str]) -> Iterator[ast.expr]:
    """The names of functions that an expression is made of, in lists, dictionaries and choices too."""
    if isinstance(node, ast.Name | ast.Attribute):
        if last_name(node) in candidates:
            yield node
        return
    inside: list[ast.expr | None] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        inside = [*node.elts]
    elif isinstance(node, ast.Dict):
        inside = [*node.values]
    elif isinstance(node, ast.IfExp):
        inside = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        inside = [*node.values]
    elif isinstance(node, ast.Starred | ast.NamedExpr):
        inside = [node.value]
    for part in inside:
        if part is not None:
            yield from _parts(part, candidates)


def _is_for_estimator(program: Program, site: Site, names: set[str]) -> bool:
    if any(api.is_subclass(name, *api.ESTIMATOR, *_ESTIMATOR_SPECS) for name in names):
        return True
    if any(name.endswith(("estimator.TrainSpec", "estimator.EvalSpec")) for name in names):
        return True
    if site.name not in _ESTIMATOR_METHODS or not isinstance(site.node.func, ast.Attribute):
        return False
    return program.names.may_be(program.names.site_values(site.node.func.value, site), *api.ESTIMATOR)


RULE = Restriction("TL04", "function-value", check)
