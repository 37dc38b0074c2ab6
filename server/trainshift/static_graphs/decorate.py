"""Decorate a function so that it becomes a static graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from trainshift.core.finding import Finding, Verdict
from trainshift.core.program import Program
from trainshift.python.names.classes import is_decorated, is_property
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Edit, apply
from trainshift.python.source.offset_map import OffsetMap
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.static_graphs.domain.abstract_values import NUMBER, Dim, Size, Tensor
from trainshift.static_graphs.reading.entries import TO_STATIC, is_excluded, is_layer, no_place
from trainshift.static_graphs.reading.function import StaticFunction, title_of
from trainshift.static_graphs.reading.reading import Reading
from trainshift.static_graphs.reporting import name_of_paddle

_MODULE = "paddle"
_SPEC = "InputSpec"


class InTheWay(Struct, frozen=True):
    """A finding that prevents the full graph: its code, its offset, its text."""

    code: str
    offset: int
    message: str


class Made(Struct):
    """The result of making a function static: edits in text order, or a reason with its offset.

    With neither, it is static already.  `decorator` is the text above it.  With `is_full`, all of it becomes
    a graph; otherwise `in_the_way` are the obstacles.  With `has_free_batch`, a first dimension is None.
    """

    text: str
    function: str = ""
    edits: list[Edit] = field(default_factory=list)
    decorator: str = ""
    is_full: bool = False
    has_free_batch: bool = False
    in_the_way: list[InTheWay] = field(default_factory=list)
    reason: str = ""
    offset: int = 0

    @property
    def result(self) -> str:
        """The file after the edits."""
        return apply(self.text, self.edits)

    @property
    def title(self) -> str:
        """The title in an editor's menu."""
        name = self.function.rpartition(".")[2]
        return f"Make static: {name} (None for the batch)" if self.has_free_batch else f"Make static: {name}"


def makeable(script: Script, line: int) -> Scope | None:
    """The function on a line (from 1): in a layer's class its `forward`; None if there is none."""
    found: Scope | None = None
    for scope in script.scopes:
        if scope.kind in ("function", "class") and isinstance(scope.node, ast.stmt):
            source = script.code.source
            nodes = (scope.node, *getattr(scope.node, "decorator_list", ()))
            spans = [script.span(node, scope.parent or scope) for node in nodes]
            first, last = min(span.start for span in spans), max(span.end for span in spans)
            if source.line_of(first) + 1 <= line <= source.line_of(last) + 1:
                found = scope
    return _function_of(script, found) if found is not None else None


def named(script: Script, name: str) -> Scope | None:
    """The function with a name: ``f``, ``Net.forward``, or ``Net`` for the `forward` of a layer."""
    for scope in script.scopes:
        if scope.kind in ("function", "class") and isinstance(scope.node, ast.stmt):
            if name in (scope.name, title_of(scope)) and (
                scope.kind == "function" or is_layer(script, scope)
            ):
                return _function_of(script, scope)
    return None


def _function_of(script: Script, scope: Scope) -> Scope | None:
    if scope.kind == "function":
        return scope
    found = script.names.function_named(scope, "forward") if is_layer(script, scope) else None
    return found if found is not None and script.home(found) is script else None


def make_static(program: Program, function: Scope, read: Callable[[str], Program]) -> Made:
    """Make a function of a program's file static; `read` parses another text of this file."""
    script = program.script
    made = Made(script.code.source.text)
    made.function = title_of(function)
    made.offset = script.span(function.node or ast.Pass(), function.parent or function).start
    if any(each.function is function and not each.is_saved for each in program.fact(Reading).entries):
        return made
    made.reason = _refused(program, function)
    if made.reason:
        return made
    before = _violated(program)
    plain = _tried(program, function, "", read)
    if plain is None:
        made.reason = "Trainshift cannot read the file with the decorator"
        return made
    for spec, is_free in _specs(program, function, plain[1]):
        options = f"(full_graph=True, input_spec=[{spec}])" if spec else "(full_graph=True)"
        tried = _tried(program, function, options, read)
        if tried is None:
            continue
        edits, after = tried
        back = OffsetMap(edits).back
        found = [(each, back(each.span).start) for each in _violated(after).values()]
        new = [(each, at) for each, at in found if (each.code, at) not in before]
        if not new:
            made.edits, made.decorator = edits, f"@{_spelled(program)}.jit.to_static{options}"
            made.is_full, made.has_free_batch, made.in_the_way = True, is_free, []
            return made
        made.in_the_way = [InTheWay(each.code, at, each.message) for each, at in new]
    made.edits, made.decorator = plain[0], f"@{_spelled(program)}.jit.to_static"
    return made


# Refusals


