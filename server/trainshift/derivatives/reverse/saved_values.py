"""Values that the primal pass saves for the adjoint pass, and those that the adjoint pass restores."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reverse.control_flow import Ways
from trainshift.python.rewrite import terms

# Nodes that read only the structure of a value, not its contents.
SHAPES = frozenset(("_cells", "_zeros", "len"))


def reads_of(way: Ways) -> tuple[set[str], set[str]]:
    """The names that the adjoint pass reads, and those whose contents it reads."""
    reads: set[str] = set()
    inside: set[str] = set()
    waiting: list[ast.AST] = [*way.passes.out, way.bars_back]
    for each in way.passes.forward:
        for inner in terms.walk(each):
            if isinstance(inner, ast.FunctionDef) and inner.name.startswith("pullback"):
                waiting.extend(inner.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads.add(node.id)
            inside.add(node.id)
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHAPES:
            read = set().union(*(terms.names_read(argument) for argument in node.args))
            reads |= read
            if node.func.id == "len":
                inside |= read & way.whole.aliases(way.function).grown
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("_like", "_unbroadcast", "_copied"):
                if node.func.id != "_copied":
                    waiting.append(node.args[0])
                reads |= terms.names_read(node)
                continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("pop", "append") and isinstance(node.func.value, ast.Name):
                reads.add(node.func.value.id)
                waiting.extend(node.args)
                continue
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            reads |= terms.names_read(node.value)
            waiting.append(node.slice)
            continue
        waiting.extend(terms.children(node))
    return reads, inside


def put_right(name: str, kept: str, kind: Kind) -> tuple[str, list[ast.stmt]]:
    """The helper that saves a value's contents, and the statements that restore them in place.

    The object itself is restored, because the caller may have other names for it.
    """
    inside = kind.with_elements() - {kind}
    flat = kind.has("list", "dict", "array") and not any(
        each.container or each.has("array") for each in inside
    )
    if kind.container and not flat:
        return "_held", [ast.Expr(terms.call("_put_right", terms.name(kept)))]
    if kind.has("dict"):
        return "_copied", [
            ast.Expr(terms.call(f"{name}.clear")),
            ast.Expr(terms.call(f"{name}.update", terms.name(kept))),
        ]
    whole = ast.Subscript(terms.name(name), ast.Slice(None, None, None), ast.Load())
    given: list[ast.stmt] = [terms.assign(whole, terms.name(kept))]
    if not kind.container and not kind.has("array"):
        # Numbers are immutable.
        given = [ast.If(terms.call("np.ndim", terms.name(name)), given, [])]
    return "_copied", given
