"""The edits that put elements in front of a list, or keep one to rank 0, shared by the rules that do so."""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Edit, Withheld
from trainshift.core.text.facts import Site
from trainshift.rewriting.edits.rank_guards import only_element, only_statement
from trainshift.rewriting.list_members import Element
from trainshift.rewriting.list_roles import Listed, Role
from trainshift.rewriting.prerequisites import Prerequisites


def put_first(
    program: Program, listed: Listed, site: Site, first: list[str], flattens: bool = False
) -> list[Edit]:
    """Put elements in front of those that an argument gives, whatever expression it is.

    `flattens` tells that a list in the list is as good as its elements (Keras flattens callbacks).
    """
    given, found = listed.given, listed.found
    assert given is not None
    span = program.script.span(given, site)
    if isinstance(given, ast.Constant):
        return [Edit(span.start, span.end, f"[{', '.join(first)}]")]
    if isinstance(given, ast.List):
        return _into_display(program, given, site, first)
    lead = f"[{', '.join(first)}, "
    if flattens and found.single and not found.complete:
        return [Edit(span.start, span.start, f"{lead}("), Edit(span.end, span.end, " or [])]")]
    if found.single:
        if listed.writes:
            kept = f"] if {program.fact(Prerequisites).root} else [])]"
            return [Edit(span.start, span.start, f"{lead}*(["), Edit(span.end, span.end, kept)]
        return [Edit(span.start, span.start, lead), Edit(span.end, span.end, "]")]
    if found.may_be_none or not found.complete:
        return [Edit(span.start, span.start, f"{lead}*("), Edit(span.end, span.end, " or [])]")]
    if isinstance(given, ast.IfExp | ast.BoolOp | ast.Lambda):
        return [Edit(span.start, span.start, f"{lead}*("), Edit(span.end, span.end, ")]")]
    return [Edit(span.start, span.start, f"{lead}*"), Edit(span.end, span.end, "]")]


def _into_display(program: Program, given: ast.List, site: Site, first: list[str]) -> list[Edit]:
    """Put elements at the beginning of a list that is written out, each on a line where the others are."""
    span = program.script.span(given, site)
    if not given.elts:
        return [Edit(span.start + 1, span.start + 1, ", ".join(first))]
    source = program.script.source
    at = program.script.span(given.elts[0], site).start
    lead = source.text[source.line_start(at) : at]
    between = f",{source.newline}{lead}" if not lead.strip() and span.start < at - len(lead) else ", "
    return [Edit(at, at, "".join(element + between for element in first), rank=-1)]


def keep_to_root(program: Program, rule: str, element: Element, name: str) -> Change | Withheld:
    """Keep an element that writes to rank 0, where it is put into the list."""
    statement = element.statement or element.scope.statement
    assert statement is not None
    target = program.script.statement_span(statement)
    if element.added_by is not None:
        if element.added_by.deferred or not isinstance(statement.node, ast.Expr):
            return Withheld(rule, target, f"{name} is added inside a larger expression")
        edits, requires = only_statement(program, statement), program.fact(Layout).isolate(statement)
    else:
        edits, requires = only_element(program, element.node, statement), ()
    return Change(rule, f"Keep {name} to rank 0", target, edits, requires)


def titled(title: str, listed: Listed) -> str:
    """The title of a change, with the members that cannot be seen."""
    unknown = listed.named(Role.UNKNOWN)
    return f"{title}; {', '.join(unknown)}, which cannot be seen, stays on every rank" if unknown else title


def placed(listed: Listed, how: str = "") -> list[str]:
    """Which members were left on every rank, and `how`, and which were kept to rank 0, each in a line."""
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
