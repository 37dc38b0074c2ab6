"""Abstract values of expressions: sets of modules, objects and functions that may contain Unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from trainshift.python.syntax.chunk_syntax import Scope, Statement


class Library(Struct, frozen=True):
    """A module, class or function of a library, by its full name as imported."""

    name: str


class Module(Struct, frozen=True):
    """A module of the workspace: the path of its file, or of the directory of a package without one."""

    path: str


class Instance(Struct, frozen=True):
    """The result of calling the library's `cls`, at the call `node`; `cls` is canonical if known."""

    cls: str
    node: ast.Call


class Member(Struct, frozen=True):
    """A library attribute or method of an object: ``dataset.batch``."""

    owner: Instance | UserInstance
    name: str


class Function(Struct, frozen=True):
    """A function or lambda of the script; `owner` is the object that it is bound to, if any."""

    scope: Scope
    owner: UserInstance | None = None


class Class(Struct, frozen=True):
    """A class of the script."""

    scope: Scope


class UserInstance(Struct, frozen=True):
    """An object of a class of the script; `node` is the call that created it, None for ``self``."""

    scope: Scope
    node: ast.Call | None


class Display(Struct, frozen=True):
    """A literal list, tuple, set, dict or comprehension in the script."""

    node: ast.expr
    scope: Scope
    statement: Statement | None


class Literal(Struct, frozen=True):
    """A number, string or other constant, or arithmetic on such, whose value is not computed but `...`."""

    value: object


class Unknown(Struct, frozen=True):
    """A value that the script does not show."""


Value: TypeAlias = (
    Library | Module | Instance | Member | Function | Class | UserInstance | Display | Literal | Unknown
)
Values: TypeAlias = frozenset[Value]

UNKNOWN = Unknown()
NOTHING: Values = frozenset()
ANYTHING: Values = frozenset({UNKNOWN})
RECORD = "collections.namedtuple()"
"""The result of calling a class of `namedtuple`."""


def texts(values: Iterable[Value]) -> list[str]:
    """Return the strings among values, as far as the script shows them."""
    return [value.value for value in values if isinstance(value, Literal) and isinstance(value.value, str)]
