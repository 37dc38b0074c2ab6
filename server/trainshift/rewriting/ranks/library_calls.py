"""Library calls: what of other people's libraries rank 0 alone should do, and in which form."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import chain

from trainshift.core import tables
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.training.horovod import Horovod
from trainshift.libraries.entries import Entry, Role
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Instance, Library, Literal, Member, Value
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, arguments, dotted
from trainshift.rewriting.ranks.guard_forms import Form, is_context_manager

ACTING = (Role.WRITER, Role.WRITER_OBJECT, Role.MOVES, Role.OUTSIDE, Role.TRACKER)
"""The roles of what one rank alone should do."""
_WRITING = "wax+"
_READING_TOO = "a+"
_REREAD = "it reads the file too, which rank 0 alone has written; open it in a with statement"


class LibraryCalls:
    """The calls of one script into libraries that act on the world."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._libraries = program.fact(Libraries)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the calls that may be of what acts."""
        objects = self._libraries.sites(Role.WRITER_OBJECT)
        is_made = any(not known.text("elsewhere") for _, known in objects)
        methods = (each.name for each in self._script.sites if is_made and _is_method(each))
        return self._libraries.names(*ACTING).union(methods, _MOVING if self._imports_paths else ())

    @cached_property
    def _imports_paths(self) -> bool:
        return any(each.full_name.partition(".")[0] == "pathlib" for each in self._script.imports)

    def moves_path(self, site: Site) -> bool:
        """Return whether a call of an object that is not seen moves a path: nothing of it is used.

        The method of a table or of a string, which has such a name too, gives something or takes words.
        """
        node = site.statement.node
        alone = isinstance(node, ast.Expr) and node.value is site.node and _is_method(site)
        if not alone or site.name not in _MOVING or not self._imports_paths:
            return False
        words = {word.arg for word in site.node.keywords}
        return words <= _PATH_WORDS and len(site.node.args) == _MOVING[site.name]

    def entry(self, value: Value) -> Entry | None:
        """Return the entry of what acts, None for any other value.

        A method of a writer has that of its object.
        """
        known = self._libraries.of(value)
        if known is None and isinstance(value, Member) and isinstance(value.owner, Instance):
            known = self._libraries.entry(value.owner.cls)
            if known is None or known.role is not Role.WRITER_OBJECT or known.text("elsewhere"):
                return None
        return known if known is not None and known.role in ACTING else None

    def form(self, site: Site, value: Value, known: Entry) -> Form | None:
        """Return how a call is kept to rank 0; None where every rank may make it."""
        if known.role is Role.TRACKER:
            return self._form_of_tracker(site, known)
        if known.role is Role.WRITER_OBJECT and not isinstance(value, Member):
            return self._form_of_object(site, known)
        if known.role is Role.WRITER and self._is_harmless(site, known):
            return None
        if known.role is Role.OUTSIDE and not self._acts_outside(site, known):
            return None
        return Form.GUARD

    def _form_of_tracker(self, site: Site, known: Entry) -> Form | None:
        name = known.text("argument")
        if name:
            given = argument(site.node, None, name)
            is_told = given is not None and self._horovod.pinned(given, site.scope, site.statement)
            return None if is_told else Form.QUIET
        if before := known.text("before"):
            said = any(
                self._horovod.pinned(each, other.scope, other.statement)
                for other in self._script.sites_named(before)
                for each in arguments(other.node)
            )
            return None if said else Form.BEFORE
        return Form.CONTEXT if known.flag("context") and is_context_manager(site) else Form.GUARD

    def _form_of_object(self, site: Site, known: Entry) -> Form | None:
        if not self.writes(site, known):
            return None
        if is_context_manager(site):
            return Form.GUARD
        if not known.text("elsewhere"):
            return Form.CONDITIONAL
        path = argument(site.node, 0, known.text("path"))
        by_rank = path is not None and self._horovod.pinned(path, site.scope, site.statement)
        return None if by_rank else Form.ELSEWHERE

    def writes(self, site: Site, known: Entry) -> bool:
        """Return whether what a call makes writes, as far as its mode tells."""
        return not known.text("mode") or any(set(each) & set(_WRITING) for each in self._modes(site, known))

    def reason_against_nothing(self, site: Site) -> str:
        """Return why other ranks cannot enter nothing: they use what the `with` statement binds."""
        node = site.statement.node
        items = node.items if isinstance(node, ast.With) else []
        bound = next((each.optional_vars for each in items if each.context_expr is site.node), None)
        if bound is None:
            return ""
        name = bound.id if isinstance(bound, ast.Name) else ""
        used = filter(lambda each: self._may_read(each, name, site), self._script.statements)
        if name and all(map(self._is_shown, used)):
            return ""
        return f"the block uses {ast.unparse(bound)}, which is None on other ranks; guard that first"

    def _may_read(self, statement: Statement, name: str, site: Site) -> bool:
        """Whether a statement may read what the `with` of a call binds, and not what another one does."""
        start = self._script.statement_span(site.statement).start
        if statement.scope.function() is not site.scope.function() or statement is site.statement:
            return False
        withs = (each for each in statement.path() if isinstance(each.node, ast.With))
        nearest = next((each for each in withs if name in _bound_by(each)), site.statement)
        if nearest is not site.statement or self._script.statement_span(statement).start < start:
            return False
        return any(isinstance(part, ast.Name) and part.id == name for part in statement.own_parts())

    def _is_shown(self, statement: Statement) -> bool:
        """Whether a statement is a print or a call of a tracker, which is rank 0's."""
        node = statement.node
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            return False
        site = self._script.site_of(node.value)
        named = self._names.full_names(site.node.func, site.scope, statement)
        return not named.isdisjoint(tables.PRINTING) or self._libraries.called(site, Role.TRACKER) is not None

    def reason_against_elsewhere(self, site: Site, known: Entry) -> str:
        """Return why other ranks cannot write to nowhere: they read what is written; "" if they can."""
        reads = any(set(each) & set(_READING_TOO) for each in self._modes(site, known))
        path = argument(site.node, 0, known.text("path"))
        if path is None or isinstance(path, ast.Starred):
            return "the path may be hidden in * or ** arguments; pass it by name"
        return _REREAD if reads else ""

    def _modes(self, site: Site, known: Entry) -> list[str]:
        """What the mode of a call may be; a default that is not given stands behind the name: `mode=w`."""
        name, _, default = known.text("mode").partition("=")
        given = argument(site.node, 1, name) if name else None
        if given is None:
            return [default]
        values = self._names.site_values(given, site)
        return [
            value.value for value in values if isinstance(value, Literal) and isinstance(value.value, str)
        ]

    def _is_harmless(self, site: Site, known: Entry) -> bool:
        """Whether a call of a writer writes nothing: its path is not given, or a word says so."""
        path = known.text("path")
        missing = path and argument(site.node, 0, path) is None
        return bool(missing) or any(
            word.arg == known.text("unless") for word in site.node.keywords if word.arg
        )

    # What is not known

    @cached_property
    def left(self) -> dict[str, list[Site]]:
        """The calls that act by their names, of libraries that nothing is known of, by their packages.

        Nothing of what they give is used, and every rank makes them.
        """
        found: dict[str, list[Site]] = {}
        for site in self._script.sites:
            node = site.statement.node
            alone = isinstance(node, ast.Expr) and node.value is site.node
            if alone and site.name.startswith(_ACTING_NAMES) and not self._horovod.site_on_root(site):
                for package in self._unknown_packages(site):
                    found.setdefault(package, []).append(site)
        return found

    def _unknown_packages(self, site: Site) -> Iterator[str]:
        """The packages of what a call may call, if no entry and no table tells of it."""
        for value in self._names.callee(site):
            name = value.name if isinstance(value, Library) else ""
            if isinstance(value, Member) and isinstance(value.owner, Instance):
                name = f"{value.owner.cls}.{value.name}"
                if value.name in tables.ROOT_ONLY_METHODS:
                    continue
            package = name.partition(".")[0]
            known = package in _KNOWN or package in sys.stdlib_module_names or name in tables.WRITING
            if package and not known and not self._libraries.tells_of(package):
                yield package

    # What goes beyond this machine, or runs other programs

    def _acts_outside(self, site: Site, known: Entry) -> bool:
        """Whether a call, of which nothing is used, does what must be done once."""
        node = site.statement.node
        if not (isinstance(node, ast.Expr) and node.value is site.node):
            return False
        begins = known.listed("begins")
        if begins:
            return any(text.lstrip().lower().startswith(begins) for text in self._texts(site))
        return not known.flag("with_path") or not self._places_of(site).isdisjoint(self._written)

    def _texts(self, site: Site) -> Iterator[str]:
        given = argument(site.node, 0)
        for value in self._names.site_values(given, site) if given is not None else ():
            if isinstance(value, Literal) and isinstance(value.value, str):
                yield value.value

    @cached_property
    def _written(self) -> frozenset[str]:
        """The paths that calls of this script write, as words and as names."""
        found: set[str] = set()
        for site in self._script.sites:
            if self._is_write(site):
                found.update(self._places_of(site))
        return frozenset(found)

    def _is_write(self, site: Site) -> bool:
        """Whether a call writes what it is given or called on, by its name or by its library's entry."""
        if site.name in tables.WRITING_METHODS and _is_method(site):
            return site.name not in ("summary", "load_weights")
        if site.name not in tables.ROOT_ONLY_NAMES | self.names:
            return False
        named = self._names.full_names(site.node.func, site.scope, site.statement)
        writes = not named.isdisjoint((*tables.WRITING, *tables.OPENING))
        return writes or self._libraries.called(site, Role.WRITER, Role.WRITER_OBJECT, Role.MOVES) is not None

    def _places_of(self, site: Site) -> set[str]:
        """The words and names in what a call is given, and what it is called on."""
        given = arguments(site.node)
        if isinstance(site.node.func, ast.Attribute):
            given = [*given, site.node.func.value]
        found: set[str] = set()
        for part in chain.from_iterable(map(ast.walk, given)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                found.update(word for word in part.value.replace("=", " ").split() if len(word) > 2)
            elif isinstance(part, ast.Name | ast.Attribute) and (name := dotted(part)) not in ("", "self"):
                if not self._names.member_of_library(part):
                    found.add(name)
        return found


# The methods of paths that move what is there, and how many arguments they take.
_MOVING = {"rename": 1, "replace": 1, "unlink": 0, "symlink_to": 1, "hardlink_to": 1, "rmdir": 0}
_PATH_WORDS = frozenset({"missing_ok", "target_is_directory"})
_ACTING_NAMES = (
    "save", "write", "to_", "dump", "export", "upload", "push", "log", "report", "track", "send", "add_",
)  # fmt: skip
# Libraries whose members with such names other tables tell of, or which act on nothing.
_KNOWN = tables.PURE_LIBRARIES | {"horovod", "tensorflow_datasets", "builtins", "rich", "click", "joblib"}


def _bound_by(statement: Statement) -> set[str]:
    """The names that a `with` statement binds by itself."""
    assert isinstance(statement.node, ast.With)
    return {
        each.optional_vars.id for each in statement.node.items if isinstance(each.optional_vars, ast.Name)
    }


def _is_method(site: Site) -> bool:
    return isinstance(site.node.func, ast.Attribute)
