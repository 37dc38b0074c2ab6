"""An `ast` with slots: the most frequent nodes take a third of the memory.

Python gives each node a dictionary, which takes more memory than its contents.  Names, attributes, constants,
calls and their keywords, parameters and assignments, nine nodes in ten, have slots here instead; they are
quicker to read, too.  Their classes are those of `ast` for `isinstance`, but not for `type`: to look a node
up by its class, use `kind_of`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


class _Name(ast.Name):
    __slots__ = ("id", "ctx", *_PLACE)


class _Attribute(ast.Attribute):
    __slots__ = ("value", "attr", "ctx", *_PLACE)


class _Constant(ast.Constant):
    __slots__ = ("value", "kind", *_PLACE)


class _Call(ast.Call):
    __slots__ = ("func", "args", "keywords", *_PLACE)


class _Keyword(ast.keyword):
    __slots__ = ("arg", "value", *_PLACE)


class _Arg(ast.arg):
    __slots__ = ("arg", "annotation", "type_comment", *_PLACE)


class _Assign(ast.Assign):
    __slots__ = ("targets", "value", "type_comment", *_PLACE)


_LEAN: tuple[type[ast.AST], ...] = (_Name, _Attribute, _Constant, _Call, _Keyword, _Arg, _Assign)
_KINDS: dict[type[ast.AST], type[ast.AST]] = {each: each.__bases__[0] for each in _LEAN}
for _each, _kind in _KINDS.items():
    _each.__name__ = _each.__qualname__ = _kind.__name__  # which `ast.unparse` and similar functions rely on
_new: Callable[[Any], Any] = ast.AST.__new__


def kind_of(node: ast.AST) -> type[ast.AST]:
    """The `ast` class of a node."""
    kind = type(node)
    return _KINDS.get(kind, kind)


def for_lean(table: dict[type[ast.AST], Callable[..., None]]) -> dict[type[ast.AST], Callable[..., None]]:
    """A table by classes of `ast` that can be indexed by `type`, which is faster than `kind_of`."""
    return table | {lean: table[kind] for lean, kind in _KINDS.items() if kind in table}


def lean(tree: ast.Module) -> ast.Module:
    """Convert a tree from `ast.parse`: everything below its root becomes lean, and the input is consumed."""
    _below(tree)
    return tree


def _below(node: Any) -> Any:
    """Convert all nodes below a node that stays unchanged."""
    above = node
    while isinstance(node, ast.BinOp):  # A long sum nests to the left, deeper than Python recurses.
        node.right = _MAKING[type(node.right)](node.right)
        if not isinstance(node.left, ast.BinOp):
            node.left = _MAKING[type(node.left)](node.left)
            return above
        node = node.left
    for name in node._fields:
        part = getattr(node, name)
        if isinstance(part, list):
            for index, each in enumerate(part):
                part[index] = _MAKING[type(each)](each)
        elif isinstance(part, ast.AST):
            setattr(node, name, _MAKING[type(part)](part))
    return above


# The parts of a node are in its dictionary in the order of its slots.  They are named one by one, because a
# script has tens of thousands of nodes, and a loop over the names takes three times as long.
# fmt: off


def _name(node: ast.Name) -> Any:
    made = _new(_Name)
    (made.id, made.ctx,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    return made


def _attribute(node: ast.Attribute) -> Any:
    made = _new(_Attribute)
    (value, made.attr, made.ctx,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    made.value = _MAKING[type(value)](value)
    return made


def _constant(node: ast.Constant) -> Any:
    made = _new(_Constant)
    (made.value, made.kind,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    return made


def _call(node: ast.Call) -> Any:
    made = _new(_Call)
    (func, made.args, made.keywords,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    made.func = _MAKING[type(func)](func)
    for given in (made.args, made.keywords):
        for index, each in enumerate(given):
            given[index] = _MAKING[type(each)](each)
    return made


def _keyword(node: ast.keyword) -> Any:
    made = _new(_Keyword)
    (made.arg, value,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    made.value = _MAKING[type(value)](value)
    return made


def _arg(node: ast.arg) -> Any:
    made = _new(_Arg)
    (made.arg, annotation, made.type_comment,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    made.annotation = _MAKING[type(annotation)](annotation)
    return made


def _assign(node: ast.Assign) -> Any:
    made = _new(_Assign)
    (made.targets, value, made.type_comment,
     made.lineno, made.col_offset, made.end_lineno, made.end_col_offset) = vars(node).values()
    made.value = _MAKING[type(value)](value)
    for index, each in enumerate(made.targets):
        made.targets[index] = _MAKING[type(each)](each)
    return made


# fmt: on


class _Making(dict[type, Callable[[Any], Any]]):
    """The constructors of slotted nodes, by class."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        self[kind] = _below if issubclass(kind, ast.AST) and kind._fields else _as_it_is
        return self[kind]


def _as_it_is(part: Any) -> Any:
    return part


_MAKING = _Making(
    {
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Constant: _constant,
        ast.Call: _call,
        ast.keyword: _keyword,
        ast.arg: _arg,
        ast.Assign: _assign,
    }
)
