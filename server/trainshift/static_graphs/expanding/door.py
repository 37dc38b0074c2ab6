"""The entry point of expansion: the static functions of a file as the graph code that Paddle builds."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.script import Script
from trainshift.python.source.comments import Comments, comments_by_line
from trainshift.python.source.edit import Edit, apply
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.static_graphs.branch_merge import difference
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.static_graphs.domain.abstract_values import OPEN_SIZES
from trainshift.static_graphs.expanding.building import Builder
from trainshift.static_graphs.expanding.exit_flags import finished
from trainshift.static_graphs.expanding.expressions import Expressions
from trainshift.static_graphs.expanding.helpers import HELPERS, helper
from trainshift.static_graphs.expanding.ir import Branch, Form, Loop, live_before, walk
from trainshift.static_graphs.expanding.knowledge import Knowledge
from trainshift.static_graphs.expanding.refusal import CannotExpand, MustBeTensors
from trainshift.static_graphs.expanding.words import GENERATED
from trainshift.static_graphs.expanding.writing import Writer
from trainshift.static_graphs.reading.function import Mode, StaticFunction, Truth
from trainshift.static_graphs.reading.reading import Reading
from trainshift.static_graphs.reporting import name_of_paddle

# Findings that the expansion itself fixes, or that do not concern it.
_MENDED = frozenset(
    {"PD05", "PD06", "PD07", "PD08", "PD10", "PD15", "PD18", "PD22", "PD26", "PD27", "PD09", "PD14", "PD16"}
)
_Made: TypeAlias = "tuple[list[Edit], list[Applied], set[str]]"


class Applied(Struct, frozen=True):
    """A rule that was applied: its code, its first place (offset), the function."""

    code: str
    offset: int
    function: str


class RefusedFunction(Struct, frozen=True):
    """A function that stays unchanged: its offset and the reason; `code` is a finding's, if any."""

    function: str
    offset: int
    reason: str
    code: str = ""


class Expansion(Struct):
    """The result of an expansion: edits of the file in text order, and refusals.

    Without edits and refusals, there is nothing to expand.
    """

    text: str
    edits: list[Edit] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    refused: list[RefusedFunction] = field(default_factory=list)

    @property
    def result(self) -> str:
        """The file after the edits."""
        return apply(self.text, self.edits)


def expand(program: Program, function: str = "", line: int | None = None) -> Expansion:
    """Expand the static functions of a program's file.

    `function` names a single one (``forward`` or ``Net.forward``), `line` (from 1) the statement to expand,
    including its contents.  Functions that cannot be expanded are listed in `refused`; nothing is raised.
    """
    script = program.script
    found = Expansion(script.code.source.text)
    paddle = name_of_paddle(program.script)
    every = program.fact(Reading).functions
    outer = (each for each in every if _is_asked(each, function, program, line))
    functions = [part for each in outer for part in _with_inner(program, each, line)]
    for each in every:
        if _is_nested_entry(each, function) and _has_flow(program, each):
            offset = script.span(each.node, each.scope).start
            reason = "a nested function is not expanded; move it out"
            found.refused.append(RefusedFunction(each.title, offset, reason))
    if not functions:
        return found
    try:
        comments = comments_by_line(found.text)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return found
    needs: set[str] = set()
    done: dict[StaticFunction, _Made] = {}
    for each in functions:
        try:
            if not paddle:
                raise CannotExpand(each.node, "the file has no name for Paddle; write `import paddle`")
            if paddle in each.scope.bindings:
                raise CannotExpand(each.node, f"`{paddle}` means something else in this function")
            made = _expanded(program, each, paddle, comments, line)
        except CannotExpand as refusal:
            offset = script.span(refusal.node, each.scope).start if hasattr(refusal.node, "lineno") else 0
            found.refused.append(RefusedFunction(each.title, offset, refusal.reason, refusal.code))
        else:
            if made is not None:
                done[each] = made
    _refuse_callers(program, found, done)
    if found.refused and not any(each in done for each in _roots(functions)):
        done.clear()
    for edits, applied, asked in done.values():
        found.edits += edits
        found.applied += applied
        needs |= asked
    if found.edits:
        found.edits += _helpers(program, sorted(needs, key=list(HELPERS).index), paddle)
        found.edits.sort(key=lambda edit: edit.start)
        _assert_whole(found)
    return found


