"""Defects: possible defects of a converted program, and the helpers of all searches for them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.execution.graph_slice import reaching_calls


class Flaw(NamedTuple):
    """A defect at a call of the result, or elsewhere; not `certain` if the script does not show enough."""

    text: str
    site: Site | None = None
    certain: bool = True


def at(node: ast.expr, site: Site) -> Occurrence:
    """Place an expression at the occurrence of a call."""
    return Occurrence(node, site.scope, site.statement)


def reaching(program: Program, wanted: dict[ast.Call, Site], of: Occurrence) -> list[Site]:
    """The calls among `wanted` whose results reach an expression."""
    return reaching_calls(program.script, wanted, of.node, of.scope, of.statement)
