"""Results of a differentiation: edits of the file, or the reasons for a refusal."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from trainshift.python.source.edit import Edit

Mode = Literal["forward", "reverse"]


class Refusal(Struct, frozen=True, order=True):
    """A place that cannot be differentiated, with the reason.

    Lines and columns count from 1, columns in code points.
    """

    line: int
    column: int
    message: str


class Refused(Struct, frozen=True):
    """All reasons for a refusal of the function, in text order; at least one."""

    function: str
    mode: Mode
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Impossible(Exception):
    """The function has no derivative, for these reasons."""

    refusals: tuple[Refusal, ...]


def refused_at(node: ast.stmt | ast.expr, said: str) -> Impossible:
    """The refusal of a statement or expression, for one reason."""
    return Impossible((Refusal(node.lineno, node.col_offset + 1, said),))


class Shared(Impossible):
    """Names share mutated objects, so that they have no separate adjoints."""


@dataclass(frozen=True, slots=True)
class NotFound(Exception):
    """There is no such function or parameter, or the text is not Python: an error of the caller."""

    message: str


class Derived(Struct, frozen=True):
    """A function's derivative.

    `edits` are disjoint and in text order; none if the file already has the same derivative. `text` is the
    file after them. `wrt` are the parameters differentiated by, in order; `left_out` the others, with the
    reason. `made` names the new function, `added` all new functions. `shared` lists the places where names
    share a mutated object, so that the gradient transposes tangents (AD37).
    """

    function: str
    mode: Mode
    made: str
    added: tuple[str, ...]
    wrt: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]
    text: str
    shared: tuple[Refusal, ...] = ()
