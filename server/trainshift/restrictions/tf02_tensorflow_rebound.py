"""The TensorFlow module must be named by imports only.

    tf2 = tf                                    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer = tf2.keras.optimizers.Adam(1e-3)

## Why it matters

An object that is made through another name may be missed. On two GPUs that optimizer keeps its learning
rate, and each process its own gradients.

Trainshift finds optimizers, datasets and tapes as members of the module that an import names.

## What to do

Use the import's name everywhere, and give other values other names.

## What is reported

Any other way to bind the module: an assignment (`self.tf = tf`, a tuple, `:=`, a loop, a container),
`importlib.import_module("tensorflow")`, a parameter that it is passed to or is the default of. Also the
import's name where it means something else, in the module or as a local name of a scope that uses
TensorFlow.

Not reported: a local name in a scope that uses no TensorFlow, and passing the module to a function of a
library. An alias of a submodule (`K = tf.keras.backend`, `tf1 = tf.compat.v1`) is TF03.

Harmless: a value of the name only where TensorFlow is missing: `tf = None` under `except ImportError:`, in
the other branch of a condition, or before the import.

Unknown: a module whose name the script computes, a function without source that is given the module, and a
parameter of the import's name that is used like TensorFlow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries.common import ROOTS, is_common
from trainshift.python.names.uses import readings_in
from trainshift.python.names.values import Instance, Library, Member, Unknown, UserInstance, Value
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    ChunkSyntax,
    Scope,
    Site,
    Statement,
    dotted,
    last_name,
)
from trainshift.restrictions.names.aliases import Alias, Aliases, catches_import_error

_MISSED = "the conversion may miss objects that are made through it"
_HIDDEN = "Horovod's code would not find TensorFlow there. Rename it"
# Members that hardly anything but TensorFlow has.
_TELLING = frozenset(
    {
        "GradientTape", "Session", "Tensor", "TensorShape", "Variable", "cast", "compat", "constant",
        "contrib", "control_dependencies", "convert_to_tensor", "distribute", "estimator",
        "executing_eagerly", "function", "keras", "nn", "one_hot", "placeholder", "reduce_mean",
        "reduce_sum", "saved_model", "stop_gradient",
    }
)  # fmt: skip


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each name of TensorFlow without an import, or with another meaning beside the
    import.
    """
    reported: set[Binding] = set()
    for alias in program.fact(Aliases).aliases:
        if alias.is_module or (alias.dynamic and not alias.names and _may_be_used_as_module(program, alias)):
            reported.add(alias.binding)
            yield _alias(program, report, alias)
    for finding, binding in _parameters(program, report):
        if binding is not None:
            if binding in reported:
                continue
            reported.add(binding)
        yield finding
    for name in program.fact(Aliases).module_names:
        yield from _rebindings(program, report, name, reported)
        yield from _shadows(program, report, name, reported)


# Other names of the module


def _alias(program: Program, report: Report, alias: Alias) -> Finding:
    target = program.fact(Aliases).target(alias.binding)
    if alias.dynamic:
        message = f"{target.text} is a module whose name the script computes. If it is TensorFlow, {_MISSED}."
        return report.unknown(target.span, message)
    verb = "holds TensorFlow" if alias.held else "is another name for TensorFlow"
    fix = None
    edits = program.fact(Aliases).inlined(alias)
    shown = program.fact(Aliases).shown(alias)
    if edits and alias.binding.statement is not None:
        span = program.script.statement_span(alias.binding.statement)
        fix = report.change(f"Use {shown} instead of {target.text}", span, edits)
    related = _imported_here(program, alias.value)
    return report.violated(target.span, f"{target.text} {verb}: {_MISSED}. Use {shown}.", related, fix)


def _imported_here(program: Program, value: ast.expr | None = None) -> tuple[Related, ...]:
    """The places where the script imports TensorFlow, under the name in use if it has several."""
    names = program.fact(Aliases).module_names
    wanted = last_name(value) if value is not None else ""
    bindings = names.get(wanted) or next(iter(names.values()), [])
    for binding in bindings:
        if binding.statement is not None:
            span = program.script.statement_span(binding.statement)
            return (Related(span, "TensorFlow is imported here"),)
    return ()


def _may_be_used_as_module(program: Program, alias: Alias) -> bool:
    """Return whether the names read from an unknown module, if any, all exist in TensorFlow."""
    read = _read_from(program, program.fact(Aliases).target(alias.binding).text)
    return not read or not read.isdisjoint(_TELLING)


