"""Second names: distributed datasets that are merely other names for the dataset."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.rewriting.strategies.uses import Strategies


def read_by_own_name(program: Program, site: Site) -> tuple[Edit, ...] | None:
    """The edits that replace reads of a distributed dataset's name by the dataset's own name.

    Then the statement that binds the other name can be removed.  None if the two may differ.
    """
    node = site.statement.node
    given = site.node.args[0] if site.node.args else None
    if not isinstance(node, ast.Assign) or node.value is not site.node or not isinstance(given, ast.Name):
        return None
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Name):
        return None
    if target.id == given.id:
        return ()
    readings = program.fact(Strategies).readings.get(target.id, [])
    if not _are_alike(program, site, target.id, given.id):
        return None
    spans = (program.script.span(each.node, each.statement) for each in readings)
    return tuple(Edit(span.start, span.end, given.id) for span in spans)


def _are_alike(program: Program, site: Site, name: str, other: str) -> bool:
    """Return whether `other` means the same at every read of `name`, which the site's statement binds."""
    script, names = program.script, program.names
    home, end = script.home(site.scope), script.statement_span(site.statement).end
    readings = program.fact(Strategies).readings.get(name, [])
    holder, own = names.lookup(name, site.scope, None)
    _, bound = names.lookup(other, site.scope, None)
    if len(own) != 1 or own[0].statement is not site.statement or home.loads(name) != len(readings):
        return False
    if any(each is not home and each.loads(name) for each in script.scripts):
        return False
    if any(each.statement and script.statement_span(each.statement).start > end for each in bound):
        return False
    meant = set(map(id, names.lookup(other, site.scope, site.statement)[1]))
    for each in readings:
        seen = names.lookup(other, each.scope, None)[1] if script.home(each.scope) is home else []
        if not seen or not meant <= set(map(id, seen)):
            return False
        if names.lookup(name, each.scope, None)[0] is not holder:
            return False
    return True
