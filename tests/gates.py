"""Gates that keep the code readable: no circle of imports, a class in one file, no function too complex.

    python tests/gates.py

`tests/gates.toml` lists what breaks a gate today.  The list may only shrink: the script fails for an unlisted
violation, and for a listed one that no longer exists.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

from radon.complexity import cc_visit_ast
from radon.visitors import Class, Function

from import_graph import circles, folder_circles, modules, statements, tree
from trainshift.libraries import toml

MOST_COMPLEX = 25
LIST = Path(__file__).with_name("gates.toml")


def complex_functions() -> set[str]:
    """Functions with a cyclomatic complexity above `MOST_COMPLEX`, as `module:Class.function`."""

    def functions(blocks: list[Class | Function]) -> Iterator[Function]:
        for block in blocks:
            if isinstance(block, Function):
                yield block
                yield from functions(block.closures)
            else:
                yield from functions([*block.methods, *block.inner_classes])

    found: set[str] = set()
    for name, path in modules().items():
        for function in functions(cc_visit_ast(tree(path))):
            if function.complexity > MOST_COMPLEX:
                found.add(f"{name}:{function.fullname}")
    return found


def split_classes() -> set[str]:
    """Classes that are one class over several files, as `module.Base <- module.Heir`.

    Such a base has a single direct subclass, in another file.  Exceptions do not count.
    """
    files: dict[str, str] = {}
    heirs: dict[str, list[str]] = {}
    for module, path in modules().items():
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}".partition(".")[2]
            for node in statements(path)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                name = f"{module}.{node.name}"
                if not any(ast.unparse(base).endswith(("Exception", "Error")) for base in node.bases):
                    files[name] = module
                for base in node.bases:
                    written = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
                    heirs.setdefault(imported.get(written, f"{module}.{written}"), []).append(name)
    return {
        f"{base} <- {heir}"
        for base, (heir, *others) in heirs.items()
        if not others and base in files and files.get(heir) != files[base]
    }


def main() -> int:
    """Print new and stale violations, and return the exit status."""
    gc.disable()  # Syntax trees of the whole server: garbage collection would take half of the time.
    listed = toml.loads(LIST.read_text(encoding="utf-8"))
    found = {
        "module-circles": {" <-> ".join(circle) for circle in circles()},
        "folder-circles": {" <-> ".join(circle) for circle in folder_circles()},
        "split-classes": split_classes(),
        "complex-functions": complex_functions(),
    }
    status = 0
    for gate, broken in found.items():
        known = set(listed[gate])
        for name in sorted(broken - known):
            print(f"{gate}: {name} is new; mend it")
        for name in sorted(known - broken):
            print(f"{gate}: {name} is mended; take it out of {LIST.name}")
        status = status or int(broken != known)
    return status


if __name__ == "__main__":
    sys.exit(main())
