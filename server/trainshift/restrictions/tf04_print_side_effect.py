"""The arguments of a print must only compute a value.

    print("loss", train_step(x))            loss = train_step(x)
                                            print("loss", loss)

## Why it matters

Only rank 0 will print, so only rank 0 runs the arguments. A training step in there hangs on two GPUs: rank 0
waits for the other rank's gradients.

With `next(...)` the two go on with different data.

## What to do

Assign the value on the line before, and print the variable.

## What is reported

An argument that assigns (`:=`), awaits or yields, or that calls something with side effects: `next`,
`input`, `open`, a method that changes its object (`append`, `pop`, `assign`, `update_state`), a call that
trains, or a function of the project whose body does one of these. Also a `print` with `file=` an open file.

Not reported: builtins, methods of strings, arrays and tensors, NumPy, `time`, TensorFlow's functions, the
call of a model, `result()` of a metric, f-strings and comprehensions of these, a function that changes only
what it has made itself, and `file=sys.stdout` or `sys.stderr`.

Unknown: a function of a library that Trainshift does not know, a method whose name says nothing, and
`evaluate` and `predict` of a model.
"""

from __future__ import annotations

import ast

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import entries
from trainshift.libraries.entries import prints
from trainshift.python.names.script import Script
from trainshift.python.names.values import Instance, Library, Literal, Value
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Site, arguments, hides_arguments, last_name
from trainshift.python.syntax.precedence import assigned
from trainshift.python.values.effects import Effect, SideEffect
from trainshift.training.loops.call_effects import Effects

