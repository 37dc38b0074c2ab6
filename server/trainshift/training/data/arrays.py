"""Arrays: the arguments of `fit` that are arrays, or lists and dictionaries of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Display, Values
from trainshift.python.syntax.chunk_syntax import Site, dotted, hides_arguments
from trainshift.training.datasets.draw_remedies import Draw, Remedies
from trainshift.training.datasets.knowledge import unordered
from trainshift.training.loops.fits import Fit
from trainshift.training.loops.steps import is_plain

_GIVEN = ("x", "y", "sample_weight")
# Libraries whose functions return arrays, tensors or tables.
_LIBRARIES = frozenset(
    {"builtins", "cv2", "h5py", "keras", "numpy", "pandas", "scipy", "sklearn", "tensorflow"}
)
# Of these, the libraries whose functions return no datasets.
_ARRAYS_ONLY = (
    *("cv2.", "numpy.", "pandas.", "scipy.", "sklearn."),
    *("keras.datasets.", "tensorflow.keras.datasets."),
)
_LISTING = frozenset({"builtins.list", "builtins.tuple"})
_ONE_BATCH = "each batch has all rows of several inputs, which may need each other, as those of a graph do"
# Containers of arrays, which are not arrays.
_HOLDING = (ast.List, ast.Tuple, ast.Dict, ast.DictComp)
# Expressions that may select a part and can be read again.
_CUTTING = (ast.Attribute, ast.BinOp, ast.Constant, ast.Name, ast.Slice, ast.Tuple, ast.UnaryOp)


class Array(Struct, frozen=True, eq=False):
    """An argument to divide that is an array, or a container of arrays created elsewhere.

    `length` is an expression with the array's length, which can be evaluated again; with `holds`, the
    argument is a list or a dictionary of arrays.
    """

    at: Occurrence
    length: ast.expr
    holds: type[ast.expr] | None = None


class Arrays(Struct, frozen=True):
    """The arrays of one `fit`: the reason if they cannot be sharded, the draws to make alike, and
    assumptions.
    """

    arrays: tuple[Array, ...]
    draws: tuple[Draw, ...] = ()
    doubts: tuple[str, ...] = ()
    reason: str = ""


def read_arrays(program: Program, fit: Fit) -> Arrays | None:
    """The arrays of a `fit`, which all have the same length; None if they may not be arrays."""
    given = [each for name in _GIVEN if (each := fit.given(name)) is not None]
    if _is_one_batch(program, fit):
        return Arrays((), reason=_ONE_BATCH)
    return read_given(program, fit.site, given, fit.certain and fit.given("y") is not None)


def _is_one_batch(program: Program, fit: Fit) -> bool:
    """Return whether each step takes all rows of several inputs in their order, as those of a graph are."""
    shuffles, size, x = fit.given("shuffle"), fit.given("batch_size"), fit.given("x")
    if size is None or x is None or not isinstance(shuffles, ast.Constant) or shuffles.value is not False:
        return False
    inputs, sizes = (
        program.names.all_sources(at) or (at,) for at in (of_call(fit.site).part(each) for each in (x, size))
    )
    several = [each.node for each in inputs if isinstance(each.node, ast.List | ast.Tuple)]
    names = {dotted(part) for each in several if len(each.elts) > 1 for part in each.elts} - {""}
    return all(_counted(program, each) in names for each in sizes)


def _counted(program: Program, at: Occurrence) -> str:
    """Return the name of the array whose rows ``len(x)`` or ``x.shape[0]`` counts; "?" for anything else."""
    node = at.node
    if isinstance(node, ast.Call) and len(node.args) == 1:
        is_len = "builtins.len" in program.names.full_names(node.func, at.scope, at.statement)
        return dotted(node.args[0]) if is_len else "?"
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return "?"
    is_first = node.value.attr == "shape" and isinstance(node.slice, ast.Constant) and node.slice.value == 0
    return dotted(node.value.value) if is_first else "?"


def read_given(program: Program, site: Site, given: list[ast.expr], certain: bool) -> Arrays | None:
    """The arrays of a call; None if they may not be arrays, unless that is `certain`."""
    if hides_arguments(site.node) or site.in_fstring or site.deferred:
        return Arrays((), reason=f"the arguments of `{site.name}` may be hidden; pass its arrays by name")
    given = [each for each in given if not _is_none(each)]
    found = [
        (at, holds)
        for each in given
        for at, holds in _parts(program, of_call(site)._replace(node=each, site=site))
    ]
    plain = next((at.node for at, holds in found if holds is None and _is_named(at, site)), None)
    arrays = []
    for at, holds in found:
        part = at.node
        length = part if is_read_again(part) else plain
        if length is None or (holds is not None and not is_read_again(part)):
            text = program.script.text(part, site)
            return Arrays((), reason=f"`{text}` would be evaluated twice; assign it to a variable first")
        if holds is None and _is_listed(program, at):
            text = program.script.text(part, site)
            return Arrays(
                (), reason=f"`{text}` is a list, of rows or of one array for each input; make it an array"
            )
        arrays.append(Array(at, length, holds))
    draws = [draw for each in arrays for draw in program.fact(Remedies).behind(each.at)]
    if reason := unordered(draws):
        return Arrays((), reason=reason)
    unseen = [
        program.script.text(each.at.node, site)
        for each in arrays
        if each.holds is None and not is_array(program, each.at)
    ]
    if unseen and not certain:
        return None
    names = " and ".join(dict.fromkeys(unseen))
    is_one = len(set(unseen)) == 1
    doubts = (f"{names} {'is assumed to be an array' if is_one else 'are assumed to be arrays'}",)
    return Arrays(tuple(arrays), tuple(dict.fromkeys(draws)), doubts if names else ())


def _parts(program: Program, at: Occurrence) -> Iterator[tuple[Occurrence, type[ast.expr] | None]]:
    """Yield the arrays of a literal argument; otherwise the name of their container."""
    node = at.node
    if isinstance(node, ast.List | ast.Tuple) and not _is_of_numbers(node):
        for each in node.elts:
            yield from _parts(program, at._replace(node=each))
    elif isinstance(node, ast.Dict) and None not in node.keys:
        for each in node.values:
            yield from _parts(program, at._replace(node=each))
    elif isinstance(node, ast.DictComp):
        yield from _parts(program, at._replace(node=node.value, scope=at.scope.facts.scope_of[node]))
    else:
        yield at, _held(program.names.values(node, at.scope, at.statement))


def _is_named(at: Occurrence, site: Site) -> bool:
    """Return whether all arguments of a call may read an expression again."""
    return at.scope is site.scope and is_read_again(at.node)


def _held(values: Values) -> type[ast.expr] | None:
    """Return whether a value is a list or a dictionary of arrays."""
    shown = [value.node for value in values if isinstance(value, Display)]
    if len(shown) == len(values) == 1 and isinstance(shown[0], _HOLDING) and not _is_of_numbers(shown[0]):
        return ast.Dict if isinstance(shown[0], ast.Dict | ast.DictComp) else ast.List
    return None


def _is_of_numbers(node: ast.expr) -> bool:
    """Return whether a list contains numbers, or rows of numbers, and so counts as an array itself."""
    elements = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    return bool(elements) and all(
        isinstance(each, ast.Constant | ast.UnaryOp) or _is_of_numbers(each) for each in elements
    )


def is_read_again(node: ast.expr) -> bool:
    """Return whether an expression only reads names and parts of their values."""
    if isinstance(node, ast.Subscript):
        cut = (part for part in ast.walk(node.slice) if isinstance(part, ast.expr))
        return is_read_again(node.value) and all(isinstance(part, _CUTTING) for part in cut)
    return is_plain(node)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_listed(program: Program, at: Occurrence, seen: frozenset[int] = frozenset()) -> bool:
    """Return whether a value may be a list made from an array, which Keras takes for several inputs."""
    if id(at.node) in seen:
        return False
    step = program.names.steps_back(at)
    if step is not None:
        return any(_is_listed(program, each, seen | {id(at.node)}) for each in step.sources)
    if isinstance(at.node, ast.ListComp):
        return True
    if not isinstance(at.node, ast.Call) or not at.node.args:
        return False
    if _LISTING.isdisjoint(program.names.full_names(at.node.func, at.scope, at.statement)):
        return False
    given = at.part(at.node.args[0])
    of = given.node.func if isinstance(given.node, ast.Call) else given.node
    made = program.names.full_names(of, at.scope, at.statement)
    return is_array(program, given) and not any(name.startswith("builtins.") for name in made)


def is_array(
    program: Program, at: Occurrence, seen: frozenset[int] = frozenset(), *, no_dataset: bool = False
) -> bool:
    """Return whether an expression certainly comes from a library, which returns arrays and tensors.

    With `no_dataset`, the library must return nothing else.
    """
    if id(at.node) in seen or len(seen) > 60:
        return True
    seen |= {id(at.node)}
    step = program.names.steps_back(at)
    if step is not None:
        sources = [*step.sources, *step.within]
        return bool(sources) and all(is_array(program, each, seen, no_dataset=no_dataset) for each in sources)
    node = at.node
    if isinstance(node, ast.Call):
        names = program.names.full_names(node.func, at.scope, at.statement)
        if names and no_dataset:
            return all(name.startswith(_ARRAYS_ONLY) for name in names)
        if names:
            return any(name.partition(".")[0] in _LIBRARIES for name in names)
        made_of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    elif isinstance(node, ast.BinOp):
        made_of = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        made_of = [node.operand]
    else:
        return isinstance(node, ast.Compare | ast.ListComp | ast.List | ast.Tuple)
    return any(is_array(program, at.part(each), seen, no_dataset=no_dataset) for each in made_of)
