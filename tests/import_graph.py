"""Prints how the modules of the server import each other: layers, circles, files per folder, lines per file.

    python tests/import_graph.py

`tests/test_tidy.py` checks what it shows.  Imports for type checking alone count like all others.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "server" / "trainshift"
PREFIX = PACKAGE.name + "."

# From the bottom up: a layer imports those before it, never one after it.  A folder belongs to the longest
# entry that it begins with; `restrictions` and `transforms` stand side by side, and so do `calculus`,
# `derivatives` and `static_graphs`.
LAYERS = (
    "libraries",
    "python",
    "python.source",
    "python.syntax",
    "python.flow",
    "python.names",
    "python.values",
    "python.rewrite",
    "core.tables",
    "core.program",
    "core.finding",
    "core.layout",
    "core.training",
    "core.ranks",
    "restrictions.facts",
    "restrictions",
    "rewriting",
    "transforms",
    "calculus",
    "derivatives",
    "static_graphs",
    "engine",
    "host",
    "proving",
    "lsp",
    "cli",
    "dev",
)
# Where a check of a script begins, and what a conversion alone may load.
CHECKER = "engine.checking"
CONVERSION = ("rewriting", "transforms", "engine.conversion")
# By which a check asks the conversion, loaded only where something is found that may have an effect on it.
ASKING = ("engine.effects.asking", "engine.effects.hazards")


@cache
def modules() -> dict[str, Path]:
    """Every module of the server by its name below the package; a package by its own."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of everything that a module imports, at any depth."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in waiting:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide the layer"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += held if isinstance(held := getattr(node, block, None), list) else []
    return frozenset(found)


@cache
def graph() -> dict[str, frozenset[str]]:
    """The modules of the server that each module imports."""
    known = modules()

    def module_of(name: str) -> str | None:
        own = name.removeprefix(PREFIX)
        return next((each for each in (own, own.rpartition(".")[0]) if each in known), None)

    return {
        name: frozenset(
            found
            for each in imports(path)
            if each.startswith(PREFIX) and (found := module_of(each)) and found != name
        )
        for name, path in known.items()
    }


def layer(module: str) -> int | None:
    """The place of a module among the layers; None for what stands beside them (`entry`, `pages`)."""
    matching = [each for each in LAYERS if f"{module}.".startswith(f"{each}.")]
    return LAYERS.index(max(matching, key=len)) if matching else None


def upward() -> list[tuple[str, str]]:
    """The imports that point from a layer to a higher one."""
    return [
        (name, other)
        for name, others in graph().items()
        for other in sorted(others)
        if (below := layer(name)) is not None and (above := layer(other)) is not None and above > below
    ]


def reached(start: str, *without: str) -> set[str]:
    """Every module that is loaded, or may be, when a module is used and none of some others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in without:
            found.add(name)
            waiting += graph().get(name, ())
    return found


def circles() -> list[list[str]]:
    """The sets of modules that import each other, each in order of their names."""
    reach = {name: reached(name) - {name} for name in graph()}
    within = {
        name: frozenset({name, *(other for other in reach[name] if name in reach[other])}) for name in graph()
    }
    return sorted(sorted(each) for each in set(within.values()) if len(each) > 1)


def files_per_folder() -> Counter[str]:
    """How many modules each folder holds, `__init__` left out."""
    paths = (path for path in modules().values() if path.name != "__init__.py")
    return Counter(path.parent.relative_to(PACKAGE).as_posix() for path in paths)


def lines_per_file() -> dict[str, int]:
    """How many lines each module has."""
    return {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}


def main() -> None:
    """Print it all."""
    lines, counted = lines_per_file(), files_per_folder()
    print("Layers, each of which imports only those above it:\n")
    for index, name in enumerate(LAYERS):
        own = [module for module in graph() if layer(module) == index]
        used = {layer(other) for module in own for other in graph()[module]} - {None, index}
        below = ", ".join(LAYERS[each] for each in sorted(each for each in used if each is not None))
        size = sum(lines[each] for each in own)
        print(f"  {name:20}{len(own):4} modules {size:6} lines   imports {below or '-'}")
    print("\nImports that point upwards:", upward() or "none")
    print("\nCircles:")
    for circle in circles() or [["none"]]:
        print("  " + ", ".join(circle))
    print("\nFiles per folder:")
    for folder, count in sorted(counted.items()):
        print(f"  {folder:24}{count:4}")
    print("\nLongest files:")
    for name in sorted(lines, key=lambda each: -lines[each])[:15]:
        print(f"  {name:44}{lines[name]:5}")


if __name__ == "__main__":
    main()