_PRINTS = ("builtins.print", "tensorflow.print")
_TERMINAL = frozenset({"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"})
_STREAMS = frozenset({"io.StringIO", "io.BytesIO", "io.TextIOWrapper"})


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each print with an argument that has, or may have, side effects."""
    for site in program.script.sites_named("print", *_aliases(program)):
        if program.names.calls(site, *_PRINTS):
            found = _judge(program, report, site)
            if found is not None:
                yield found


def _aliases(program: Program) -> list[str]:
    """The names that the script gives to `print`."""
    renamed = [new for new, old in program.script.code.renamed_imports if old == "print"]
    bound = [name for name, value in program.script.code.bound_values if last_name(value) == "print"]
    return list(dict.fromkeys(name for name in (*renamed, *bound) if name != "print"))


def _judge(program: Program, report: Report, site: Site) -> Finding | None:
    worst: tuple[SideEffect, ast.expr] | None = None
    for given in arguments(site.node):
        deed = program.fact(Effects).of_expression(given)
        if deed is not None and (worst is None or deed.effect > worst[0].effect):
            worst = deed, given
    if worst is not None and worst[0].effect is not Effect.UNKNOWN:
        return _finding(program, report, site, *worst)
    return _of_file(program, report, site) or (
        _finding(program, report, site, *worst) if worst is not None else None
    )


def _finding(program: Program, report: Report, site: Site, deed: SideEffect, given: ast.expr) -> Finding:
    at = _reliable(site, deed.node, given)
    span = program.script.span(at, site)
    called = _shown(deed.node, program.script.text(at, site) if at is deed.node else "")
    if deed.effect is Effect.UNKNOWN:
        message = (
            f"{called} may have side effects, and only rank 0 will run this print. "
            "If it does, move it to the line before."
        )
        return report.unknown(span, message)
    message = f"{called} {deed.what} inside a print, which only rank 0 will run. Move it to the line before."
    origin = deed.origin
    while origin is not None and origin.origin is not None:
        origin = origin.origin
    related: tuple[Related, ...] = ()
    if origin is not None:
        home = program.script.home(origin.scope)
        where = _origin_span(home, origin)
        related = (Related(where, f"{called} does it here", program.elsewhere(home)),)
    return report.violated(span, message, related, _fix(program, report, site))


def _shown(node: ast.AST, text: str = "") -> str:
    """An expression as shown in messages: its own text, if known."""
    text = one_line(text or ast.unparse(node))
    if len(text) > 40 and isinstance(node, ast.Call):
        text = f"{one_line(ast.unparse(node.func))}(...)"
    return text


def _reliable(site: Site, node: ast.AST, given: ast.expr) -> ast.AST:
    """The node to point at: `node`, or the f-string around it, in which positions are unreliable."""
    if site.in_fstring:
        return site.statement.node
    for part in ast.walk(given):
        if isinstance(part, ast.JoinedStr) and any(inner is node for inner in ast.walk(part)):
            return part
    return node


def _origin_span(home: Script, origin: SideEffect) -> Span:
    if isinstance(origin.node, ast.Call):
        site = home.site_of(origin.node)
        if site.in_fstring:
            return home.statement_span(site.statement)
    return home.span(origin.node, origin.scope)


# The target of the print


def _of_file(program: Program, report: Report, site: Site) -> Finding | None:
    """The finding about the `file` argument of a print, if any."""
    word = next((each for each in site.node.keywords if each.arg in ("file", "output_stream")), None)
    if word is None:
        return None
    verdict = None
    for value in program.names.site_values(word.value, site):
        if _is_open_file(value):
            verdict = Verdict.VIOLATED
        elif isinstance(value, Library) and (value.name in _TERMINAL or prints(value.name)):
            continue
        elif not isinstance(value, Literal):
            verdict = verdict or Verdict.UNKNOWN
    if verdict is None:
        return None
    shown = _shown(word.value)
    message = f"This print writes to {shown}, an open file: only rank 0 will do that."
    if verdict is Verdict.UNKNOWN:
        message = f"{shown} may be an open file: only rank 0 will write to it."
    return report.finding(verdict, program.script.span(word.value, site), message)


def _is_open_file(value: Value) -> bool:
    if isinstance(value, Instance):
        return value.cls in _STREAMS or entries.opener(value.cls) is not None or value.cls.endswith(".open")
    return isinstance(value, Literal) and isinstance(value.value, str) and value.value.startswith("file:")


# The fix


def _fix(program: Program, report: Report, site: Site) -> Change | None:
    """Bind the parts with side effects, and others evaluated before them, on lines before the print."""
    statement = site.statement
    own = isinstance(statement.node, ast.Expr) and statement.node.value is site.node
    if not own or statement.scope.kind == "class":  # A class would keep the variable.
        return None
    script, layout = program.script, program.fact(Layout)
    given = arguments(site.node)
    acting = [index for index, each in enumerate(given) if _acts(program, each)]
    starts = [script.span(each, site).start for each in given]
    if not acting or site.in_fstring or starts != sorted(starts):
        return None
    if hides_arguments(site.node):  # An unpacked argument would have to be copied before it changes.
        return None
    lines: list[str] = []
    edits: list[Edit] = []
    taken: set[str] = set()
    for index, node in enumerate(given[: acting[-1] + 1]):
        if index not in acting and _is_settled(program, node, site):
            continue
        if _is_lazy(program, node, site):
            return None
        span = layout.enclosed(node, site)
        name = _name(program, node, taken)
        if isinstance(node, ast.NamedExpr):
            text = script.text(node.value, site)
        else:
            text = script.source.text[span.start : span.end]
        taken.add(name)
        lines.append(f"{name} = {assigned(text)}")
        edits.append(Edit(span.start, span.end, name))
    title = (
        f"Bind {'the printed values' if len(lines) > 1 else lines[0].partition(' = ')[0]} before the print"
    )
    edits.insert(0, layout.before(statement, lines))
    return report.change(title, script.statement_span(statement), tuple(edits), layout.isolate(statement))


def _acts(program: Program, node: ast.expr) -> bool:
    deed = program.fact(Effects).of_expression(node)
    return deed is not None and deed.effect is not Effect.UNKNOWN


def _is_settled(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether it makes no difference if `node` is read before or after other code has acted."""
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Constant)
    if any(isinstance(part, ast.NamedExpr) and part.target.id == node.id for part in ast.walk(site.node)):
        return False
    if any(node.id in scope.declared_nonlocal for scope in site.scope.facts.scopes):
        return False
    _, bindings = program.names.lookup(node.id, site.scope, None)
    return not any(node.id in binding.scope.declared_global for binding in bindings)


def _is_lazy(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether `node` evaluates to an iterator with effects only when it is printed."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.GeneratorExp)
    names = program.names.full_names(node.func, site.scope, site.statement)
    return not names.isdisjoint({"builtins.map", "builtins.filter", "builtins.zip", "builtins.enumerate"})


def _name(program: Program, node: ast.expr, taken: set[str]) -> str:
    """The name to which an argument is bound."""
    if isinstance(node, ast.NamedExpr):
        return node.target.id
    return program.script.fresh("value", taken=taken)
