"""A name that holds a dataset or an optimizer must hold nothing else later.

    ds = tf.data.Dataset.range(8)               ds = tf.data.Dataset.range(8)
    ds = list(ds.as_numpy_iterator())           values = list(ds.as_numpy_iterator())

## Why it matters

The edit that is right for the first value breaks the second. On two GPUs you would see an error, or data cut
in half.

The conversion follows a dataset or an optimizer by its name, which must not hold a list, an iterator or a
number later.

## What to do

Give the second value a name of its own.

## What is reported

An assignment that gives the name something else. An iterator over a dataset (`iter(ds)`) is not a dataset.

Not reported: another object of the two kinds (`db = db.batch(32)`, `opt = LossScaleOptimizer(opt)`), a name
that was `None` before, and something else in a branch that excludes the first.

Unknown: a value from a function whose code is not in the project, such as an imported `preprocess(ds)`.

The fix renames the second value where every later use plainly means it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.uses import NameUses
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Binding, Scope, dotted, last_name
from trainshift.training.objects.creations import Creations, MadeKind, gives_dataset
from trainshift.training.objects.holders import excludes

_HELD = frozenset({MadeKind.DATASET, MadeKind.OPTIMIZER})
# Calls that return their dataset or optimizer argument in another form.
_WRAPPING = frozenset(
    {
        "experimental_distribute_dataset",
        "enable_mixed_precision_graph_rewrite",
        "DistributedOptimizer",
        "create_distributed_optimizer",
        "wrap_optimizer",
    }
)


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each binding that gives the name of a dataset or an optimizer another value."""
    if not program.fact(Creations).of(*_HELD):
        return
    for name, bindings in _names(program):
        if not name.strip("_"):  # `_` is for unwanted values
            continue
        held: list[tuple[Binding, MadeKind]] = []
        lost: list[Binding] = []
        for binding in bindings:
            kinds = program.fact(Creations).bound(binding)
            before = next((each for each in held if not _apart(each[0], binding)), None)
            kind = next((kind for kind in (MadeKind.DATASET, MadeKind.OPTIMIZER) if kind in kinds), None)
            if kind is not None:
                held.append((binding, kind))
                lost.clear()
            elif before is not None and kinds and not _wraps(program, binding):
                if any(_in_one_block(each, binding) for each in lost):
                    continue  # The name no longer held its object.
                lost.append(binding)
                yield _reassigned(program, report, name, before, binding, MadeKind.UNSEEN in kinds)


def _names(program: Program) -> Iterator[tuple[str, list[Binding]]]:
    """Every name, and attribute of an object, that is bound more than once, with its bindings in text
    order.
    """
    script = program.script
    for name, bindings in script.module_bindings.items():
        if len(bindings) > 1:
            yield name, sorted(bindings, key=lambda each: _start(program, each))
    for scope in script.scopes:
        for name, bindings in scope.bindings.items():
            if len(bindings) > 1 and name not in scope.declared_global:
                yield name, bindings
    attributes = {name for facts in script.facts for name in facts.attributes}
    for attribute in sorted(attributes):
        places: dict[tuple[Scope | None, str], list[Binding]] = {}
        for each in script.attribute_bindings(attribute):
            function = each.binding.scope.function()
            owner = function.owner() if function is not None else None
            of_self = program.names.is_self(each.base, each.binding.scope)
            if base := dotted(each.base):
                place = (owner if of_self else function, f"{base}.{attribute}")
                places.setdefault(place, []).append(each.binding)
        yield from ((name, given) for (_, name), given in places.items() if len(given) > 1)


def _start(program: Program, binding: Binding) -> int:
    if binding.statement is None:
        return -1
    return program.script.statement_span(binding.statement).start


def _in_one_block(one: Binding, other: Binding) -> bool:
    """Return whether the bindings are in one block, so that the second follows the first."""
    first, second = one.statement, other.statement
    if first is None or second is None:
        return False
    return first.parent is second.parent and first.branch == second.branch


