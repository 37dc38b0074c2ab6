"""Concrete syntax, by LibCST: only of the calls that a change touches, and of results as a check.

This is the only caller of LibCST.  It is imported late, because a mere check usually needs no concrete
syntax.
"""

from __future__ import annotations

from msgspec import Struct


class Argument(Struct, frozen=True):
    """One argument of a call.

    `start`..`end` is the argument with its keyword or stars but without its comma, in code points from the
    start of the call.
    """

    keyword: str | None
    star: str
    start: int
    end: int


class CallSyntax(Struct, frozen=True):
    """The offsets of a call's parts, in code points from its start.

    `opening` is the offset after the opening parenthesis.
    """

    opening: int
    arguments: tuple[Argument, ...]


def read_call(text: str) -> CallSyntax:
    """The parts of the call that `text` is.  Raises ValueError for anything else."""
    import libcst

    # The parentheses let a call stand on several lines wherever it was cut out.
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text else "\n"
    config = libcst.PartialParserConfig(default_newline=newline)
    expression = libcst.parse_expression(f"({text})", config)
    if not isinstance(expression, libcst.Call):
        raise ValueError(f"not a call: {text!r}")
    code = libcst.Module([], default_newline=newline).code_for_node
    opening = len(code(expression.func)) + len(code(expression.whitespace_after_func)) + 1
    at = opening + len(code(expression.whitespace_before_args))
    arguments = []
    for argument in expression.args:
        whole = len(code(argument))
        comma = argument.comma
        tail = len(code(comma)) if isinstance(comma, libcst.Comma) else 0
        tail += len(code(argument.whitespace_after_arg))
        bare = argument.with_changes(
            comma=libcst.MaybeSentinel.DEFAULT, whitespace_after_arg=libcst.SimpleWhitespace("")
        )
        length = len(code(bare))
        keyword = argument.keyword.value if argument.keyword is not None else None
        arguments.append(Argument(keyword, argument.star, at, at + length))
        at += length + tail
        assert whole <= length + tail
    return CallSyntax(opening, tuple(arguments))
