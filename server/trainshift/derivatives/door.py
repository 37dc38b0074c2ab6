"""The entry point: `derive`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from trainshift.derivatives.checks import Checks
from trainshift.derivatives.choice import chosen
from trainshift.derivatives.expansion.methods import write_out
from trainshift.derivatives.expansion.statements import expand
from trainshift.derivatives.file_state import read_state
from trainshift.derivatives.forward.build import Tangents
from trainshift.derivatives.iterators import used_up
from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.function import root_of
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.module import MADE, Module
from trainshift.derivatives.reading.rename_bound import rename_bound
from trainshift.derivatives.reading.result import (
    Derived,
    Impossible,
    Mode,
    NotFound,
    Refusal,
    Refused,
    Shared,
    refused_at,
)
from trainshift.derivatives.reverse.build import Build
from trainshift.derivatives.reverse.transposed import transposed
from trainshift.derivatives.shadowing import shadowed
from trainshift.derivatives.tables.helpers import closed, is_of_tensors, text_of, text_of_variant, variant_of
from trainshift.derivatives.tables.rows import rows
from trainshift.derivatives.writing.layout import Layout, function_of, last_line, passed_on, same_arguments
from trainshift.python.flow.solver import Diverges
from trainshift.python.rewrite import terms
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.call_binding import parameters

SUFFIX = {"reverse": "grad", "forward": "jvp"}
# The import statement of each module that derivatives need, by the table's name for it.
IMPORTS = {
    "np": ("numpy", "import numpy as np"),
    "math": ("math", "import math"),
    "tf": ("tensorflow", "import tensorflow as tf"),
}


class Made(NamedTuple):
    """The functions of a derivative, and the writer that knows their helpers and imports."""

    build: Analysis
    functions: list[ast.FunctionDef]
    shared: tuple[Refusal, ...] = ()


def derive(
    text: str,
    function: str,
    mode: Mode = "reverse",
    wrt: Sequence[str] | None = None,
    name: str | None = None,
) -> Derived | Refused:
    """The derivative of the top-level `function` of the file `text`.

    `wrt` names the parameters to differentiate by, in the order of the bars; without it, all that can have a
    derivative.  `name` is that of the new function instead of `FUNCTION_grad` or `FUNCTION_jvp`.

    Raises `NotFound` if the text is not valid Python, or has no such function or parameter.
    """
    module = Module(text, function)
    try:
        return _derived(module, function, mode, wrt, name)
    except RecursionError:
        node = module.function(function)
        said = f"{function} is nested too deeply to be read: split its longest expression"
        return Refused(function, mode, (Refusal(node.lineno, node.col_offset + 1, said),))
    finally:
        module.forget()


def _derived(
    module: Module, function: str, mode: Mode, wrt: Sequence[str] | None, name: str | None
) -> Derived | Refused:
    for each in module.body:
        if isinstance(each, ast.AsyncFunctionDef) and each.name == function:
            said = "async cannot be differentiated: write a plain function"
            return Refused(function, mode, (Refusal(each.lineno, each.col_offset + 1, said),))
    node = module.function(function)
    params = [each.arg for each in parameters(node.args)]
    for given in wrt or ():
        if given not in params:
            raise NotFound(f"{function} has no parameter {given}")
    made = name or f"{function}_{SUFFIX[mode]}"
    try:
        start = _start(module, function, node)
        by, left_out = (list(wrt), ()) if wrt is not None else chosen(module, rename_bound(start, module))
        build, functions, shared = _of_mode(module, start, mode, by, made)
    except Impossible as found:
        return Refused(function, mode, _as_written(module, found.refusals))
    comment = f"{MADE}{function} --mode {mode}"
    helpers = {each: text_of(each, build.arrays, build.tensors) for each in closed(build.helpers)}
    taken = (*_taken(module, helpers), *shadowed(module, node, functions, helpers.values()))
    if taken:
        return Refused(function, mode, tuple(sorted(set(taken))))
    helpers, names = _named(module, helpers)
    needs = build.needs | _renamed(module, functions, names)
    texts: dict[str, str] = {}
    options = f" --wrt {','.join(by)}" + (f" --name {name}" if name else "")
    for new in functions:
        main = new.name == made
        origin = node if main else module.functions.get(new.name[:-4])
        if main and any(each is not new and each.name == f"{start.name}_vjp" for each in functions):
            # Its lines are in the other file.
            origin = None
        printed = module.restored(Layout(module, origin).function(new))
        texts[module.restored(new.name)] = f"{comment}{options if main else ''}\n{printed}"
    edits = _edits(module, node, helpers, texts, needs)
    added = tuple(module.restored(each.name) for each in functions)
    result = module.text
    for edit in reversed(edits):
        result = result[: edit.start] + edit.text + result[edit.end :]
    places = _as_written(module, shared)
    return Derived(function, mode, made, added, tuple(by), tuple(left_out), tuple(edits), result, places)


def _as_written(module: Module, refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(replace(each, message=module.as_written(each.message)) for each in refusals)


def _start(module: Module, name: str, node: ast.FunctionDef) -> ast.FunctionDef:
    """The function with a name; raises `Impossible` if the name may have several meanings."""
    if module.globals.hidden is not None:
        line, said = module.globals.hidden
        raise Impossible((Refusal(line, 1, said),))
    meaning = module.globals.meaning(name)
    if meaning.function is not node:
        raise refused_at(
            node, meaning.unknown or f"{name} is bound again below: give the function a name of its own"
        )
    return module.functions[module.aliases.get(name, name)]


def _of_mode(module: Module, node: ast.FunctionDef, mode: Mode, by: list[str], made: str) -> Made:
    """The new functions of a mode; reverse mode uses transposed tangents if names share mutated objects."""
    try:
        return _ask_apart(_made(module, node, mode, by, made))
    except Shared as shared:
        if mode == "forward":
            raise
        try:
            build, functions, _ = _made(module, node, "forward", by, f"{node.name}_{SUFFIX['forward']}")
        except Impossible:
            raise shared from None
        assert isinstance(build, Tangents)
        found = transposed(build, functions, made)
        if found is None:
            raise
        return _ask_apart(Made(build, found, shared.refusals))


def _made(module: Module, node: ast.FunctionDef, mode: Mode, by: list[str], made: str) -> Made:
    """The new functions and their helpers; raises `Impossible`."""
    try:
        build = (Build if mode == "reverse" else Tangents)(module, node.name, by, rows(), made)
        write_out(build)
        checks = Checks(build, by)
        checks.all()
        if made in module.script.module_bindings and not _is_made(module, made):
            checks.refuse(module.all_functions.get(made, node), f"there is another {made}: choose a --name")
        if checks.found:
            raise checks.impossible
        expand(build)
        checks = Checks(build, by)
        if checks.of_expanded():
            raise checks.impossible
        return Made(build, build.functions_made())
    except Diverges as wrong:
        said = (
            f"Trainshift cannot tell which names of {node.name} share an object: split it into "
            "smaller functions"
        )
        raise refused_at(node, said) from wrong
    except RecursionError:
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as wrong:
        # An internal error is reported in the place of the reason, but marked as ours.
        said = f"an internal error, please report it: {type(wrong).__name__} {wrong}"
        raise refused_at(node, said.strip()) from wrong


def _ask_apart(found: Made) -> Made:
    """Make a derivative check first that the argument objects which it mutates occur at one place only.

    A caller may pass one list twice, or a list of the file that the function reads; neither adjoints nor
    tangents would follow both. A gradient checks also that what it treats as a list is no array, and that
    what it goes through twice is no iterator.
    """
    build, made = found.build, found.functions[-1]
    start = build.start
    further = {each.arg for each in made.args.kwonlyargs}
    asked = bool(build.summary(start).changed or build.aliases(start).augmented)
    listed = [*_lasting(build), *_listed(build)] if "value_bar" in further else []
    if not asked and not listed:
        return found
    first = [*listed, *(_asked_apart(build, further) if asked else [])]
    if (
        asked
        and "value_bar" in further - {*start.params}
        and (start.value.container or start.value.has("array"))
    ):
        # It may be an argument that is mutated before it is read.
        build.helpers.add("_copied")
        first.append(terms.assign("value_bar", terms.call("_copied", terms.name("value_bar"))))
    said, *body = made.body
    if any(made.name in terms.names_read(each) for each in body):
        # A recursive function is an inner function here: its own result was already read.
        body = [function_of(made.name, made.args, ast.get_docstring(made) or "", body)]
        body.append(ast.Return(passed_on(made.name, made.args)))
        made.args = same_arguments(made.args)
    made.body = [said, *first, *body]
    return found


def _asked_apart(build: Analysis, further: set[str]) -> list[ast.stmt]:
    """The checking statements, if any are needed; `further` are the parameters that the derivative adds."""
    start = build.start
    kinds = {each: start.kind(each) for each in start.params}
    names = [each for each, kind in kinds.items() if build.arrays or not kind.numeric]
    dots = [build.dot_names.get((start, each)) for each in names]
    names += [each for each in dots if each in further]
    kind = kinds[names[0]] if len(names) == 1 else Kind()
    alone = kind.has("array") or kind.numeric if build.arrays else kind.holds_numbers
    others = sorted(read_state(build.module, build.functions)) if names else []
    if names and (others or not alone):
        for each in start.local.intersection(others):
            raise refused_at(
                start.node, f"{each} is also a variable of the file, which the derivative reads: rename it"
            )
        known = [ast.Dict([*map(terms.constant, others)], [*map(terms.name, others)])] if others else []
        return [_checking(build, "_apart", names, *known)]
    return []


def _checking(build: Analysis, helper: str, names: Sequence[str], *given: ast.expr) -> ast.stmt:
    """The call of a helper that checks some parameters, by their names."""
    build.helpers.add(helper)
    words = [ast.keyword(each, terms.name(each)) for each in names]
    return ast.Expr(ast.Call(terms.name(helper), [*given], words))


def _listed(build: Analysis) -> list[ast.stmt]:
    """The statements that check which arguments are lists, where only their caller knows.

    A slice of a list is no view, as that of an array is: no array may be sliced, of any dimensions.  A list's
    row is stored as it is, where an array copies it: an array of one dimension has no rows.
    """
    if build.arrays:
        return []
    copies, stored = set[Kind](), set[Kind]()
    for each in build.all_kinds():
        originals = {kind for kind in each.originals() if kind is not each.found()}
        copies |= {kind for kind in originals if each.has("changed") or kind.has("changed")}
        shared = each.is_copy and each.element().changes
        rows = shared or (each.has("changed") and not each.holds_numbers)
        stored |= {each.found()} if rows else set()
    copies, stored = ({one for each in kinds for one in each.origins()} for kinds in (copies, stored))
    found: list[ast.stmt] = []
    names = build.start.params
    for dimensions, kinds in ((0, copies), (1, stored - copies)):
        kinds = {each for each in kinds if not each.has("list", "tuple", "dict")}
        asked = [each for each in names if not kinds.isdisjoint(build.start.kind(each).with_elements())]
        names = [each for each in names if each not in asked]
        if asked:
            found.append(_checking(build, "_listed", asked, terms.constant(dimensions)))
    return found


def _lasting(build: Analysis) -> list[ast.stmt]:
    """The statement that checks which arguments are no iterators, where only their caller knows."""
    names = used_up(build)
    known = [terms.constant(each) for each in _attributes(build, names)] if names else []
    return [_checking(build, "_lasting", names, *([ast.Tuple(known)] if known else []))] if names else []


def _attributes(build: Analysis, names: Sequence[str]) -> list[str]:
    """The attributes that the functions read of objects, or of these names, and do not call."""
    found = set[str]()
    for function in build.every():
        for each in terms.uncalled(function.body):
            if isinstance(each, ast.Attribute):
                if function.dotted(each) is None or root_of(each) in names:
                    found.add(each.attr)
    return sorted(found)


def _taken(module: Module, helpers: Collection[str]) -> tuple[Refusal, ...]:
    """The places where the file uses the name of a needed helper for something else."""
    if module.script.code.bound_names.isdisjoint(helpers):
        return ()
    found = []
    for node in terms.inside(module.body):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if name not in module.helpers:
                pass
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case _:
                continue
        if name in helpers:
            said = f"the derivative needs a function called {name}: rename this one"
            found.append(Refusal(node.lineno, node.col_offset + 1, said))
    return tuple(sorted(found))


def _named(module: Module, helpers: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The helpers by their names in the file, and these names.

    If the file already has a helper for arrays, one for tensors gets the next free number, and vice versa.
    """
    names: dict[str, str] = {}
    kept: dict[str, str] = {}
    for name, text in helpers.items():
        number, found = 0, name
        while found in module.helpers:
            wanted, there = variant_of(name, text), variant_of(name, _text(module, found))
            if is_of_tensors(there) == is_of_tensors(wanted):
                if there is not None and wanted is not None and there > wanted:
                    text = text_of_variant(name, there)
                break
            number += 1
            found = f"{name}_{number}"
        kept[found] = text
        names[name] = found
    for found, text in kept.items():
        kept[found] = re.sub(r"\b_\w+\b", lambda word: names.get(word[0], word[0]), text)
    return kept, names


