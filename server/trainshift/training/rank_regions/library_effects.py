"""Library effects: the library calls with effects outside the process, by the libraries' entries.

Only one rank should write, move or send a file, start an experiment's run, or have another program do so.
Conversions and hazards both use this fact.
"""

from __future__ import annotations

import ast
from itertools import chain

from trainshift.core.libraries import Libraries, path_returned
from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.libraries.entries import ACTING, Entry, Role
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import Display, Instance, Literal, Member, Value, texts
from trainshift.python.syntax.chunk_syntax import (
    Site,
    Statement,
    argument,
    arguments,
    dotted,
    hides_arguments,
    is_alone,
    last_name,
)
from trainshift.training.uniformity.uniformity import Uniformity

# Exceptions raised if a folder already exists.
_FORGIVING = ("FileExistsError", "OSError", "EnvironmentError", "IOError", "Exception", "BaseException")

_WRITING = "wax+"
_READING_TOO = "a+"
_SHELL = "shell"
"""The package of the programs that a command line names."""


class Acting:
    """The calls of one script into libraries that act outside the process."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._on_rank = program.fact(Uniformity).on_rank
        self._libraries = program.fact(Libraries)

    def entry(self, value: Value) -> Entry | None:
        """The entry of a value that writes, sends or tracks; None for any other value.

        A method of a writer has the entry of its object.
        """
        known = self._libraries.of(value)
        if known is None and isinstance(value, Member) and isinstance(value.owner, Instance):
            known = self._libraries.entry(value.owner.cls)
            if known is None or known.role is not Role.WRITER_OBJECT or known.text("elsewhere"):
                return None
        return known if known is not None and known.role in ACTING else None

    def acts(self, site: Site, value: Value, known: Entry) -> bool:
        """Return whether a call does something that only one rank may do, judged by its visible arguments."""
        if known.role is Role.WRITER:
            harmless = self._is_harmless(site, known) or (
                known.flag("folder") and _is_forgiven(site.statement)
            )
            return not harmless
        if known.role is Role.WRITER_OBJECT:
            owner = value.owner if isinstance(value, Member) else None
            made = self._script.site_of(owner.node) if isinstance(owner, Instance) else site
            return self.opens_for_writing(made, known)
        if self._is_own_file(site):
            return False
        return known.role is not Role.OUTSIDE or (is_alone(site) and self.acts_outside(site, known))

    def _is_own_file(self, site: Site) -> bool:
        """Return whether a call writes to a temporary file, as it is given no path."""
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        returned = (path_returned(name, site.node) for name in names)
        return any(each is not None and each.is_first and each.node is None for each in returned)

    # Writers

    def opens_for_writing(self, site: Site, known: Entry) -> bool:
        """Return whether a call opens an object for writing, judged by its visible mode and path."""
        missing = known.text("path") and argument(site.node, *known.path) is None
        if missing and not hides_arguments(site.node):
            return False
        return not known.text("mode") or any(set(each) & set(_WRITING) for each in self._modes(site, known))

    def reads_too(self, site: Site, known: Entry) -> bool:
        """Return whether an object that a call opens for writing may also be read."""
        return any(set(each) & set(_READING_TOO) and "w" not in each for each in self._modes(site, known))

    def _modes(self, site: Site, known: Entry) -> list[str]:
        """Return the modes in which a call may open; the entry has the default after the name: `mode=w`."""
        name, _, default = known.text("mode").partition("=")
        given = argument(site.node, 1, name) if name else None
        if given is None:
            return [default]
        return texts(self._names.site_values(given, site))

    @staticmethod
    def _is_harmless(site: Site, known: Entry) -> bool:
        """Return whether a call of a writer writes nothing: it has no path, or a keyword says so."""
        missing = known.text("path") and argument(site.node, *known.path) is None
        return bool(missing) or any(
            word.arg == known.text("unless") for word in site.node.keywords if word.arg
        )

    # Trackers

    def is_quiet(self, site: Site, known: Entry) -> bool:
        """Return whether an argument silences a tracker by rank, or a call silences it on all other ranks."""
        name, before = known.text("argument"), known.text("before")
        given = argument(site.node, None, name) if name else None
        places = [(given, site)] if given is not None else []
        for other in self._script.sites_named(before) if before else ():
            places += [(each, other) for each in arguments(other.node)]
        return any(self._on_rank(of_call(at).part(each)) for each, at in places)

    # Calls that act beyond this machine, or run other programs

    def acts_outside(self, site: Site, known: Entry) -> bool:
        """Return whether a call acts outside this program, which only one rank may do."""
        if begins := known.listed("begins"):
            given = argument(site.node, 0)
            shown = texts(self._names.site_values(given, site)) if given is not None else []
            return any(text.lstrip().lower().startswith(begins) for text in shown)
        if not known.flag("command"):
            return True
        return self._is_command_for_one(site) or not self._places_of(site).isdisjoint(self._written)

    def _is_command_for_one(self, site: Site) -> bool:
        """Return whether a command line runs a program that one rank alone should run."""
        words = self.command(site)
        name, known = "", None
        for word in words:
            below = f"{name}.{word.lstrip('-')}" if name else word.rpartition("/")[2]
            known = entries.entry(f"{_SHELL}.{below}")
            if known is None and (word.startswith("-") or "=" in word or word == "sudo"):
                continue
            name = below
            if known is not None or not entries.is_known(f"{_SHELL}.{name}"):
                break
        return known is not None and (not known.flag("remote") or is_remote(words[-1]))

    def command(self, site: Site) -> list[str]:
        """Return the words of the command line that a call runs, as far as the script shows them."""
        given = argument(site.node, 0, "args")
        if given is None:
            return []
        parts: list[ast.expr] = [given]
        shown = [each for each in self._names.site_values(given, site) if isinstance(each, Display)]
        for display in shown[:1]:
            if isinstance(display.node, ast.List | ast.Tuple):
                parts = display.node.elts
        return [word for part in parts for word in (self._words(part, site) or [""])]

    def _words(self, part: ast.expr, site: Site) -> list[str]:
        pieces = []
        for each in ast.walk(part) if isinstance(part, ast.JoinedStr | ast.BinOp) else (part,):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                pieces.append(each.value)
            elif isinstance(each, ast.Name):
                values = self._names.site_values(each, site)
                pieces += [str(value.value) for value in values if isinstance(value, Literal)][:1]
        return " ".join(pieces).split()

    @cached_property
    def _written(self) -> frozenset[str]:
        """The paths that this script writes, as words and as names."""
        found: set[str] = set()
        for site in self._script.sites:
            if self._is_write(site):
                found.update(self._places_of(site))
        return frozenset(found)

    def _is_write(self, site: Site) -> bool:
        """Return whether a call writes its arguments or its object, judged by its name or its library's
        entry.
        """
        if site.name in named("writing") and is_method(site):
            return site.name not in ("summary", "load_weights")
        if site.name not in self._libraries.for_root:
            return False
        acting = (Role.WRITER, Role.WRITER_OBJECT, Role.MOVES, Role.OPENER)
        return self._libraries.called(site, *acting) is not None

    def _places_of(self, site: Site) -> set[str]:
        """The words and names in a call's arguments and in its receiver."""
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


def is_method(site: Site) -> bool:
    """Return whether the called function is an attribute: ``table.save``."""
    return isinstance(site.node.func, ast.Attribute)


def is_remote(place: str) -> bool:
    """Return whether a place in a command line is on another machine: ``gs://bucket``, ``host:folder``."""
    return ":" in place


def _is_forgiven(statement: Statement) -> bool:
    """Return whether a statement is in a `try` that handles its failure if another rank was faster."""
    below = statement
    for above in statement.ancestors():
        if isinstance(above.node, ast.Try) and below.branch == "body":
            for handler in above.node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                if any(kind is None or last_name(kind) in _FORGIVING for kind in kinds):
                    return True
        below = above
    return False