def _is_asked(function: StaticFunction, name: str, program: Program, line: int | None) -> bool:
    scope = function.scope
    above = scope.parent.function() if scope.parent is not None else None
    if function.name in GENERATED or isinstance(function.node, ast.Lambda) or above is not None:
        return False
    if name and name not in (function.name, function.title):
        return False
    return line is None or _stands_on(function, program, line)


def _with_inner(program: Program, function: StaticFunction, line: int | None) -> list[StaticFunction]:
    """A function, or its inner functions with a graph if it has none itself.

    If all have one, only the outer function: expanding it would move the text of its inner functions.
    """
    try:
        inner = [each for each in _inner_graphs(program, function) if not each.is_entry]
        if not inner or _has_flow(program, function):
            return [function]
    except CannotExpand:  # It is refused at its own expansion.
        return [function]
    at_line = [each for each in inner if line is not None and _stands_on(each, program, line)]
    return at_line or [*inner, function]


def _stands_on(function: StaticFunction, program: Program, line: int) -> bool:
    """Return whether a line (from 1) belongs to the function."""
    span = program.script.span(function.node, function.scope)
    source = program.script.code.source
    return source.line_of(span.start) + 1 <= line <= source.line_of(span.end) + 1


def _inner_graphs(program: Program, function: StaticFunction) -> list[StaticFunction]:
    """The inner functions with control flow on tensors."""
    reading = program.fact(Reading)
    found = []
    for each in ast.walk(function.node):
        if isinstance(each, ast.FunctionDef) and each is not function.node and each.name not in GENERATED:
            inner = reading.of(function.scope.facts.scope_of[each])
            if inner is not None and _has_flow(program, inner):
                found.append(inner)
    return found


def _is_nested_entry(function: StaticFunction, name: str) -> bool:
    """Return whether an inner function is made static itself, and is requested."""
    scope = function.scope
    is_asked = not name or name in (function.name, function.title)
    is_nested = scope.parent is not None and scope.parent.function() is not None
    return is_asked and is_nested and function.is_entry and not isinstance(function.node, ast.Lambda)


def _expanded(
    program: Program, function: StaticFunction, paddle: str, comments: Comments, line: int | None
) -> _Made | None:
    """The edits of one function; None if no part of it becomes part of the graph."""
    if function.is_too_deep:
        raise CannotExpand(function.node, "its statements are nested too deeply to be read")
    wanted = _statements_at(program, function, line)
    pinned: frozenset[str] = frozenset()
    while True:  # Each iteration pins names of the function that were not pinned before.
        knowledge = Knowledge(function)
        write = Expressions(knowledge, program.script, paddle)
        write.pinned = pinned
        write.lambdas = _lambdas(program, function)
        if _is_expanded(function) and not _needs_graph(function, write):
            return None
        try:
            return _edits_of(program, function, write, comments, wanted)
        except MustBeTensors as told:
            if told.names <= pinned:
                raise CannotExpand(function.node, f"`{told}` would have to be a tensor") from told
            pinned |= told.names


def _is_expanded(function: StaticFunction) -> bool:
    """Return whether a function contains functions that an expansion makes."""
    return any(
        isinstance(each, ast.FunctionDef) and each.name in GENERATED for each in ast.walk(function.node)
    )


def _statements_at(program: Program, function: StaticFunction, line: int | None) -> set[Statement] | None:
    if line is None:
        return None
    script = program.script
    for statement in reversed(function.statements):
        if statement.branches and script.code.source.line_of(script.header_span(statement).start) + 1 == line:
            return set(statement.walk())
    raise CannotExpand(function.node, f"no `if` or loop begins on line {line}")


