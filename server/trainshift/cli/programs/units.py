"""Units: the programs that the inputs of a command mean, each once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from trainshift.cli.programs.sources import Sources, home
from trainshift.engine.programs import Programs
from trainshift.engine.workspace import is_test
from trainshift.host.files import is_notebook, shown_path
from trainshift.host.walk import STANDARD_INPUT, Input

_TESTS = "it is a test; name it to convert it too"


class Unit(Struct, frozen=True):
    """A unit of work: the program that a file starts, or an input that is not a program.

    `path` is the absolute path of the start file, a script or a notebook, "" for what is no program: standard
    input, what cannot be read.  `modules` are its files that the user named instead.  `reason` says why an
    input of a walked directory is left alone.
    """

    item: Input
    path: str = ""
    modules: tuple[str, ...] = ()
    reason: str = ""


def units(inputs: Sequence[Input], sources: Sources) -> list[Unit]:
    """The units of some inputs, in their order.

    A named file means the programs that contain it.  A file of a walked directory means itself if it starts a
    program; otherwise a program that contains it must start in the directory.
    """
    programs = Programs(sources.parsed, sources.parsed.release)
    scripts = {item: home(item.path) for item in inputs if is_script(item)}
    items = {path: item for item, path in scripts.items()}
    found: dict[str, Unit] = {}
    for number, item in enumerate(inputs):
        path = scripts.get(item, "")
        if path and item.named:
            sources.read_ahead(path, item.path)
        starts = programs.starts(path) if path else []
        if not path:
            found[str(number)] = Unit(item, home(item.path) if _is_notebook(item) else "")
        elif item.named:
            for start in [path] if path in starts else starts:
                unit = found.get(start) or Unit(items.get(start) or Input(shown_path(start)), start)
                modules = unit.modules if start == path else (*unit.modules, item.path)
                found[start] = replace(unit, modules=modules)
        elif path in starts:
            reason = _TESTS if is_test(path) and len(programs.reached(path)) > 1 else ""
            found.setdefault(path, Unit(item, path, reason=reason))
        elif not any(start in items for start in starts):
            whose = " and ".join(map(shown_path, starts))
            found[path] = Unit(item, path, reason=f"it belongs to the program of {whose}; convert that")
    return list(found.values())


def _is_notebook(item: Input) -> bool:
    special = item.problem or item.nothing or item.path == STANDARD_INPUT
    return not special and is_notebook(item.path) and os.path.isfile(item.path)


def is_script(item: Input) -> bool:
    """Return whether an input is a file that may import others."""
    special = item.problem or item.nothing or item.path == STANDARD_INPUT or is_notebook(item.path)
    return not special and os.path.isfile(item.path)