def _renamed(module: Module, functions: Iterable[ast.FunctionDef], names: dict[str, str]) -> set[str]:
    """Give the helpers and libraries in new functions their names in the file; return the libraries used.

    Expressions are shared with the tables, so they are rebuilt; statements belong to the functions.
    """
    found: set[str] = set()
    new: dict[int, ast.expr] = {}
    nodes = [each for function in functions for each in terms.walk(function)]
    for node in nodes:
        match node:
            case ast.Name(name) if names.get(name, name) != name:
                new[id(node)] = terms.name(names[name])
            case ast.Attribute(ast.Name(library) as base) if library in IMPORTS:
                found.add(library)
                alias = module.alias(IMPORTS[library][0]) or library
                if alias != library:
                    new[id(base)] = terms.name(alias)
    for node in nodes if new else ():
        for field, value in ast.iter_fields(node) if isinstance(node, ast.stmt) else ():
            if isinstance(value, ast.expr):
                setattr(node, field, terms.rebuilt(value, new))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(node, field, [terms.rebuilt(each, new) for each in value])
    return found


def _text(module: Module, name: str) -> str:
    """The text of a helper for the file, with the names from the table."""
    text = ast.unparse(module.all_functions[name])
    for key, (full, _) in IMPORTS.items():
        alias = module.alias(full)
        if alias is not None and alias != key:
            text = re.sub(rf"\b{alias}\.", f"{key}.", text)
    return re.sub(r"\b(_\w+?)_\d+\b", r"\1", text)