def _edits_of(
    program: Program,
    function: StaticFunction,
    write: Expressions,
    comments: Comments,
    wanted: set[Statement] | None,
) -> _Made | None:
    source = program.script.code.source
    block = function.block
    if block and isinstance(block[0].node, ast.Expr) and isinstance(block[0].node.value, ast.Constant):
        block = block[1:]
    if not block:
        return None
    _check_function(program, function, write)
    builder = Builder(write, comments, wanted)
    first = program.script.statement_span(block[0]).start
    start = source.line_start(first)
    if source.text[start:first].strip():
        if _needs_graph(function, write):
            raise CannotExpand(function.node, "write the body of this function on lines of its own")
        return None
    last = builder.last_line(block)
    end = source.line_end(source.line_starts[last - 1])
    forms = builder.block(block, source.line_of(start), last + 1)
    _check_functions(function, forms)
    if not write.rules or (write.rules.keys() == {"PS11"} and not _asks_for_unknown_sizes(function)):
        return None
    _refuse_findings(program, function)
    margin = source.text[start:first]
    writer = Writer(write, _unit(function, program, margin))
    writer.unit, unit = "\1", writer.unit
    env = write.knowledge.at_start()
    writer.block(finished(forms, write), env, frozenset(), 0)
    lines = []
    for each in writer.lines:
        depth = len(each) - len(each.lstrip("\1"))
        lines.append(each if each in writer.raw else f"{margin}{unit * depth}{each[depth:]}" if each else "")
    text = source.newline.join(lines)
    if text == source.text[start:end]:
        return None
    offsets = [
        Applied(code, program.script.span(node, function.scope).start, function.title)
        for code, node in sorted(write.rules.items())
    ]
    return [Edit(start, end, text)], offsets, write.needs


def _unit(function: StaticFunction, program: Program, margin: str) -> str:
    """The indentation of a nested block."""
    outer = program.script.code.source.indentation(program.script.span(function.node, function.scope).start)
    return margin[len(outer) :] if margin.startswith(outer) and len(margin) > len(outer) else "    "


def _check_function(program: Program, function: StaticFunction, write: Expressions) -> None:
    """Refuse functions that cannot be expanded at all: generators, recursion, nested functions with a
    graph.
    """
    node = function.node
    if not _needs_graph(function, write):
        return
    for inner in _inner_graphs(program, function):
        raise CannotExpand(
            inner.node, "this function and the one around it have control flow on tensors; move it out"
        )
    for scope in function.scope.facts.scopes:
        for name in function.rebound_in(scope):
            what = f"`{scope.name}` binds `{name}` of the function around it, which SOT loses"
            raise CannotExpand(scope.node or node, f"{what}; return the value", "PD20")
    if isinstance(node, ast.AsyncFunctionDef) or function.scope.is_generator:
        raise CannotExpand(node, "a generator or `async` function is not expanded")
    if any(function in each.callees() for each in reachable([function], StaticFunction.callees)):
        raise CannotExpand(node, "it calls itself, and a graph has no recursion", "PD04")


def _check_functions(function: StaticFunction, forms: list[Form]) -> None:
    """Refuse branches that call different functions under one name: SOT always takes the first one."""
    own = function.scope.bindings
    for form in walk(forms) if function.mode is not Mode.FULL else ():
        read = live_before([form], frozenset()) if isinstance(form, Branch | Loop) else frozenset()
        for each in ast.walk(form.node) if read and form.node is not None else ():
            if isinstance(each, ast.Name) and each.id in read and "function" in function.kind(each).python:
                bindings = own.get(each.id, ())
                if len(bindings) > 1 or any(one.kind not in ("function", "value") for one in bindings):
                    what = f"`{each.id}` may be several functions, of which SOT takes the first one for all"
                    raise CannotExpand(each, f"{what}; write `full_graph=True`")


def _lambdas(program: Program, function: StaticFunction) -> dict[ast.Lambda, StaticFunction]:
    """The lambdas of a function that Paddle converts with it."""
    reading, scope_of = program.fact(Reading), function.scope.facts.scope_of
    found = {
        each: reading.of(scope_of[each]) for each in ast.walk(function.node) if isinstance(each, ast.Lambda)
    }
    return {each: inner for each, inner in found.items() if inner is not None}


def _asks_for_unknown_sizes(function: StaticFunction) -> bool:
    """Return whether a size is read that a graph certainly does not know; others may be numbers
    everywhere.
    """
    tensors = (value.tensor for value in function.kinds.values() if value.tensor is not None)
    return any(each.counts in OPEN_SIZES for each in tensors)


