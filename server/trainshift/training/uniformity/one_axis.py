"""One axis: the arrays that have only rows, so that the last axis of their shape counts these."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, arguments, last_name

_PACKAGES = frozenset({"jax", "numpy", "tensorflow"})
# Functions of packages of arrays that give one axis whatever they get, and those that do of one number.
_FLAT = frozenset(
    {"arange", "bincount", "flatnonzero", "intersect1d", "linspace", "ravel", "setdiff1d"}
    | {"union1d", "unique"}
)
_OF_A_NUMBER = frozenset({"empty", "ones", "permutation", "rand", "randn", "random", "zeros"})
# Functions and methods that give the elements of an array one after another, or the rows of a condition.
_FLATTENING = frozenset({"flatten", "ravel"})
_FINDING = frozenset({"nonzero", "where"})
# Functions that compute each element of their result from one of each argument.
ELEMENTWISE = frozenset(
    {
        "abs", "add", "array", "asarray", "astype", "cast", "clip", "clip_by_value", "constant", "cos",
        "divide", "exp", "float32", "float64", "greater", "less", "log", "logical_and", "logical_not",
        "logical_or", "maximum", "minimum", "multiply", "pow", "power", "reshape", "round", "sigmoid",
        "sign", "sin", "sqrt", "square", "subtract", "tan", "tanh", "where",
    }
)  # fmt: skip
_RESHAPING = frozenset({"reshape"})
_LISTED = frozenset({"array", "asarray", "constant", "convert_to_tensor"})
# Functions that count, or numbers.
_COUNTS = frozenset({"len", "int"})
# The number of names and operations that are followed; of an array behind more of them nothing is known.
_DEEPEST = 8


def has_one_axis(program: Program, at: Occurrence, *, unsure: bool, depth: int = 0) -> bool:
    """Return whether an array surely has one axis; of one that nothing tells of, False.

    `unsure` is the answer for an array behind more steps than are followed: the one that keeps a doubt.
    """
    node, names = at.node, program.names
    if depth > _DEEPEST:
        return unsure

    def has(each: Occurrence) -> bool:
        return has_one_axis(program, each, unsure=unsure, depth=depth + 1)

    if isinstance(node, ast.Name | ast.Attribute):
        step = names.steps_back(at)
        return step is not None and bool(step.sources) and all(map(has, step.sources))
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant):
            return isinstance(node.value, ast.Call) and last_name(node.value.func) in _FINDING
        return not isinstance(node.slice, ast.Tuple) and has(at.part(node.value))
    if isinstance(node, ast.Compare):
        return has(at.part(node.left))
    if isinstance(node, ast.BinOp):
        return has(at.part(node.left)) or has(at.part(node.right))
    return isinstance(node, ast.Call) and _gives_one_axis(program, node, at, has)


def _gives_one_axis(
    program: Program, node: ast.Call, at: Occurrence, has: Callable[[Occurrence], bool]
) -> bool:
    called = program.names.full_names(node.func, at.scope, at.statement)
    given = arguments(node)
    if not called:
        return last_name(node.func) in _FLATTENING and isinstance(node.func, ast.Attribute)
    names = {each.rpartition(".")[2] for each in called if each.partition(".")[0] in _PACKAGES}
    if not names:
        return False
    if names <= _FLAT:
        return True
    first = given[0] if given else None
    if names <= _LISTED and isinstance(first, (ast.List, *COMPREHENSIONS)):
        elements = first.elts if isinstance(first, ast.List) else [getattr(first, "elt", first)]
        return all(isinstance(each, ast.Constant | ast.Call) and _is_number(each) for each in elements)
    if names <= _OF_A_NUMBER:
        return len(given) == 1 and first is not None and _is_count(program, at.part(first))
    if not names <= ELEMENTWISE - _RESHAPING:
        return False
    rows = [each for each in given if not _is_number(each)]
    return bool(rows) and all(has(at.part(each)) for each in rows)


def _is_count(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is a number, or a name for one."""
    step = program.names.steps_back(at) if isinstance(at.node, ast.Name | ast.Attribute) else None
    found = [each.node for each in step.sources] if step is not None else [at.node]
    return bool(found) and all(isinstance(each, ast.expr) and _is_number(each) for each in found)


def _is_number(node: ast.expr) -> bool:
    """Return whether an expression surely is a number."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in _COUNTS
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
