"""Second names: the places where a chunk stores or passes on an object that already has a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.libraries.containers import ADDING
from trainshift.python.syntax.chunk_syntax import Binding, ChunkSyntax, alternatives, dotted


class KeptName(Struct, frozen=True):
    """The (dotted) names that a binding keeps: as a second name, `target`, or else `how`."""

    binding: Binding
    names: list[ast.expr]
    how: str
    target: ast.Name | None = None


def kept_names(facts: ChunkSyntax) -> list[KeptName]:
    """The bindings that give a second name to an object."""
    return [kept for binding, target in _bindings(facts) if (kept := _kept(binding, target)) and kept.names]


def _bindings(facts: ChunkSyntax) -> Iterator[tuple[Binding, ast.AST | None]]:
    """Yield every binding of a value in a chunk, with its target."""
    for scope in (facts.module, *facts.scopes):
        for bindings in scope.bindings.values():
            yield from ((each, each.target) for each in bindings)
    for attributes in facts.attributes.values():
        yield from ((each.binding, each.binding.target) for each in attributes)
    for items in facts.items.values():
        yield from ((each.binding, None) for each in items if _adds(each.binding.target))


def _kept(binding: Binding, target: ast.AST | None) -> KeptName | None:
    value = _part(binding)
    if value is None or isinstance(value, (ast.Call, ast.Constant)):
        return None
    if isinstance(value, ast.List | ast.Tuple | ast.Set | ast.Dict):
        return KeptName(binding, list(filter(dotted, _elements(value))), "put in a container")
    if binding.kind == "parameter":
        how = "the default of a parameter"
    elif isinstance(target, ast.Name):
        source = _other_name(value, target) if binding.kind == "value" else None
        return KeptName(binding, [source], "", target) if source is not None else None
    else:
        how = "stored in an attribute" if isinstance(target, ast.Attribute) else "put in a container"
    return KeptName(binding, [value] if dotted(value) else [], how)


def _part(binding: Binding) -> ast.expr | None:
    """The expression that a binding takes from a literal tuple."""
    if binding.kind == "element":
        value = binding.value
        return value if not binding.path and isinstance(value, ast.List | ast.Tuple | ast.Set) else None
    return binding.taken if binding.kind in ("value", "parameter") else None


def _elements(node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> list[ast.expr]:
    return node.values if isinstance(node, ast.Dict) else node.elts


def _other_name(value: ast.expr, target: ast.Name) -> ast.expr | None:
    """The name, other than that of `target`, to which it is bound; one of several for ``a if c else b``."""
    if isinstance(value, ast.IfExp | ast.BoolOp):
        parts = alternatives(value)
        if all(dotted(part) or isinstance(part, ast.Constant) for part in parts):
            return next((part for part in parts if dotted(part) and dotted(part) != target.id), None)
        return None
    return value if dotted(value) and dotted(value) != target.id else None


def _adds(target: ast.AST | None) -> bool:
    """Return whether an item is put into its container by assignment or by a method that adds one."""
    if not isinstance(target, ast.Call):
        return True
    return isinstance(target.func, ast.Attribute) and target.func.attr in ADDING
