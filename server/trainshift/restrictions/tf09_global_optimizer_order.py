"""A global optimizer must be defined before the functions that use it, and not change afterwards.

    @tf.function                            optimizer = tf.keras.optimizers.Adam()
    def train_step(x):
        ...                                 @tf.function
        optimizer.apply_gradients(pairs)    def train_step(x):
                                                ...
    optimizer = tf.keras.optimizers.Adam()      optimizer.apply_gradients(pairs)

## Why it matters

The conversion scales one optimizer and broadcasts its variables. If the function steps another one, that one
is neither scaled nor broadcast, and on two GPUs the models drift apart.

## What to do

Move the definition above the first function that uses it, and assign it once.

## What is reported

A definition after the function, also one under `global`, and a name that is assigned again: at the top of
the script, in a loop, or under `global`. `optimizer = LossScaleOptimizer(optimizer)` assigns it again.

Not reported: branches of which only one assigns, and Horovod's own wrap,
`hvd.DistributedOptimizer(optimizer)`.

Harmless: an attribute that is set (`optimizer.learning_rate = 1e-4`): it stays the same optimizer.

Unknown: a name that may hold an optimizer and is used as one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import entries
from trainshift.libraries.roles import is_wrap
from trainshift.python.names.uses import NameUses
from trainshift.python.names.values import Library
from trainshift.python.source.edit import Change, Edit, Side
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Statement
from trainshift.python.values.effects import Effect
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.loops.call_effects import Effects
from trainshift.training.loops.loop_kinds import named_function
from trainshift.training.objects.creations import Creations, MadeKind
from trainshift.training.objects.holders import excludes

_GIVING = ("value", "context", "element", "import")
_STEPS = ("apply_gradients", "minimize")
_TENSORFLOW = ("tensorflow.", "keras.")
_READING = "so that the conversion knows which optimizer is stepped"


class _Global(Struct, frozen=True):
    """A module-level name of an optimizer, with its bindings in text order."""

    name: str
    bindings: list[Binding]
    certain: bool


class _Use(Struct, frozen=True):
    """The first place where a function reads a global name; `start` is its offset in the script."""

    node: ast.expr
    function: Scope
    start: int


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each function and each global optimizer on which it cannot rely."""
    for each in _globals(program):
        changed = _change(program, each.bindings)
        setting = _setting(program, each.name) if each.certain and changed is None else None
        first = each.bindings[0]
        # If nothing changes it, only uses above the definition can be wrong.
        everywhere = changed or setting or first.scope.kind != "module"
        for use in _uses(program, each.name, None if everywhere else _start(program, first)):
            found = _judge(program, report, each, use, changed, setting)
            if found is not None:
                yield found


def _globals(program: Program) -> Iterator[_Global]:
    """Yield the global names of optimizers, or of unknown objects used as one."""
    used = None
    for name, bindings in program.script.module_bindings.items():
        given = [each for each in bindings if each.kind in _GIVING and not _distributes(program, each)]
        if not given:
            continue
        kinds = frozenset[MadeKind]().union(*map(program.fact(Creations).bound, given))
        if MadeKind.OPTIMIZER in kinds:
            yield _Global(name, sorted(given, key=lambda each: _start(program, each)), True)
        elif MadeKind.UNSEEN in kinds:
            used = _stepped(program) if used is None else used
            if name in used:
                yield _Global(name, sorted(given, key=lambda each: _start(program, each)), False)


def _distributes(program: Program, binding: Binding) -> bool:
    """Return whether the binding is Horovod's wrapper, which is made on purpose."""
    node = binding.value
    if not isinstance(node, ast.Call) or binding.kind != "value":
        return False
    return is_wrap(program.names.full_names(node.func, binding.scope, binding.statement))


def _stepped(program: Program) -> set[str]:
    """The names on which a step is called, or that are the optimizer of a `compile`."""
    receivers = (
        site.node.func.value
        for site in program.script.sites_named(*_STEPS)
        if isinstance(site.node.func, ast.Attribute)
    )
    compiled = (
        word.value
        for site in program.script.sites_named("compile")
        for word in site.node.keywords
        if word.arg == "optimizer"
    )
    return {node.id for node in (*receivers, *compiled) if isinstance(node, ast.Name)}


