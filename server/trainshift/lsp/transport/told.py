"""Answers beyond the protocol: the types of all answers that only this server gives.

`trainshift.dev.protocol` writes them for the VS Code extension.
"""

from __future__ import annotations

from typing import TypedDict

from lsprotocol.types import Range, WorkspaceEdit


class _Note(TypedDict):
    rule: str
    line: int
    text: str


class Note(_Note, total=False):
    """A remark about a place: `line` and `column` count from 1, in the document `uri`."""

    column: int
    uri: str
    newLine: int
    """The first line of the change in the result."""
    optional: bool
    """True if all other changes are right without this one."""


class _Conversion(TypedDict):
    applied: bool
    reason: str
    status: str
    program: str
    """The files that change, in words; "" if it is only the document."""
    files: int
    """The number of files that change."""
    changes: list[Note]
    decisions: list[Note]
    doubts: list[Note]
    withheld: list[Note]


class Conversion(_Conversion, total=False):
    """The result of a conversion, or the `reason` why there is none (then it has no `edit`)."""

    at: Note | None
    """The place of the obstacle."""
    code: str
    """The code whose page explains the obstacle; "" if there is none."""
    edit: WorkspaceEdit | None


class Rule(TypedDict):
    """A code, and the URI of its page."""

    code: str
    name: str
    title: str
    url: str


class _StaticResult(Conversion):
    function: str
    rules: list[Rule]
    """The rules of its changes."""


class StaticResult(_StaticResult):
    """The result of rewriting a static function, or a whole file if `function` is ""."""


class LeftOut(TypedDict):
    """A parameter without a derivative, unless it is requested by name."""

    name: str
    reason: str


class Refusal(TypedDict):
    """A place that prevents a derivative; `line` and `column` count from 1."""

    uri: str
    line: int
    column: int
    message: str


class _Derivative(TypedDict):
    applied: bool
    reason: str
    function: str
    mode: str
    made: str
    """The name of the new function."""
    added: list[str]
    wrt: list[str]
    """The parameters that the function is differentiated by."""
    leftOut: list[LeftOut]
    refusals: list[Refusal]


class Derivative(_Derivative, total=False):
    """The derivative of a function, or the `reason` why there is none (then it has no `edit`)."""

    edit: WorkspaceEdit | None


class Loop(TypedDict):
    """A training loop: the name of its kind, and its header."""

    name: str
    uri: str
    range: Range


class PartOf(TypedDict):
    """The program of a module: the name and the URI of its start file, and its number of files."""

    name: str
    uri: str
    files: int


class Outline(TypedDict):
    """The training loops of a document, and the result that a conversion of its program would have."""

    version: int | None
    loops: list[Loop]
    program: str
    """The files that would change, in words; "" if it is only the document."""
    partOf: PartOf | None
    """The program of a module; null for a file that starts one."""
    status: str
    reason: str
    changes: int
    files: list[str]
    keras: str
    """The target Keras of a conversion, with the reason; "" if nothing trains."""
    warnings: int
    usesTensorflow: bool


ANSWERS: tuple[type, ...] = (
    Note,
    Conversion,
    Rule,
    StaticResult,
    LeftOut,
    Refusal,
    Derivative,
    Loop,
    PartOf,
    Outline,
)
"""All of them, each after those that it is made of."""
