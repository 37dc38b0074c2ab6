"""Edits that insert elements at the start of a list, for all rules that need them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit, Withheld
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.python.syntax.precedence import ALTERNATIVE, ELEMENT, STARRED, Frame
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.rank_regions.list_roles import Listed, Role


def put_first(
    program: Program, listed: Listed, site: Site, first: list[str], flattens: bool = False
) -> list[Edit]:
    """Insert elements before those of a list argument, for any expression.

    With `flattens`, a nested list is equivalent to its elements, and a single object to a list, because Keras
    flattens callbacks.
    """
    given, found = listed.given, listed.found
    assert given is not None
    layout = program.fact(Layout)
    if isinstance(given, ast.Constant):
        return [*layout.replace(given, site, f"[{', '.join(first)}]")]
    if isinstance(given, ast.List):
        return _into_display(program, given, site, first)
    maybe = found.may_be_none or not found.complete
    if not (found.single and flattens):
        frame = Frame("*(", " or [])", ALTERNATIVE) if maybe else Frame("*", "", STARRED)
    elif listed.writes_alone:
        nothing, asks = (" or []", ALTERNATIVE) if maybe else ("", ELEMENT)
        frame = Frame("*([", f"{nothing}] if {program.at(site).fact(Prerequisites).root} else [])", asks)
    else:
        frame = Frame("(", " or [])", ALTERNATIVE) if maybe else Frame("", "", ELEMENT)
    whole = replace(frame, before=f"[{', '.join(first)}, {frame.before}", after=f"{frame.after}]")
    return [*layout.put(given, site, whole)]


def _into_display(program: Program, given: ast.List, site: Site, first: list[str]) -> list[Edit]:
    """Put elements at the beginning of a literal list, each on its own line if the others are."""
    span = program.script.span(given, site)
    if not given.elts:
        return [Edit(span.start + 1, span.start + 1, ", ".join(first))]
    source = program.script.source
    layout = program.fact(Layout)
    at = layout.enclosed(given.elts[0], site).start
    lead = source.text[source.line_start(at) : at]
    own_line = not lead.strip() and span.start < at - len(lead)
    between = f",{layout.line_end_at(site)}{lead}" if own_line else ", "
    return [Edit(at, at, "".join(element + between for element in first), rank=-1)]


def left(report: Report, listed: Listed) -> Iterator[Withheld]:
    """The members that write in some cases, and are left on every rank."""
    for each in listed.members:
        if each.may_write:
            yield report.withheld(each.element, f"{each.name} may write, and stays on every rank")


def titled(title: str, listed: Listed) -> str:
    """The title of a change, with the unknown members."""
    unknown = listed.named(Role.UNKNOWN)
    return f"{title}; {', '.join(unknown)} (unknown) stays on every rank" if unknown else title


def placed(listed: Listed, how: str = "") -> list[str]:
    """The members left on every rank, with `how`, and the members kept to rank 0, one line each."""
    lines = []
    every = listed.named(Role.STEERS, Role.OWN)
    if every:
        lines.append(f"{', '.join(every)} {run(every)} on every rank{how}")
    writing = listed.named(Role.WRITES)
    if writing:
        lines.append(f"{', '.join(writing)} {run(writing)} on rank 0 only")
    return lines


def run(names: list[str]) -> str:
    """The verb that goes with the names."""
    return "runs" if len(names) == 1 else "run"