def _is_made(module: Module, name: str) -> bool:
    """Return whether the line above a function says that it was made."""
    line = module.all_functions[name].lineno - 1 if name in module.all_functions else 0
    return line > 0 and module.lines[line - 1].startswith(MADE)


def _edits(
    module: Module, node: ast.FunctionDef, helpers: dict[str, str], made: dict[str, str], needs: set[str]
) -> list[Edit]:
    """The edits: new functions below the original, replacements of earlier ones, and imports."""
    source = module.source
    new: list[str] = []
    edits: list[Edit] = []
    named = {key: module.alias(full) for key, (full, _) in IMPORTS.items()}
    for name, text in [*helpers.items(), *made.items()]:
        for key, alias in named.items() if name in helpers else ():
            if re.search(rf"(?<![\w.]){key}\.", text):
                needs = needs | {key}
                text = re.sub(rf"(?<![\w.]){key}\.(?=\w)", f"{alias or key}.", text)
        text = text.replace("\n", source.newline)
        old = module.all_functions.get(name)
        if old is None:
            new.append(text)
            continue
        first = source.line_starts[old.lineno - 1 - (name in made)]
        end = source.next_line(source.line_starts[last_line(module, old) - 1])
        if module.text[first:end].rstrip() != text.rstrip():
            edits.append(Edit(first, end, text))
    if new:
        end = source.next_line(source.line_starts[last_line(module, node) - 1])
        start = "" if module.text[:end].endswith(("\n", "\r")) else source.newline
        blank = source.newline * 2
        edits.append(Edit(end, end, start + blank + blank.join(new)))
    missing = [line for key, (_, line) in IMPORTS.items() if key in needs and named[key] is None]
    if missing:
        offset = _import_place(module)
        edits.append(Edit(offset, offset, "".join(each + source.newline for each in missing)))
    return sorted(edits, key=lambda each: each.start)


def _import_place(module: Module) -> int:
    """The place for a new import: below the last one at the top, otherwise below the file's docstring."""
    line = 0
    for node in module.body:
        first = node is module.body[0]
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            first and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            line = node.end_lineno or node.lineno
        else:
            break
    source = module.source
    return (
        source.next_line(source.line_starts[line - 1]) if line else (1 if module.text[:1] == "\ufeff" else 0)
    )
