"""The code that initializes a session's variables on every rank, for all rules that insert it."""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.initializations import ALL, Initialization


def broadcast(program: Program, given: Initialization) -> list[str]:
    """The lines that broadcast newly initialized variables, run in the same way as their initializer."""
    hvd = program.at(given.site).fact(Prerequisites).hvd
    operations = [
        f"{hvd}.broadcast_global_variables(0)"
        if variables == ALL
        else f"{hvd}.broadcast_variables({variables}, root_rank=0)"
        for variables in given.variables
    ]
    session = _session(program, given)
    if given.by_operation:
        named = f"session={session}" if session else ""
        return _in_its_graph(program, given, [f"{each}.run({named})" for each in operations])
    return _in_its_graph(program, given, [f"{session}.run({each})" for each in operations])


def initialize(program: Program, given: Initialization) -> list[str]:
    """The lines that initialize all variables of the session."""
    operation = f"{program.at(given.site).fact(Prerequisites).v1}.global_variables_initializer()"
    return _in_its_graph(program, given, [f"{_session(program, given)}.run({operation})"])


def _session(program: Program, given: Initialization) -> str:
    return program.script.text(given.session, given.site) if given.session is not None else ""


def _in_its_graph(program: Program, given: Initialization, lines: list[str]) -> list[str]:
    """The lines, inside the session's graph if that may not be the default one."""
    if not given.in_its_graph:
        return lines
    unit = program.fact(Layout).unit_at(given.site.statement)
    return [f"with {_session(program, given)}.graph.as_default():", *(unit + line for line in lines)]
