"""Unsupported: says at the TensorFlow import that the project asks for a version that is too new."""

from __future__ import annotations

import posixpath

from trainshift.core.finding import Finding, Line, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.text.source import Span
from trainshift.core.training.loops import Loops
from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.engine.versions.runtime import SUPPORTED, Runtime

_PACKAGES = ("tensorflow", "keras", "tf_keras")


def unsupported(program: Program, runtime: Runtime) -> Finding:
    """What a demand for a version that is too new comes to for a program whose first script trains."""
    name = posixpath.basename(runtime.path)
    message = f"{name} asks for {runtime.asks}, but {SUPPORTED}. Ask for an older one, or convert anyway."
    there = Related(Span(0, 0), f"asks for {runtime.asks}", Line(runtime.path, runtime.line))
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
