"""Writers: TensorFlow 1 objects that write files, and that only rank 0 needs."""

from __future__ import annotations

import ast

from trainshift.libraries import api, entries
from trainshift.libraries.methods import named
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function, Instance, Library, Member, Value
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, Statement, arguments, dotted
from trainshift.training.loops.call_effects import Effects


def is_writer(name: str) -> bool:
    """Return whether calling the library's `name` makes a writer."""
    return bool(entries.fact(name, "writes"))


def writes(value: Member) -> bool:
    """Return whether a method of a writer is for rank 0 only."""
    owner = value.owner
    return isinstance(owner, Instance) and value.name in (entries.fact(_class(owner), "writes") or ())


def reason_to_keep(script: Script, effects: Effects, made: Site) -> str:
    """The reason why other ranks need a writer: code of every rank uses it; empty if they do not."""
    if isinstance(made.statement.node, ast.With | ast.AsyncWith):
        return "the block of a with statement needs the writer on every rank"
    for site in script.sites:
        given = [part for each in arguments(site.node) for part in _parts(each)]
        handed = any(_holds(script, part, site, made) for part in given)
        if (
            handed
            and not _writes(site)
            and not all(_copes(script, each) for each in script.names.callee(site))
        ):
            return f"the writer is passed to {script.text(site.node.func, site)}, which every rank calls"
        function = site.node.func
        if isinstance(function, ast.Attribute) and _holds(script, function.value, site, made):
            inner = [part for each in arguments(site.node) for part in ast.walk(each)]
            for part in inner:
                if isinstance(part, ast.Call) and effects.acts(script.site_of(part)):
                    text = script.text(part.func, site)
                    return f"every rank must run {text}, which does more than write"
    return _other_use(script, made)


def _other_use(script: Script, made: Site) -> str:
    """Return the use of a writer on every rank that is not a method call: ``writer[key] = value``."""
    called = {site.node.func for site in script.sites}
    node = made.statement.node
    name = dotted(node.targets[0]) if isinstance(node, ast.Assign) else ""
    for statement in script.statements if name else ():
        for whole in _taken(statement.node):
            if dotted(whole) == name and _is(script, whole, statement, made):
                return f"the block under {name} runs on every rank, which needs the writer"
        for part in statement.own_parts():
            if not isinstance(part, ast.Subscript | ast.Attribute) or part in called:
                continue
            if dotted(part.value) == name and _is(script, part.value, statement, made):
                return f"every rank runs {one_line(script.text(part, statement))}, which needs the writer"
    return ""


def _taken(node: ast.AST) -> list[ast.expr]:
    """The iterable of a loop, or the objects that a `with` enters."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    return [each.context_expr for each in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []


def _is(script: Script, node: ast.expr, statement: Statement, made: Site) -> bool:
    values = script.names.values(node, statement.scope, statement)
    return any(isinstance(value, Instance) and value.node is made.node for value in values)


def _writes(site: Site) -> bool:
    """Return whether a method writes, judged by its name, such as ``to_excel``: only rank 0 calls it."""
    return isinstance(site.node.func, ast.Attribute) and site.name in named("writing")


def _copes(script: Script, value: Value) -> bool:
    """Return whether a called function is analysed, or limited to rank 0 itself."""
    if isinstance(value, Library):
        return bool(entries.fact(api.canonical(value.name) or value.name, "hook"))
    return isinstance(value, Function)


def _parts(node: ast.expr) -> list[ast.expr]:
    return [node, *node.elts] if isinstance(node, ast.List | ast.Tuple) else [node]


def _holds(script: Script, node: ast.expr, site: Site, made: Site) -> bool:
    if node is made.node:
        return True
    return isinstance(node, ast.Name | ast.Attribute) and any(
        isinstance(value, Instance) and value.node is made.node
        for value in script.names.site_values(node, site)
    )


def _class(owner: Instance) -> str:
    return api.canonical(owner.cls) or owner.cls