def _refused(program: Program, function: Scope) -> str:
    script, node = program.script, function.node
    above = function.parent.function() if function.parent is not None else None
    if isinstance(node, ast.Lambda) or above is not None:
        return "a nested function cannot be made static; move it out"
    if isinstance(node, ast.AsyncFunctionDef) or function.is_generator:
        return "Paddle cannot make a generator or `async` function static"
    if is_property(function) or is_decorated(function, "setter", "getter", "deleter"):
        return "Paddle cannot make a property static"
    if is_excluded(script, function):
        return "this function is excluded from Paddle's conversion"
    owner = function.owner()
    if owner is not None:
        unseen = f"Trainshift cannot see whether `{owner.name}` is a layer"
        place = no_place(script, function, if_unseen=unseen)
        if place:
            return place
        if function.name == "forward" and _is_bound_at_run_time(script, owner):
            return "`forward` is bound at run time, which would replace this one"
    name = name_of_paddle(script)
    shadows = [owner.bindings if owner is not None else {}, {} if name else script.module_bindings]
    if any((name or _MODULE) in each for each in shadows):
        return f"`{name or _MODULE}` means something else here"
    return ""


def _is_bound_at_run_time(script: Script, owner: Scope) -> bool:
    """Return whether the file binds the `forward` of a class's objects to a value that is not made from
    it.
    """
    own, others = script.names.assigned_attributes
    if (owner, "forward") in own:
        return True
    for attribute in others.get("forward", ()):
        value = attribute.binding.value
        called = value.func if isinstance(value, ast.Call) else None
        names = script.names.full_names(called, attribute.binding.scope) if called is not None else set()
        if not names & TO_STATIC:
            return True
    return False


# Attempted rewrites


def _spelled(program: Program) -> str:
    return name_of_paddle(program.script) or _MODULE


def _tried(
    program: Program, function: Scope, options: str, read: Callable[[str], Program]
) -> tuple[list[Edit], Program] | None:
    """The edits that add the decorator with some options, and the program with them."""
    script = program.script
    source = script.code.source
    start = script.span(function.node or ast.Pass(), function.parent or function).start
    start = source.line_start(start)
    margin = source.indentation(start)
    line = f"{margin}@{_spelled(program)}.jit.to_static{options}{source.newline}"
    edits = [Edit(start, start, line)]
    if not name_of_paddle(script):
        edits.insert(0, _import(script))
    try:
        return edits, read(apply(source.text, edits))
    except (SyntaxError, ValueError):
        return None


def _import(script: Script) -> Edit:
    """The edit that imports Paddle, below the file's imports."""
    source = script.code.source
    last = None
    for statement in script.top:
        if isinstance(statement.node, ast.Import | ast.ImportFrom):
            last = statement
        elif last is None and isinstance(statement.node, ast.Expr):
            last = statement  # The docstring.
        else:
            break
    offset = source.next_line(script.statement_span(last).end) if last is not None else 0
    return Edit(offset, offset, f"import {_MODULE}{source.newline}")


def _violated(program: Program) -> dict[tuple[str, int], Finding]:
    found = {}
    for code in STATIC_CODES:
        for finding in code.check(program):
            if finding.verdict is Verdict.VIOLATED:
                found[code.code, finding.span.start] = finding
    return found


# Given options


def _specs(program: Program, function: Scope, plain: Program) -> Iterator[tuple[str, bool]]:
    """The specs to try, best first, and whether their first dimensions are free; "" for none."""
    tensors = _given(function, plain)
    if tensors:
        shapes = [each.shape or () for each in tensors]
        free = _freed(shapes) if function.name == "forward" else shapes
        for each in (free, shapes) if free != shapes else (shapes,):
            yield ", ".join(_spec(program, *pair) for pair in zip(each, tensors, strict=True)), each != shapes
    yield "", False


def _freed(shapes: list[tuple[Size, ...]]) -> list[tuple[Size, ...]]:
    """The shapes of a layer's input with any number in the batch."""
    return [(Dim.SPEC, *shape[1:]) if len(shape) > 1 else shape for shape in shapes]


def _given(function: Scope, plain: Program) -> list[Tensor]:
    """The tensors that every visible call passes for parameters without defaults; none unless all are
    known.
    """
    known = _same(function, plain)
    if known is None:
        return []
    arguments = known.node.args
    found = []
    for argument in known.positional[: len(known.positional) - len(arguments.defaults)]:
        value = known.parameters.get(argument.arg)
        tensor = value.tensor if value is not None and value.is_tensor else None
        if tensor is None or tensor.shape is None or tensor.dtype in ("", NUMBER):
            return []
        found.append(tensor)
    is_whole = all(each is not None for each in arguments.kw_defaults)
    return found if is_whole and arguments.vararg is None else []


def _same(function: Scope, program: Program) -> StaticFunction | None:
    """The same function in another text of its file."""
    title = title_of(function)
    return next((each for each in program.fact(Reading).functions if each.title == title), None)


def _spec(program: Program, shape: tuple[Size, ...], tensor: Tensor) -> str:
    sizes = ", ".join(str(each) if isinstance(each, int) else "None" for each in shape)
    script = program.script
    imported = script.names.libraries.get(_SPEC) == {f"{_MODULE}.static.{_SPEC}"}
    name = _SPEC if imported else f"{_spelled(program)}.static.{_SPEC}"
    return f'{name}([{sizes}], "{tensor.dtype}")'