def _apart(one: Binding, other: Binding) -> bool:
    """Return whether no run of the code takes both bindings, so that neither is a later value of the
    other.
    """
    if one.statement is None or other.statement is None:
        return False
    return excludes(one.statement, other.statement)


def _wraps(program: Program, binding: Binding) -> bool:
    """Return whether the new value is still a dataset or an optimizer, judged by the called name."""
    value = binding.value
    if not isinstance(value, ast.Call) or binding.path:
        return False
    method = last_name(value.func) if isinstance(value.func, ast.Attribute) else ""
    derived = gives_dataset(method) and MadeKind.UNSEEN in program.fact(Creations).bound(binding)
    return derived or last_name(value.func) in _WRAPPING


def _reassigned(
    program: Program,
    report: Report,
    name: str,
    before: tuple[Binding, MadeKind],
    binding: Binding,
    unseen: bool,
) -> Finding:
    first, kind = before
    if unseen:
        verdict = Verdict.UNKNOWN
        message = (
            f"`{name}` held {_A[kind]} and may hold something else from here on, which an edit for the "
            f"{kind.value} would break. Use another name."
        )
    else:
        verdict = Verdict.VIOLATED
        message = (
            f"`{name}` held {_A[kind]} and holds something else from here on, which an edit for the "
            f"{kind.value} would break. Use another name."
        )
    related: tuple[Related, ...] = ()
    home = first.statement or (first.inner.statement if first.inner is not None else None)
    if home is not None:
        related = (Related(program.script.header_span(home), f"`{name}` holds {_A[kind]} from here."),)
    return report.finding(
        verdict,
        _span(program, binding),
        message,
        related,
        None if unseen else _rename(program, report, name, binding),
    )


_A = {MadeKind.DATASET: "a dataset", MadeKind.OPTIMIZER: "an optimizer"}


def _span(program: Program, binding: Binding) -> Span:
    script = program.script
    if isinstance(binding.target, ast.Name | ast.Attribute):
        return script.span(binding.target, binding.scope)
    assert binding.statement is not None
    return script.header_span(binding.statement)


def _rename(program: Program, report: Report, name: str, binding: Binding) -> Change | None:
    """Rename the second value, if every later use of the name certainly means it."""
    script, statement, target = program.script, binding.statement, binding.target
    if statement is None or not isinstance(statement.node, ast.Assign) or not isinstance(target, ast.Name):
        return None
    if binding.scope.kind == "class" or not program.fact(NameUses).can_be_renamed(name):
        return None
    own, bindings = program.names.lookup(name, binding.scope, None)
    if own is None and script.may_be_imported:
        return None
    block, index = script.siblings(statement)
    straight = all(each.statement is None or each.statement in block[: index + 1] for each in bindings)
    in_place = all(each.statement is None or _runs_in_place(each.scope, binding.scope) for each in bindings)
    if (
        statement.is_nested
        or not straight
        or not in_place
        or sum(each.statement is statement for each in bindings) > 1
    ):
        return None
    here = script.statement_span(statement)
    span = script.span(target, binding.scope)
    fresh = program.script.fresh(name)
    edits = [Edit(span.start, span.end, fresh)]
    for reading in program.fact(NameUses).of(name):
        if program.names.lookup(name, reading.scope, None)[0] is not own:
            continue
        at = script.span(reading.node, reading.statement)
        if at.start < here.end:
            if not _runs_in_place(reading.scope, binding.scope):
                return None
        elif reading.string:
            return None
        else:
            edits.append(Edit(at.start, at.end, fresh))
    if len(edits) == 1:
        return None  # Nothing reads the second value: it may be there to release the first one.
    return report.change(f"Rename the second use of `{name}` to `{fresh}`", here, tuple(edits))


def _runs_in_place(scope: Scope | None, home: Scope) -> bool:
    """Return whether the code of `scope` runs in place in `home`, like a list comprehension."""
    while (
        scope is not None and scope.kind == "comprehension" and not isinstance(scope.node, ast.GeneratorExp)
    ):
        scope = scope.parent
    return scope is home or (scope is not None and scope.kind == home.kind == "module")