def _start(program: Program, binding: Binding) -> int:
    """The offset of the binding in the script."""
    assert binding.statement is not None
    return program.script.statement_span(binding.statement).start


# Uses


def _uses(program: Program, name: str, before: int | None) -> list[_Use]:
    """The first use of the global `name` by each function that begins before the offset, if one is given."""
    found: dict[Scope, _Use] = {}
    for reading in program.fact(NameUses).of(name):
        function = named_function(reading.scope) or reading.scope.function()
        if function is None or program.names.lookup(name, reading.scope, None)[0] is not None:
            continue
        # Positions inside of an f-string are not reliable.
        node = reading.string or reading.node
        start = program.script.span(node, reading.statement).start
        begin = program.script.statement_span(reading.statement.top).start
        old = found.get(function)
        if (before is None or begin < before) and (old is None or start < old.start):
            found[function] = _Use(node, function, start)
    return list(found.values())


# Verdicts


def _judge(
    program: Program,
    report: Report,
    each: _Global,
    use: _Use,
    changed: Binding | None,
    setting: Binding | None,
) -> Finding | None:
    """Judge the order first, then changes of the name, then changes of the object."""
    span = program.script.span(use.node, use.function)
    says = f"{use.function.name or 'A lambda'} uses the global optimizer {each.name}"
    if not each.certain:
        says = f"{use.function.name or 'A lambda'} uses {each.name}, which may be an optimizer"
    also = "which" if each.certain else "and which"
    verdict = Verdict.VIOLATED if each.certain else Verdict.UNKNOWN
    related = [_related(program, each.bindings[0], "the first definition")]
    if not _is_defined_before(program, each, use):
        message = f"{says}, {also} is defined after it. Move the definition up, {_READING}."
        fix = _fix(program, report, each) if each.certain else None
        return report.finding(verdict, span, message, tuple(related), fix)
    if changed is not None:
        message = f"{says}, {also} is assigned more than once. Assign it once, {_READING}."
        if changed is not each.bindings[0]:
            related.append(_related(program, changed, f"{each.name} is assigned again here"))
        return report.finding(verdict, span, message, tuple(related))
    if setting is None or not isinstance(setting.target, ast.Attribute):
        return None
    shown = f"{each.name}.{setting.target.attr}"
    message = f"{says}, and {shown} is set; it stays the same optimizer, so nothing changes."
    return report.harmless(span, message, (_related(program, setting, f"{shown} is set here"),))


def _related(program: Program, binding: Binding, message: str) -> Related:
    node = binding.target
    if isinstance(node, ast.expr):
        return Related(program.script.span(node, binding.scope), message)
    assert binding.statement is not None
    return Related(program.script.statement_span(binding.statement), message)


def _is_defined_before(program: Program, each: _Global, use: _Use) -> bool:
    """Return whether a binding comes before the function, or earlier in the functions around the use."""
    function: Scope | None = use.function
    node: ast.AST | None = use.node
    starts: dict[Scope | None, int] = {}
    while function is not None:
        assert node is not None
        starts[function] = program.script.span(node, use.function).start
        node = function.node
        function = function.parent.function() if function.parent is not None else None
    assert node is not None
    starts[None] = program.script.span(node, use.function).start
    return any(
        _start(program, binding) < starts.get(binding.scope.function(), 0) for binding in each.bindings
    )


def _change(program: Program, bindings: list[Binding]) -> Binding | None:
    """The binding that changes the name after another one, or again in a loop."""
    for index, later in enumerate(bindings):
        assert later.statement is not None
        if program.fact(ControlFlow).repeats(later.statement) or later.kind == "element":
            return later
        for earlier in bindings[:index]:
            if earlier.statement is not None and not excludes(earlier.statement, later.statement):
                return later
    return None


def _setting(program: Program, name: str) -> Binding | None:
    """The first place where an attribute of the global is set."""
    for facts in program.script.facts:
        for given in facts.attributes.values():
            for each in given:
                if isinstance(each.base, ast.Name) and each.base.id == name and each.binding.kind == "value":
                    if program.names.lookup(name, each.binding.scope, None)[0] is None:
                        return each.binding
    return None


