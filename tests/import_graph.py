"""Print the imports among the server's modules: folders, circles, lines per file.

    python tests/import_graph.py

The layers are contracts in `pyproject.toml`; `tests/gates.py` checks circles of folders.  Imports for type
checking alone count like all others.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "server" / "trainshift"
PREFIX = PACKAGE.name + "."


@cache
def modules() -> dict[str, Path]:
    """Every module of the server by its name below the package; a package by its own."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a module's syntax tree."""
    return list(ast.walk(tree(path)))


@cache
def statements(path: Path) -> list[ast.AST]:
    """The statements of a module at any depth, and their parents."""
    found: list[ast.AST] = [tree(path)]
    for node in found:
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            found += held if isinstance(held := getattr(node, block, None), list) else []
    return found


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of everything that a module imports, at any depth."""
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide the layer"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
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


def circles() -> list[list[str]]:
    """The sets of modules that import each other, each sorted by name."""
    return _components(graph())


def folder_circles() -> list[list[str]]:
    """The sets of folders whose modules import each other; a module at the top counts as a folder."""
    edges: dict[str, set[str]] = {}
    for name, others in graph().items():
        edges.setdefault(folder(name), set()).update(map(folder, others))
    return _components(edges)


def folder(module: str) -> str:
    """The folder of a module; the module itself if it is at the top."""
    parent = modules()[module].parent.relative_to(PACKAGE).as_posix()
    return module if parent == "." else parent


def _components(edges: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The strongly connected components of a graph that have more than one member."""
    finished: list[str] = []
    _finish(edges, sorted(edges), set(), finished)
    back: dict[str, list[str]] = {}
    for name, others in edges.items():
        for other in others:
            back.setdefault(other, []).append(name)
    found: list[list[str]] = []
    seen: set[str] = set()
    for name in reversed(finished):
        if name not in seen:
            members: list[str] = []
            _finish(back, [name], seen, members)
            found.append(sorted(members))
    return sorted(members for members in found if len(members) > 1)


def _finish(
    edges: Mapping[str, Collection[str]], starts: Collection[str], seen: set[str], into: list[str]
) -> None:
    """Append the nodes reachable from some names and not seen yet, each after all that it leads to."""
    for start in starts:
        waiting = [(start, iter(edges.get(start, ())))] if start not in seen else []
        seen.add(start)
        while waiting:
            rest = waiting[-1][1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                into.append(waiting.pop()[0])
            else:
                seen.add(following)
                waiting.append((following, iter(edges.get(following, ()))))


def files_per_folder() -> Counter[str]:
    """The number of modules in each folder, without `__init__`."""
    paths = (path for path in modules().values() if path.name != "__init__.py")
    return Counter(path.parent.relative_to(PACKAGE).as_posix() for path in paths)


def lines_per_file() -> dict[str, int]:
    """The number of lines of each module."""
    return {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}


def main() -> None:
    """Print everything."""
    lines, counted = lines_per_file(), files_per_folder()
    print("Folders: files, lines, and the folders that each imports:\n")
    for name in sorted({*map(folder, graph())}):
        own = [module for module in graph() if folder(module) == name]
        used = sorted({folder(other) for module in own for other in graph()[module]} - {name})
        size = sum(lines[module] for module in own)
        print(f"  {name:26}{counted[name]:4} files {size:6} lines   imports {', '.join(used) or '-'}")
    print("\nCircles of modules:")
    for circle in circles() or [["none"]]:
        print("  " + ", ".join(circle))
    print("\nCircles of folders:")
    for circle in folder_circles() or [["none"]]:
        print("  " + ", ".join(circle))
    print("\nLongest files:")
    for name in sorted(lines, key=lambda each: -lines[each])[:15]:
        print(f"  {name:44}{lines[name]:5}")


if __name__ == "__main__":
    main()
