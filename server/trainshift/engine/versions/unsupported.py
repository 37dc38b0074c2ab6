"""Unsupported: report problems with the required versions at the TensorFlow import."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from trainshift.core.choices import KERAS_2, KERAS_AUTO, Choices
from trainshift.core.finding import Finding, Line, Related, Verdict
from trainshift.core.program import Program
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.engine.versions.runtime import SUPPORTED, Runtime, settled
from trainshift.python.source.source import Span
from trainshift.training.loops.loops import Loops

_PACKAGES = ("tensorflow", "keras", "tf_keras")


def told_of(program: Program, runtime: Runtime, choices: Choices) -> Iterator[Finding]:
    """Yield a finding at the TensorFlow import if a program's requirements are wrong or too new for
    a choice.
    """
    keras = settled(choices, runtime).keras
    if runtime.refusal(newer=keras != KERAS_2):
        name = posixpath.basename(runtime.path)
        message = f"{name} asks for {runtime.asks}, but {SUPPORTED}. Ask for an older one, or convert anyway."
        yield _finding(program, message, runtime.path, runtime.line, runtime.asks)
    elif runtime.problem is not None and choices.keras == KERAS_AUTO and not runtime.is_ignored:
        told, path, line, asks = runtime.problem
        message = f"{told}. Correct that, or choose a Keras with the setting `keras`."
        yield _finding(program, message, path, line, asks)


def _finding(program: Program, message: str, path: str, line: int, asks: str) -> Finding:
    there = Related(Span(0, 0), f"asks for {asks}", Line(path, line))
    where = _import(program) or program.fact(Loops).own[0].span
    return Finding(UNSUPPORTED_VERSION.code, Verdict.VIOLATED, where, message, (there,))


def _import(program: Program) -> Span | None:
    """The first statement that imports TensorFlow."""
    script = program.script
    statements = (
        binding.statement
        for binding in script.imports
        if binding.full_name.partition(".")[0] in _PACKAGES and binding.statement is not None
    )
    return min((script.statement_span(each) for each in statements), default=None)
