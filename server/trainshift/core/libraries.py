"""Libraries: the entries of the libraries that a program uses, including the user's own entries.

Every rule, restriction and hazard uses this fact, so that they agree about each object.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api, entries
from trainshift.libraries.entries import ROOT, Entry, Role, Table
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Function, Instance, Library, Member, Unknown, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Site, argument

FOR_ROOT = frozenset({"create_file_writer"}).union(
    *map(
        named,
        (
            "writing", "file_writing", "model_writing", "checkpoint_writing", "restoring", "exporting",
            "writer", "levels", "evaluating",
        ),
    )
)  # fmt: skip
"""The names of methods that rank 0 alone may have to call, whatever their object is."""
_DESCRIBED = {
    Role.OPTIMIZER: "an optimizer: wrapped, its rate scaled",
    Role.OPTIMIZER_FACTORY: "makes an optimizer: wrapped, its rate scaled",
    Role.SCHEDULE: "a schedule: its rates scaled",
    Role.AGENT: "an agent: the gradients that its optimizers apply are averaged",
    Role.WRITER: "writes: left to rank 0",
    Role.WRITER_OBJECT: "makes an object that writes: left to rank 0",
    Role.MOVES: "moves files: left to rank 0",
    Role.OUTSIDE: "acts beyond this program: left to rank 0",
    Role.TRACKER: "a tracker: left to rank 0",
    Role.DATASET: "makes data, which every rank reads whole",
    Role.PRINTS: "shows something: left to rank 0",
    Role.COUNTS: "counts the steps of a training, which are divided",
    Role.OPENER: "opens a file: left to rank 0 where it writes",
    Role.DRAWS: "draws rows: all ranks draw the same ones",
}


def described(entry: Entry) -> str:
    """Describe a library member and how it is converted, in a few words."""
    if entry.role is Role.TRAINS:
        return entry.text("reason")
    if entry.role is Role.CALLBACK:
        return f"a callback: {'left to rank 0' if entry.text('ranks') == ROOT else 'on every rank'}"
    if entry.role is Role.MODEL:
        own = "applies the gradients of its own tape, which a wrapped optimizer does not average"
        return f"a model: {own if entry.text('step') == 'tape' else 'its optimizer is wrapped'}"
    if entry.role is Role.NOTED:
        return entry.text("says")
    if entry.text("averages"):
        return "an optimizer that steps others: averages only through a wrapped tape"
    if entry.role is Role.PRINTS and entry.text("argument"):
        return f"shows something: `{entry.text('argument')}` keeps it quiet on other ranks"
    said = _DESCRIBED[entry.role]
    if entry.role in (Role.OPTIMIZER_FACTORY, Role.SCHEDULE) and entry.data.get("steps"):
        return f"{said}, its steps divided"
    return f"{said}; {entry.text('says')}" if entry.role is Role.DATASET and entry.text("says") else said


def argument_stated(call: ast.Call, stated: str) -> ast.expr | None:
    """Return the argument that an entry names by its position and its name, ``1.filename``; None if it is not
    given.
    """
    position, _, name = stated.partition(".")
    return argument(call, int(position), name)


class ReturnedPath(NamedTuple):
    """The path that a call is given and returns; `is_first` of several values, None where it is not given."""

    node: ast.expr | None
    is_first: bool


def path_returned(name: str, call: ast.Call) -> ReturnedPath | None:
    """Return the path that a call of a library's function is given and returns; None if it returns another.

    The fact ``1.dst`` names it, ``1.filename[0]`` as the first of several values, and ``1.dst/`` as one that
    may be a folder, in which case the call returns that of a file in it.
    """
    stated = str(entries.fact(name, "returns_path") or "")
    path = argument_stated(call, stated.rstrip("/").removesuffix("[0]")) if stated else None
    if not stated or (stated.endswith("/") and not (path is not None and _ends_in_file(path, call))):
        return None
    return ReturnedPath(path, stated.endswith("[0]"))


def _ends_in_file(path: ast.expr, call: ast.Call) -> bool:
    """Return whether a path ends in a file name: a literal with a suffix, or the path of the source."""
    match path:
        case ast.Constant(str(text)):
            return bool(posixpath.splitext(text)[1])
        case ast.JoinedStr([*_, last]) | ast.BinOp(right=last) | ast.Call(args=[*_, last], keywords=[]):
            return _ends_in_file(last, call)
    return bool(call.args) and ast.dump(path) == ast.dump(call.args[0])


class Libraries:
    """The entries of one program's libraries."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._own = program.whole.choices.libraries
        self._named: dict[tuple[Role, ...], frozenset[str]] = {}
        self._stating: dict[str, frozenset[str]] = {}

    def entry(self, full_name: str) -> Entry | None:
        """The entry of a library's member, by its full name; None if it has none."""
        return entries.of_people(full_name, self._own) or entries.entry(api.canonical(full_name) or full_name)

    def roles(self, package: str) -> set[Role]:
        """Return the roles that members of a package are known to have."""
        own = (table for name, table in self._own.items() if name.partition(".")[0] == package)
        return {each.role for table in (entries.table(package), *own) for each in table.values()}

    def has(self, role: Role) -> bool:
        """Return whether a library that the script imports has members with a role."""
        return any(each.role is role for table in self._tables for each in table.values())

    def is_own(self, full_name: str) -> bool:
        """Return whether the user's own entries describe a name."""
        return entries.of_people(full_name, self._own) is not None

    def callback(self, full_name: str) -> Entry | None:
        """The entry of a callback class; None if it has none."""
        found = self.entry(full_name)
        return found if found is not None and found.role is Role.CALLBACK else None

    def of(self, value: Value) -> Entry | None:
        """The entry of a value: a function, a method, an object by its class, or a class."""
        if isinstance(value, Library):
            return self.entry(value.name)
        if isinstance(value, Instance):
            return self.entry(value.cls)
        if isinstance(value, Member) and isinstance(value.owner, Instance):
            made = self.entry(value.owner.cls)
            owner = made.gives if made is not None and made.gives else value.owner.cls
            return self.entry(f"{owner}.{value.name}")
        if isinstance(value, UserInstance):
            return self._of_base(value)
        if isinstance(value, Member) and isinstance(value.owner, UserInstance):
            return self._of_base(value.owner, f".{value.name}")
        return None

    def _of_base(self, value: UserInstance, below: str = "") -> Entry | None:
        """The entry of the library class that an object's class extends, or of a method it inherits."""
        bases = sorted(self._names.library_bases(value.scope))
        found = (self.entry(f"{base}{below}") for base in bases)
        return next((each for each in found if each is not None), None)

    def called(self, site: Site, *roles: Role) -> Entry | None:
        """Return the entry of the function or class that a call names, if it has one of these roles."""
        if site.name not in self.names(*roles):
            return None
        found = map(self.of, self._names.callee(site))
        return next((each for each in found if each is not None and each.role in roles), None)

    def sites(self, *roles: Role) -> Iterator[tuple[Site, Entry]]:
        """Yield the calls to members with one of these roles, in script order, each with its entry."""
        for site in self._script.sites_named(*sorted(self.names(*roles))):
            found = self.called(site, *roles)
            if found is not None:
                yield site, found

    @cached_property
    def for_root(self) -> frozenset[str]:
        """The names of calls that only rank 0 may have to make, with or without their owner."""
        own = FOR_ROOT | {alias for alias, real in self._aliases if real in FOR_ROOT}
        stated = (self.names_stating(each) for each in ("verbose", "writes", "level"))
        return own.union(self.names(*entries.ACTING, Role.PRINTS, Role.OPENER), *stated)

    def names_stating(self, key: str) -> frozenset[str]:
        """The names in the script's calls whose entry may state a fact."""
        found = self._stating.get(key)
        if found is None:
            wanted = (
                each.pattern.rpartition(".")[2]
                for package in self._packages
                for each in entries.stated(package).values()
                if key in each.data
            )
            found = self._stating[key] = self._spelled(wanted)
        return found

    def names(self, *roles: Role) -> frozenset[str]:
        """The names in the script's calls whose entry may have one of some roles."""
        found = self._named.get(roles)
        if found is None:
            found = self._named[roles] = self._find_names(roles)
        return found

    def _find_names(self, roles: tuple[Role, ...]) -> frozenset[str]:
        wanted = [
            each.pattern.rpartition(".")[2]
            for table in self._tables
            for each in table.values()
            if each.role in roles
        ]
        return self._spelled(wanted)

    def _spelled(self, wanted: Iterable[str]) -> frozenset[str]:
        """The names in the script of calls whose original last names, or patterns of them, are given."""
        wanted = list(wanted)
        if not wanted:
            return frozenset()
        plain = {name for name in wanted if not entries.is_pattern(name)}
        patterns = [name for name in wanted if entries.is_pattern(name)]
        plain |= {alias for alias, real in self._aliases if real in plain or entries.fits_any(real, patterns)}
        called = self._script.code.sites_by_name if patterns else ()
        fitting = {name for name in called if entries.fits_any(name, patterns)}
        return frozenset(plain | fitting)

    @cached_property
    def _aliases(self) -> list[tuple[str, str]]:
        """The names that imports give to library members, and the last part of the original names."""
        return [
            (name, binding.full_name.rpartition(".")[2])
            for facts in self._script.facts
            for scope in (facts.module, *facts.scopes)
            for name, bindings in scope.bindings.items()
            for binding in bindings
            if binding.full_name
        ]

    @cached_property
    def _tables(self) -> list[Table]:
        """The tables of the packages that the script imports, and the user's own."""
        found = map(entries.table, self._packages)
        return [table for table in (*found, *self._own.values()) if table]

    @cached_property
    def _packages(self) -> list[str]:
        """The packages that the script imports, Keras as that of TensorFlow."""
        packages = {
            binding.full_name.partition(".")[0]
            for script in self._script.scripts
            for binding in script.imports
        }
        packages |= {module.partition(".")[0] for module in self._script.code.star_imports}
        mirrored = {"tensorflow"} if packages & {"keras", "tf_keras"} else set()
        return sorted({*packages, *mirrored, "builtins"})


def full_name(value: Value) -> str:
    """Return the full name of a library's function, or of a method of an object of a library's class."""
    if isinstance(value, Library):
        return api.canonical(value.name) or value.name
    if isinstance(value, Member) and isinstance(value.owner, Instance):
        return f"{value.owner.cls}.{value.name}"
    return ""


def asks_disk(callees: Iterable[Value]) -> bool | None:
    """Return whether a method such as ``exists`` looks for a file: of a path, or of an object that nothing
    tells of; None if no entry tells of the library.

    A query of a database has such a method, too.
    """
    known = [each for each in callees if not isinstance(each, Unknown)]
    names = [full_name(each) for each in known if not isinstance(each, Function)]
    if not known or not all(names) or any(entries.fact(each, "differs") == "disk" for each in names):
        return True
    return False if all(map(entries.is_described, names)) else None
