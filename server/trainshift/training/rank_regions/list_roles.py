"""Roles: the effects of a `fit`'s callbacks or a session's hooks, and their ranks (spec.md 5.8)."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Class, Instance, Literal, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, last_name
from trainshift.python.syntax.precedence import does_more
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.rank_regions.own_paths import OwnPaths
from trainshift.training.uniformity.list_members import Members, members


class Role(Enum):
    """The purpose of a callback or a hook."""

    STEERS = "steers training, or keeps what the script may read"
    WRITES = "shows or writes something"
    OWN = "is of a class of the script's own"
    UNKNOWN = "is unknown"
    HOROVOD = "is Horovod's own"


class Member(Struct, frozen=True, eq=False):
    """One callback or hook of a list, its role, and its class as reports name it.

    With `may_write`, it writes in some cases, although that is not its role; `says` is the note in its
    library's entry.
    """

    element: Occurrence
    role: Role
    name: str
    may_write: bool = False
    reads_metrics: bool = False
    stops_in_epoch: bool = False
    says: str = ""


class Listed:
    """The list argument of one call: `given` is its expression, None if there is none."""

    given: ast.expr | None
    found: Members
    members: list[Member]

    def named(self, *roles: Role) -> list[str]:
        """The names of the members with one of `roles`, each once."""
        return list(dict.fromkeys(each.name for each in self.members if each.role in roles))

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The names of members with a note in their libraries' entries, and the notes."""
        return [(each.name, each.says) for each in self.members if each.says]

    def has(self, name: str) -> bool:
        """Return whether a member of Horovod's own is among them."""
        return any(each.role is Role.HOROVOD and each.name == name for each in self.members)

    @property
    def writes_alone(self) -> bool:
        """Return whether the argument is one object instead of a list, and belongs to rank 0 only."""
        return any(each.role is Role.WRITES and each.element.node is self.given for each in self.members)


class Lists(ABC):
    """Reads the lists of one script's callbacks or hooks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @abstractmethod
    def _role_of_class(self, name: str) -> Role:
        """The role of a class of a library, by its canonical name."""

    @abstractmethod
    def _own_role(self, cls: Scope, bases: frozenset[str]) -> Role:
        """The role of a class of the script, with these bases in libraries."""

    def _stands_in_for(self, value: Value) -> str:
        """The Horovod callback that an object of the script replaces; "" for none."""
        return ""

    def _role(self, value: Value) -> Role:
        """The role of one possible value of a member."""
        if isinstance(value, Instance):
            name = api.canonical(value.cls) or value.cls
            if name.startswith("horovod."):
                return Role.HOROVOD
            return self._role_of_class(name)
        if isinstance(value, UserInstance):
            if self._stands_in_for(value):
                return Role.HOROVOD
            return self._own_role(value.scope, frozenset(self._names.library_bases(value.scope)))
        return Role.UNKNOWN

    def _is_of_people(self, value: Value) -> bool:
        """Return whether the user's own library entries describe a value."""
        return isinstance(value, Instance) and self._program.fact(Libraries).is_own(value.cls)

    def _found(self, given: ast.expr | None, site: Site) -> Members:
        """The members of an argument; one object in place of a list is its only element."""
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return Members()
        found = members(self._script, given, site.scope, site.statement)
        if found.single:
            found.elements.append(Occurrence(given, site.scope, site.statement))
        return found

    def _member(self, element: Occurrence) -> Member:
        values = self._names.values(element.node, element.scope, element.statement)
        # ``debug and TensorBoard()`` may have no value at all. A substitute for a Horovod callback, for
        # runs without Horovod, needs nothing.
        values = frozenset(each for each in values if self._role(each) is Role.HOROVOD) or values
        roles = {self._role(each) for each in values if not isinstance(each, Literal)} or {Role.UNKNOWN}
        if any(self._is_of_people(each) for each in values):
            roles -= {Role.UNKNOWN}  # An imported name is judged by its conventional meaning.
        writes = Role.WRITES in roles
        role = roles.pop() if len(roles) == 1 else Role.UNKNOWN if Role.UNKNOWN in roles else Role.STEERS
        if role is Role.WRITES and does_more(element.node):
            role = Role.STEERS  # Every rank may need the names that it binds, or its awaits.
        names = sorted({name for each in values if (name := self._stands_in_for(each) or _class_name(each))})
        if not names:
            shown = element.node.func if isinstance(element.node, ast.Call) else element.node
            names = [last_name(shown) or ast.unparse(shown)]
        return Member(element, role, " or ".join(names), writes and role is not Role.WRITES)

    def _to_keep(self, listed: Listed) -> Iterator[Member]:
        """Yield the members that write, are in a list, and are not limited to rank 0 yet."""
        for member in listed.members:
            alone = member.element.node is listed.given
            if member.role is Role.WRITES and not alone and not self._is_kept(member.element):
                yield member

    def _is_kept(self, element: Occurrence) -> bool:
        statement = element.statement or element.scope.statement
        if statement is not None and self._program.fact(Horovod).expression_on_root(element.node, statement):
            return True
        values = self._names.values(element.node, element.scope, element.statement)
        made = [self._script.site_of(each.node) for each in values if isinstance(each, Instance)]
        return bool(made) and all(map(self._program.fact(OwnPaths).has, made))


def _class_name(value: Value) -> str:
    if isinstance(value, Instance):
        return value.cls.rpartition(".")[2]
    return value.scope.name if isinstance(value, UserInstance | Class) else ""
