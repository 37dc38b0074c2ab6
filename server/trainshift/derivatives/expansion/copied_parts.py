"""Assertions that nothing changes a copy that an index of an array makes: the change would be lost (AD37)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.derivatives.reading.indices import Indices
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import once
from trainshift.derivatives.reading.sources import Sources
from trainshift.python.rewrite import terms


def changes_no_copy(reader: Reader, node: ast.stmt) -> list[ast.stmt]:
    """Assert that a statement changes no copy that an array of indices makes: ``x[index][0] = v``, or
    ``put(x[index])`` with a function that changes its argument.
    """
    if not (reader.whole.arrays and reader.whole.reverse) or reader.whole.tensors:
        return []
    nodes, indices = Nodes(reader.function), Indices(reader)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    leaves = [leaf for each in targets if each is not None for leaf in terms.leaves(each)]
    lost = "{} is an array or a condition, so {} is a copy: what is stored into it is lost"
    changed = [(each.value, lost) for each in leaves if isinstance(each, ast.Subscript)]
    # A copy for certain has an adjoint of its own.
    own = (
        "{0} is an array or a condition, so {1} is a copy, which the call changes: "
        "assign {1}.copy() to a variable first"
    )
    changed += [(each, own) for each in _changed_by_calls(reader, node) if not indices.in_copy(each)]
    found: dict[str, ast.stmt] = {}
    for expr, message in changed:
        for part in indices.array_parts(expr):
            for index in nodes.open_indices(part.slice):
                said = message.format(ast.unparse(index), ast.unparse(part))
                if any(once(reader, index)):
                    raise nodes.refused(part, f"{ast.unparse(index)} may be an array: name it first")
                found.setdefault(said, ast.Assert(_selects(index), ast.Constant(said)))
    return list(found.values())


def _changed_by_calls(reader: Reader, node: ast.stmt) -> Iterator[ast.expr]:
    """Yield the arguments that the calls of a statement, without its blocks, may change."""
    sources = Sources(reader)
    own = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    for call in (inner for each in own for inner in terms.walk(each) if isinstance(inner, ast.Call)):
        for callee in sources.callees(call):
            given = dict(sources.given(callee, call))
            yield from (argument for argument, _ in sources.changed(callee, call, given))


def _selects(index: ast.expr) -> ast.expr:
    """An expression that tests whether an index picks a view: a number, a slice, or a tuple of these."""
    text = ast.unparse(index)
    one = "isinstance(each, (int, np.integer, slice)) and not isinstance(each, bool)"
    parts = f"({text} if isinstance({text}, tuple) else ({text},))"
    return ast.parse(f"all({one} for each in {parts})", mode="eval").body