def _read_from(program: Program, name: str) -> set[str]:
    """The attributes that are read from a (dotted) name anywhere in the script."""
    return {
        node.attr
        for facts in program.script.facts
        if facts.loads.get(name.rpartition(".")[2])
        for top in facts.top
        for node in ast.walk(top.node)
        if isinstance(node, ast.Attribute) and dotted(node.value) == name
    }


# Parameters


def _parameters(program: Program, report: Report) -> Iterator[tuple[Finding, Binding | None]]:
    """Yield findings for parameters that are the module, and for unknown functions that get it."""
    imports, script = program.fact(Aliases), program.script
    carriers = set(imports.module_names)
    carriers.update(
        last_name(each.binding.target)
        for each in imports.aliases
        if each.is_module and isinstance(each.binding.target, ast.expr)
    )
    if not carriers:
        return
    for scope, binding, value in (item for facts in script.facts for item in facts.once(_defaults)):
        if last_name(value) in carriers and imports.is_module(value, binding.scope, scope.statement):
            carriers.add(imports.target(binding).text)
            yield _parameter(program, report, binding, None), binding
    seen: set[ast.expr] = set()
    grown = True
    while grown:
        grown = False
        for site, given in ((site, each) for site, named in script.code.given.items() for each in named):
            if last_name(given) not in carriers or given in seen:
                continue
            if not imports.is_module(given, site.scope, site.statement):
                continue
            seen.add(given)
            for taken in _receiving(program, site, given):
                if taken is None:
                    yield _handed_over(program, report, site, given), None
                elif script.home(taken.scope) is script:
                    name = imports.target(taken).text
                    grown = grown or name not in carriers
                    carriers.add(name)
                    yield _parameter(program, report, taken, script.span(given, site)), taken
                else:
                    yield _handed_over(program, report, site, given), None


def _defaults(facts: ChunkSyntax) -> list[tuple[Scope, Binding, ast.expr]]:
    """The parameters of a chunk whose default is a name, with their functions."""
    return [
        (scope, binding, binding.value)
        for scope in facts.scopes
        for bindings in scope.bindings.values()
        for binding in bindings
        if binding.kind == "parameter" and binding.value is not None and last_name(binding.value)
    ]


def _parameter(program: Program, report: Report, binding: Binding, given: Span | None) -> Finding:
    target = program.fact(Aliases).target(binding)
    function = binding.inner.name if binding.inner is not None else ""
    where = f" of {function}()" if function else ""
    message = f"{target.text}{where} is another name for TensorFlow: {_MISSED}. Use the import's name."
    related = _imported_here(program) if given is None else (Related(given, "TensorFlow is passed here"),)
    return report.violated(target.span, message, related)


def _receiving(program: Program, site: Site, given: ast.expr) -> Iterator[Binding | None]:
    """Yield the parameters that get an argument; None for an unknown function, nothing for a library's."""
    functions = program.names.called_functions(site)
    for function in functions:
        found = False
        for name, bindings in function.bindings.items():
            if bindings[0].kind == "parameter" and program.names.argument(site, function, name) is given:
                found = True
                yield bindings[0]
        if not found:
            yield None
    if not functions and not all(_is_library(value) for value in program.names.callee(site)):
        yield None


def _is_library(value: Value) -> bool:
    if isinstance(value, Library):
        return is_common(value.name)
    return isinstance(value, Member) and isinstance(value.owner, Instance) and is_common(value.owner.cls)


def _handed_over(program: Program, report: Report, site: Site, given: ast.expr) -> Finding:
    called, text = program.script.text(site.node.func, site), program.script.text(given, site)
    message = f"{called} is given {text}, and its code is not visible. If it keeps TensorFlow, {_MISSED}."
    return report.unknown(program.script.span(given, site), message)


# Other meanings of the import's name


def _rebindings(program: Program, report: Report, name: str, reported: set[Binding]) -> Findings:
    """Report other bindings of the import's name in the same scope."""
    imports = program.fact(Aliases)
    for scope in _homes(program, name):
        bindings = program.script.module_bindings[name] if scope is None else scope.bindings[name]
        own = [binding for binding in bindings if imports.is_module_import(binding)]
        for binding in bindings:
            if binding in own or binding in reported or binding.kind == "deleted":
                continue
            reported.add(binding)
            target = imports.target(binding)
            if _is_stand_in(program, binding, own):
                verdict, why = Verdict.HARMLESS, "this runs only if TensorFlow is missing"
            else:
                verdict, why = Verdict.VIOLATED, _HIDDEN
            message = f"{name} is TensorFlow's name, but not here: {why}."
            yield report.finding(verdict, target.span, message, _imported_at(program, own))


