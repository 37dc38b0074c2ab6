"""Protocols through which the names of one script query the linked scripts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from trainshift.python.names.memo import Memo
from trainshift.python.names.occurrence import Occurrence, Step
from trainshift.python.names.values import Value, Values
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    AttributeBinding,
    Binding,
    ChunkSyntax,
    ItemBinding,
    Scope,
    Site,
    Slot,
    Statement,
)
from trainshift.python.syntax.code import Code, Runs


class LinkedNames(Protocol):
    """The interface to one script's names, for its own parts and for other scripts."""

    @property
    def memo(self) -> Memo:
        """The known answers of all linked scripts."""

    @property
    def possible_heirs(self) -> list[Scope]:
        """The classes of the script with a base that is certainly not a library's."""

    @property
    def assigned_attributes(
        self,
    ) -> tuple[dict[tuple[Scope | None, str], list[Binding]], dict[str, list[AttributeBinding]]]:
        """The assignments to attributes in the script: to those of ``self``, by class and attribute, and
        to others.
        """

    def values(self, node: ast.expr, scope: Scope, statement: Statement | None = None) -> Values:
        """The possible values of an expression."""

    def site_values(self, node: ast.expr, site: Site) -> Values:
        """The possible values of an expression inside a call."""

    def callee(self, site: Site) -> Values:
        """The possible values of the called expression."""

    def full_names(self, node: ast.expr, scope: Scope, statement: Statement | None = None) -> frozenset[str]:
        """The full library names that an expression may resolve to."""

    def bindings(self, at: Occurrence) -> list[Binding]:
        """The bindings that may give a name or an attribute its value."""

    def elements(self, at: Occurrence, path: tuple[Slot, ...] = ()) -> Step:
        """The step to the elements of an iterable, unpacked along a path."""

    def unpacked(self, at: Occurrence, path: tuple[Slot, ...]) -> Step:
        """The step to the part of a value that unpacking along a path takes."""

    def item(self, at: Occurrence) -> Step:
        """The step to the element that a subscript selects."""

    def additions(self, at: Occurrence) -> Iterator[ItemBinding]:
        """Yield the later additions to the container of a name."""

    def bound(self, binding: Binding) -> Values:
        """The values of one binding."""

    def attribute_of(self, value: Value, name: str) -> Values:
        """The possible values of an object's attribute."""

    @property
    def ancestry(self) -> Callable[[Scope], list[Scope | str]]:
        """The function from a class to itself and all its bases, the library's by name."""

    def source_of(self, binding: Binding) -> Step:
        """The sources of a binding's value, as occurrences."""

    @property
    def steps_back(self) -> Callable[[Occurrence], Step | None]:
        """The function from an expression to the possible sources of its value, one step back."""

    @property
    def lookup(self) -> Callable[[str, Scope, Statement | None], tuple[Scope | None, list[Binding]]]:
        """The function that finds the bindings of a name where it is read, and the scope that owns them."""

    @property
    def callers(self) -> Callable[[Scope], tuple[list[Site], bool]]:
        """The calls that may run a function, and whether it may also be run from elsewhere."""

    @property
    def calls_by_name(self) -> Callable[[str, Scope], tuple[list[Site], bool]]:
        """The script's calls that may run a function, and whether it may be used otherwise than called."""


class LinkedScript(Protocol):
    """A script, from the point of view of its names."""

    @property
    def code(self) -> Code: ...
    @property
    def facts(self) -> Sequence[ChunkSyntax]: ...
    @property
    def imports(self) -> Sequence[Binding]: ...
    @property
    def path(self) -> str: ...
    @property
    def names(self) -> LinkedNames: ...
    @property
    def workspace(self) -> LinkedFiles | None: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def users(self) -> Sequence[LinkedScript]: ...
    @property
    def linked(self) -> Sequence[LinkedScript]: ...
    @property
    def star_paths(self) -> Sequence[str]: ...
    @property
    def top_index(self) -> Mapping[Statement, int]: ...
    @property
    def module_bindings(self) -> Mapping[str, list[Binding]]: ...
    def home(self, scope: Scope) -> LinkedScript: ...
    def site_of(self, call: ast.Call) -> Site: ...
    def sites_named(self, *names: str) -> Iterator[Site]: ...
    def loads(self, name: str) -> int: ...
    def attribute_bindings(self, attribute: str) -> Iterator[AttributeBinding]: ...
    def item_bindings(self, name: str) -> Iterator[ItemBinding]: ...
    def statement_span(self, statement: Statement) -> Span: ...


class LinkedFiles(Protocol):
    """The files around a script, from the point of view of its names."""

    def script(self, path: str) -> LinkedScript | None: ...
    def imported_in(self, script: LinkedScript, facts: ChunkSyntax) -> Iterator[str]: ...
    def below(self, path: str, name: str) -> str: ...
    def locate(self, script: LinkedScript, full_name: str) -> tuple[str, tuple[str, ...]]: ...
