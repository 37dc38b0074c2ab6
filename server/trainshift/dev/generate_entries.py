"""Generate entries: propose those that can be derived from an installed package, and refresh the signatures.

    python -m trainshift.dev.generate_entries tensorflow_addons [--path SITE_PACKAGES] [--write]

The package is read and never imported.  Its classes that inherit from an optimizer, a schedule, a callback or
a model of Keras are listed as missing entries; further keys of a role are written by hand. With `--write`,
changed signatures are written to the file.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from trainshift.libraries import entries
from trainshift.libraries.entries import Entry, Role
from trainshift.python.syntax.chunk_syntax import last_name

_FAMILIES = {
    "Optimizer": Role.OPTIMIZER,
    "LearningRateSchedule": Role.SCHEDULE,
    "Callback": Role.CALLBACK,
    "Model": Role.MODEL,
    **dict.fromkeys(("Adam", "SGD", "RMSprop", "Adagrad", "Adamax", "Nadam", "Ftrl"), Role.OPTIMIZER),
}
"""The role of a class in a training script, by its Keras base class."""


@dataclass(frozen=True)
class Found:
    """A class of a package: its names by module, its bases, and facts read from its definition.

    `step` names the object that applies the gradients in its `train_step`; "" if it has none.
    """

    module: str
    name: str
    bases: tuple[str, ...]
    signature: str | None
    step: str


def classes(package: str, path: list[str] | None = None) -> dict[str, Found]:
    """Return the classes of an installed package by their last names, as its source defines them."""
    spec = PathFinder.find_spec(package, path)
    if spec is None or not spec.origin:
        raise SystemExit(f"There is no package {package!r} here.")
    root = Path(spec.origin).parent
    found: dict[str, Found] = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if any(part.startswith(("test", "_test")) or part.endswith("_test") for part in parts):
            continue
        module = ".".join(part for part in parts if part != "__init__")
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, _read(node, module))
    return found


def _read(node: ast.ClassDef, module: str) -> Found:
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    init, step = methods.get("__init__"), methods.get("train_step")
    bases = tuple(filter(None, map(last_name, node.bases)))
    return Found(module, node.name, bases, _signature(init), _applies(step) if step is not None else "")


def _signature(init: ast.FunctionDef | None) -> str | None:
    """The text between the parentheses of a constructor, without `self` and without annotations."""
    if init is None:
        return None
    given = ast.parse(ast.unparse(init)).body[0]
    assert isinstance(given, ast.FunctionDef)
    parameters = given.args
    for each in ast.walk(parameters):
        if isinstance(each, ast.arg):
            each.annotation = None
    first = parameters.posonlyargs or parameters.args
    del first[:1]
    return ast.unparse(parameters)


def _applies(step: ast.FunctionDef) -> str:
    """The step method of a `train_step`: the optimizer's `minimize`, or a tape of its own."""
    called = {last_name(each.func) for each in ast.walk(step) if isinstance(each, ast.Call)}
    if "apply_gradients" in called or "apply" in called:
        return "tape"
    return "minimize" if "minimize" in called else ""


def role_of(name: str, found: dict[str, Found], seen: frozenset[str] = frozenset()) -> Role | None:
    """Return the role of a class, by its Keras base class; None if it has none."""
    if name in found and name not in seen:
        roles = (role_of(each, found, seen | {name}) for each in found[name].bases)
        return next(filter(None, roles), None)
    return _FAMILIES.get(name)


def signature_of(name: str, found: dict[str, Found], seen: frozenset[str] = frozenset()) -> str | None:
    """Return the signature of a class, its own or that of a base in its package; None without one."""
    if name not in found or name in seen:
        return None
    if found[name].signature is not None:
        return found[name].signature
    inherited = (signature_of(each, found, seen | {name}) for each in found[name].bases)
    return next((each for each in inherited if each is not None), None)


def proposed(package: str, found: dict[str, Found]) -> Iterator[str]:
    """Yield the lines of entries that a package's file lacks, filled in as far as possible."""
    for each in found.values():
        role = role_of(each.name, found)
        name = f"{each.module}.{each.name}" if each.module else each.name
        if each.name.startswith("_") or role is None or _known(package, each) is not None:
            continue
        if role is Role.MODEL and not each.step:
            continue  # It trains like its base class.
        said = f'role = "{role.value}"'
        if role is Role.MODEL:
            said += f', step = "{each.step}"'
        elif role in (Role.OPTIMIZER, Role.SCHEDULE):
            signature = signature_of(each.name, found)
            said += f', signature = "{signature}"' if signature is not None else ""
        yield f'"{name}" = {{ {said} }}'


def _known(package: str, found: Found) -> Entry | None:
    """The entry of a class, under its module or under one that re-exports it."""
    parts = found.module.split(".") if found.module else []
    below = (".".join([*parts[:end], found.name]) for end in range(len(parts), -1, -1))
    return next(filter(None, (entries.find(each, entries.table(package)) for each in below)), None)


def refreshed(text: str, package: str, found: dict[str, Found]) -> str:
    """Return the text of a package's file with the current signatures of its classes."""
    for each in entries.table(package).values():
        now = signature_of(each.pattern.rpartition(".")[2], found)
        if each.signature is not None and now is not None:
            start = text.index(each.pattern)
            was, new = f'signature = "{each.signature}"', f'signature = "{now}"'
            text = text[:start] + text[start:].replace(was, new, 1)
    return text


def main(arguments: list[str] | None = None) -> None:
    """Print the proposed entries, and refresh the signatures on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("--path", action="append", help="where packages are installed")
    parser.add_argument("--write", action="store_true", help="refresh the signatures of the package's file")
    given = parser.parse_args(arguments)
    found = classes(given.package, given.path)
    sys.stdout.writelines(f"{line}\n" for line in proposed(given.package, found))
    file = entries.DATA / f"{given.package}.toml"
    if given.write and file.is_file():
        file.write_text(refreshed(file.read_text("utf-8"), given.package, found), "utf-8")


if __name__ == "__main__":
    main()