def _homes(program: Program, name: str) -> list[Scope | None]:
    """The scopes in which imports bind the name; None for the module."""
    homes: dict[Scope | None, None] = {}
    for binding in program.fact(Aliases).module_names[name]:
        scope = binding.scope
        homes[None if scope.kind == "module" or name in scope.declared_global else scope] = None
    return list(homes)


def _imported_at(program: Program, bindings: list[Binding]) -> tuple[Related, ...]:
    statements = [binding.statement for binding in bindings if binding.statement is not None]
    return tuple(
        Related(program.script.statement_span(statement), "TensorFlow is imported here")
        for statement in statements[:1]
    )


def _is_stand_in(program: Program, binding: Binding, imports: list[Binding]) -> bool:
    """Return whether the binding holds only if, or as long as, the import has not run."""
    statement = binding.statement
    if statement is None:
        return False
    nothing = isinstance(binding.value, ast.Constant) and not binding.value.value
    for each in imports:
        if each.statement is None:
            continue
        beside = _branches_apart(statement, each.statement)
        if beside is not None:
            parent, branch = beside
            if isinstance(parent.node, ast.Try) and branch.startswith("except"):
                return catches_import_error(parent.node)
            if nothing and isinstance(parent.node, ast.If):
                return True
    # A name without a value so far, which the import is meant to bind.
    span = program.script.statement_span
    starts = [span(each.statement).start for each in imports if each.statement is not None]
    return nothing and span(statement).start < min(starts)


def _branches_apart(one: Statement, other: Statement) -> tuple[Statement, str] | None:
    """The compound statement with the two in different branches, and the branch of `one`."""
    above = {step.parent: step.branch for step in other.path() if step.parent is not None}
    for step in one.path():
        if step.parent is not None and step.parent in above:
            return (step.parent, step.branch) if above[step.parent] != step.branch else None
    return None


def _shadows(program: Program, report: Report, name: str, reported: set[Binding]) -> Findings:
    """Local names that hide the import's in a scope that uses TensorFlow."""
    imports = program.fact(Aliases)
    for scope in imports.scopes:
        bindings = scope.bindings.get(name)
        if not bindings or scope.kind == "module" or name in scope.declared_global | scope.declared_nonlocal:
            continue
        if any(binding in reported or imports.is_module_import(binding) for binding in bindings):
            continue
        _, hidden = program.names.lookup(name, scope.parent or scope, scope.statement)
        if not any(imports.is_module_import(binding) for binding in hidden):
            continue
        binding = bindings[0]
        target = imports.target(binding)
        if _uses_tensorflow(program, scope, name):
            message = f"{name} is TensorFlow's name, but not here: {_HIDDEN}."
            yield report.violated(target.span, message, _imported_at(program, hidden))
        elif _is_used_alike(program, scope, name):
            message = f"{name} may be TensorFlow here or something else. Rename it if it is not."
            yield report.unknown(target.span, message, _imported_at(program, hidden))


def _uses_tensorflow(program: Program, scope: Scope, name: str) -> bool:
    """Return whether code in the scope uses TensorFlow, or one of its objects, under another name."""
    for statement in _statements(scope):
        for reading in readings_in(statement):
            node, inner = reading.node, reading.scope
            if node.id == name or not (_within(inner, scope) or statement.node is scope.node):
                continue
            values = program.names.values(node, inner, statement)
            if any(_is_tensorflow(program, value) for value in values):
                return True
    return False


def _statements(scope: Scope) -> list[Statement]:
    """The statements in a scope; for a lambda or a comprehension, the one around it."""
    if scope.kind == "class":  # whose names are not visible in its methods
        return [each for each in scope.facts.statements if each.scope is scope]
    own = [scope.statement] if scope.statement is not None else []
    return own + [each for each in scope.facts.statements if _within(each.scope, scope)]


def _within(scope: Scope | None, outer: Scope) -> bool:
    while scope is not None and scope is not outer:
        scope = scope.parent
    return scope is not None


def _is_tensorflow(program: Program, value: Value) -> bool:
    if isinstance(value, Library | Instance):
        name = value.name if isinstance(value, Library) else value.cls
        return name.partition(".")[0] in ROOTS
    if isinstance(value, UserInstance):
        return any(each.partition(".")[0] in ROOTS for each in program.names.library_bases(value.scope))
    return False


def _is_used_alike(program: Program, scope: Scope, name: str) -> bool:
    """Return whether a name of an unknown object is used with members that TensorFlow has."""
    values = {value for each in scope.bindings[name] for value in program.names.bound(each)}
    if not any(isinstance(value, Unknown) for value in values) or scope.node is None:
        return False
    return any(
        isinstance(node, ast.Attribute) and node.attr in _TELLING and dotted(node.value) == name
        for node in ast.walk(scope.node)
    )
