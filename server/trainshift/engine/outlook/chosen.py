"""Chosen: possible training in a module that a program chooses when it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries.common import IMPORTERS, ROOTS
from trainshift.python.names.values import Instance, Member
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site

# How functions and methods that train, or run a whole program, are called.
_TRAINING = re.compile(r"(train|fit|run|main|learn)(?!_(?:transform|name|dir|id)$)(_\w+)?")
_REASON = (
    "Trainshift cannot tell whether {called}(...) trains, as {module} gives a module that only "
    "a run chooses; import it by its name, or convert the file that has the loop"
)
_NAMES = tuple(each.rpartition(".")[2] for each in IMPORTERS)
_MEMBERS = tuple(f"{each}." for each in IMPORTERS)


def chosen_training(program: Program) -> tuple[Site, str] | None:
    """A call that may train, of a function or an object from a module that is imported by a computed name."""
    script = program.script
    makers = [each for each in script.sites_named(*_NAMES) if program.names.calls(each, *IMPORTERS)]
    for site in script.sites if makers and _imports_tensorflow(program) else ():
        if not _TRAINING.fullmatch(site.name) or program.names.called_functions(site):
            continue
        for maker in _importing(program, site, makers):
            called, module = script.text(site.node.func, site), script.text(maker.node, maker)
            return site, _REASON.format(called=one_line(called), module=one_line(module))
    return None


def _importing(program: Program, site: Site, makers: list[Site]) -> Iterator[Site]:
    """Yield the calls among `makers` that may give the module of a called function."""
    for value in program.names.callee(site):
        owner = value.owner if isinstance(value, Member) else None
        if isinstance(owner, Instance) and owner.cls in IMPORTERS and owner.node is not None:
            yield program.script.site_of(owner.node)
        elif isinstance(owner, Instance) and owner.cls.startswith(_MEMBERS):
            yield from makers


def _imports_tensorflow(program: Program) -> bool:
    script = program.script
    scripts = [script, *(script.workspace.reachable if script.workspace is not None else ())]
    return any(each.full_name.partition(".")[0] in ROOTS for one in scripts for each in one.imports)