def _has_flow(program: Program, function: StaticFunction) -> bool:
    """Return whether a function has control flow on tensors. Raises CannotExpand if a graph cannot carry
    its values.
    """
    return _needs_graph(function, Expressions(Knowledge(function), program.script, ""))


def _needs_graph(function: StaticFunction, write: Expressions) -> bool:
    inner = (truth for each in write.lambdas.values() for truth in each.truths.values())
    own = (write.knowledge.truth(each.node) for each in function.statements)
    return any(truth is not Truth.PYTHON for truth in chain(own, function.truths.values(), inner))


def _refuse_findings(program: Program, function: StaticFunction) -> None:
    """Refuse a function with a finding that an expansion would keep."""
    script = program.script
    span = script.span(function.node, function.scope)
    for code in STATIC_CODES:
        if code.code in _MENDED:
            continue
        for finding in code.check(program):
            is_here = span.start <= finding.span.start < span.end
            if is_here and code.code == "PD11" and _is_mended_return(function, script, finding.span.start):
                continue
            if is_here and finding.verdict in (Verdict.VIOLATED, Verdict.HARMLESS):
                statement = next(
                    (
                        each
                        for each in reversed(function.statements)
                        if script.statement_span(each).start <= finding.span.start
                    ),
                    None,
                )
                node = statement.node if statement else function.node
                raise CannotExpand(node, finding.problem, code.code)


def _is_mended_return(function: StaticFunction, script: Script, start: int) -> bool:
    """Return whether a `return` in a loop or branch can be fixed, and all returns have one structure."""
    for statement, own in function.returned.items():
        if script.header_span(statement).start == start:
            return not any(difference(own, each) for each in function.returned.values())
    return False


def _roots(functions: list[StaticFunction]) -> list[StaticFunction]:
    """The functions that no other function calls."""
    called = {callee for each in functions for callees in each.calls.values() for callee in callees}
    return [each for each in functions if each.is_entry or each not in called]


def _refuse_callers(program: Program, found: Expansion, done: dict[StaticFunction, _Made]) -> None:
    """Refuse the functions that call a refused one: they would not run as a program of the graph."""
    script = program.script
    names = {each.function for each in found.refused}
    changed = True
    while changed:
        changed = False
        for function in list(done):
            for call, callees in function.calls.items():
                bad = next((each for each in callees if each.title in names and each.script is script), None)
                if bad is not None and function in done:
                    del done[function]
                    names.add(function.title)
                    reason = f"it calls `{bad.name}`, which cannot be expanded"
                    found.refused.append(
                        RefusedFunction(function.title, script.span(call, function.scope).start, reason)
                    )
                    changed = True


def _helpers(program: Program, names: list[str], paddle: str) -> list[Edit]:
    """The small functions that the file does not have yet, below its imports."""
    script = program.script
    source = script.code.source
    missing = [name for name in names if name not in script.module_bindings]
    for name in names:
        if name not in missing and helper(name, paddle).strip() not in source.text.replace("\r\n", "\n"):
            missing.append(name)
    if not missing:
        return []
    top = script.top
    last = None
    for statement in top:
        if isinstance(statement.node, ast.Import | ast.ImportFrom):
            last = statement
        elif not (isinstance(statement.node, ast.Expr | ast.Assign | ast.If | ast.Try)):
            break
    offset = source.next_line(script.statement_span(last).end) if last is not None else 0
    text = "".join(f"\n\n{helper(name, paddle)}" for name in missing)
    return [Edit(offset, offset, text.replace("\n", source.newline))]


def _assert_whole(found: Expansion) -> None:
    """Drop everything if the result is not Python, or a comment is lost: never a wrong edit."""
    problem = ""
    try:
        result = found.result
        ast.parse(result.lstrip("\ufeff"))
        if _comments(result) != _comments(found.text):
            problem = "a comment is in a place where it cannot be kept"
    except (SyntaxError, ValueError, tokenize.TokenError):
        problem = "the expanded text would not be Python"
    if problem:
        first = found.edits[0].start
        names = dict.fromkeys(each.function for each in found.applied)
        found.refused += [RefusedFunction(name, first, problem) for name in names]
        found.edits.clear()
        found.applied.clear()


def _comments(text: str) -> Counter[str]:
    return Counter(each.text.strip() for each in comments_by_line(text).values())