# The fix


def _fix(program: Program, report: Report, each: _Global) -> Change | None:
    """Move the definition above the first function that uses it, if all of its names are bound there."""
    script, text = program.script, program.script.source.text
    definition = each.bindings[0].statement
    if len(each.bindings) != 1 or definition is None or not _is_movable(program, definition):
        return None
    homes = [use.function.statement for use in _uses(program, each.name, None)]
    first = min((script.top_index[home.top] for home in homes if home is not None), default=None)
    last = script.top_index[definition]
    if first is None or first >= last or not _reads_only_before(program, definition, first):
        return None
    if any(_may_matter(program, statement) for statement in script.top[first:last]):
        return None
    span, source = script.statement_span(definition), script.source
    start, end = source.line_start(span.start), source.next_line(span.end)
    target = source.line_start(script.statement_span(script.top[first]).start)
    rest = text[span.end : source.line_end(span.end)].strip()
    if start != span.start or target != script.statement_span(script.top[first]).start:
        return None
    if rest and not rest.startswith("#"):
        return None
    target, blank = _above(program, target)
    moved = text[start:end] if text[start:end].endswith(("\n", "\r")) else text[start:end] + source.newline
    edits = (
        Edit(target, target, moved + source.newline * blank, Side.BEFORE, start),
        Edit(start, end, ""),
    )
    return report.change(f"Move the definition of {each.name} up", span, edits)


def _is_movable(program: Program, definition: Statement) -> bool:
    """Return whether a definition is one simple top-level assignment of a TensorFlow constructor's result."""
    node = definition.node
    if definition.parent is not None or definition.scope.kind != "module":
        return False
    if isinstance(node, ast.Assign):
        simple = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    else:
        simple = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    value = getattr(node, "value", None)
    if not simple or not isinstance(value, ast.Call):
        return False
    for part in ast.walk(value):
        if isinstance(
            part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.GeneratorExp
        ):
            return False
        if isinstance(part, ast.Call):
            called = program.names.callee(program.script.site_of(part))
            if not all(isinstance(each, Library) and each.name.startswith(_TENSORFLOW) for each in called):
                return False
    return True


def _reads_only_before(program: Program, definition: Statement, first: int) -> bool:
    """Return whether every name that the definition reads is bound only by the statements before `first`."""
    value = definition.node.value  # type: ignore[attr-defined]
    top_index = program.script.top_index
    for part in ast.walk(value):
        if isinstance(part, ast.Name):
            for binding in program.script.module_bindings.get(part.id, ()):
                if binding.statement is None or binding.scope.kind != "module":
                    return False
                if top_index[binding.statement.top] >= first:
                    return False
    return True


def _may_matter(program: Program, statement: Statement) -> bool:
    """Return whether the statement may have an effect that must precede an optimizer's creation."""
    facts = statement.scope.facts
    bindings = [each.binding for given in facts.attributes.values() for each in given]
    bindings += [each.binding for given in facts.items.values() for each in given]
    if any(binding.scope.function() is None for binding in bindings):
        return True
    for site in facts.sites:
        if site.scope.function() is None:
            names = program.names.full_names(site.node.func, site.scope, site.statement)
            deed = program.fact(Effects).of_call(site)
            quiet = any(name.startswith("horovod.") or entries.fact(name, "deviceless") for name in names)
            if quiet or (deed is not None and deed.effect is not Effect.FILES):
                return True
    return False


def _above(program: Program, target: int) -> tuple[int, int]:
    """The start of the comment on the lines before `target`, and of the blank lines before it."""
    source = program.script.source
    line = source.line_of(target)

    def row(number: int) -> str:
        return source.text[source.line_starts[number] : source.line_end(source.line_starts[number])]

    while line > 0 and row(line - 1).startswith("#") and not row(line - 1).startswith(("# %%", "#%%", "#!")):
        line -= 1
    blank = 0
    while line - blank > 0 and not row(line - blank - 1).strip():
        blank += 1
    return source.line_starts[line], blank
