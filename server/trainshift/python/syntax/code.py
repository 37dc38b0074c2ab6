"""The syntax of one file, looked up over all of its chunks.

Nothing here depends on the meaning of names, so one reading serves every program that contains the file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from trainshift.python.lazy import cached_property
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunk_syntax import (
    AttributeBinding,
    Binding,
    ChunkSyntax,
    ItemBinding,
    Scope,
    Site,
    Statement,
)
from trainshift.python.syntax.chunks import Chunk

T = TypeVar("T")
B = TypeVar("B", AttributeBinding, ItemBinding)
Runs: TypeAlias = Callable[[Scope, "Statement | None"], bool]
"""Returns whether the code of a scope may run, and a statement in it, if one is given."""
_MADE_THERE = (ast.Call, ast.Constant)


class Code:
    """The text of a file, or of several, its `pieces`, and indices over their facts.

    Indices of statements, calls, scopes, attributes and items leave out code that does not run, according to
    `runs`.
    """

    def __init__(self, source: Source, pieces: list[Chunk], runs: Runs | None = None) -> None:
        self.source = source
        self.pieces = pieces
        self._runs = runs

    def may_run(self, scope: Scope, statement: Statement | None) -> bool:
        """Return whether code in a scope, at a statement if given, may run."""
        return self._runs is None or self._runs(scope, statement)

    @cached_property
    def chunks(self) -> list[tuple[int, str]]:
        """The offset and the text of every piece."""
        return [(piece.offset, piece.text) for piece in self.pieces]

    @cached_property
    def facts(self) -> list[ChunkSyntax]:
        """The facts of every piece."""
        return [piece.facts for piece in self.pieces]

    @cached_property
    def offsets(self) -> dict[int, int]:
        """The offset of every piece, by the identity of its facts."""
        return {id(piece.facts): piece.offset for piece in self.pieces}

    @cached_property
    def top(self) -> list[Statement]:
        """The module's own statements, in order."""
        return [statement for facts in self.facts for statement in facts.top]

    @cached_property
    def top_index(self) -> dict[Statement, int]:
        """The place of each of the module's own statements."""
        return {statement: index for index, statement in enumerate(self.top)}

    @cached_property
    def statements(self) -> list[Statement]:
        """Every statement, in text order, at any depth."""
        found = [statement for facts in self.facts for statement in facts.statements]
        runs = self._runs
        return found if runs is None else [each for each in found if runs(each.scope, each)]

    @cached_property
    def sites(self) -> list[Site]:
        """Every call."""
        found = [site for facts in self.facts for site in facts.sites]
        runs = self._runs
        return found if runs is None else [each for each in found if runs(each.scope, each.statement)]

    @cached_property
    def sites_by_name(self) -> dict[str, list[Site]]:
        """Every call, by the last part of its callee."""
        named: dict[str, list[Site]] = {}
        for site in self.sites:
            named.setdefault(site.name, []).append(site)
        return named

    @cached_property
    def sites_by_statement(self) -> dict[Statement, list[Site]]:
        """The calls in each statement itself, not in its blocks."""
        found: dict[Statement, list[Site]] = {}
        for site in self.sites:
            found.setdefault(site.statement, []).append(site)
        return found

    @cached_property
    def sites_by_function(self) -> dict[Scope | None, list[Site]]:
        """The calls in each function, not in inner functions; None is for code outside."""
        found: dict[Scope | None, list[Site]] = {}
        for site in self.sites:
            found.setdefault(site.scope.function(), []).append(site)
        return found

    @cached_property
    def statements_by_function(self) -> dict[Scope | None, list[Statement]]:
        """The statements in each function, not in inner functions; None is for code outside."""
        found: dict[Scope | None, list[Statement]] = {}
        for statement in self.statements:
            found.setdefault(statement.scope.function(), []).append(statement)
        return found

    @cached_property
    def place_of(self) -> dict[Statement, int]:
        """The place of each statement in text order."""
        return {statement: place for place, statement in enumerate(self.statements)}

    def sites_in(self, statements: Iterable[Statement]) -> Iterator[Site]:
        """The calls in some statements themselves, not in their blocks."""
        return (site for each in statements for site in self.sites_by_statement.get(each, ()))

    @cached_property
    def site_places(self) -> dict[Site, int]:
        """The place of each call in the order of all."""
        return {site: place for place, site in enumerate(self.sites)}

    @cached_property
    def sites_by_node(self) -> dict[ast.Call, Site]:
        """Every call, by its node."""
        return {site.node: site for site in self.sites}

    @cached_property
    def given(self) -> dict[Site, list[ast.expr]]:
        """The arguments that are neither calls nor constants, by call."""
        found: dict[Site, list[ast.expr]] = {}
        for site in self.sites:
            given = [each for each in site.node.args if not isinstance(each, _MADE_THERE)]
            for word in site.node.keywords:
                if not isinstance(word.value, _MADE_THERE):
                    given.append(word.value)
            if given:
                found[site] = given
        return found

    @cached_property
    def scopes(self) -> list[Scope]:
        """Every function and class scope."""
        found = [scope for facts in self.facts for scope in facts.scopes]
        runs = self._runs
        return found if runs is None else [each for each in found if runs(each, each.statement)]

    @cached_property
    def derived_classes(self) -> list[Scope]:
        """The classes that have a base."""
        return [each for each in self.scopes if isinstance(each.node, ast.ClassDef) and each.node.bases]

    @cached_property
    def imports(self) -> list[Binding]:
        """Every name that an import binds, at any depth."""
        return [binding for facts in self.facts for binding in facts.imports]

    @cached_property
    def bound_values(self) -> list[tuple[str, ast.expr]]:
        """Every assigned name or attribute, with the assigned value."""
        return [named for facts in self.facts for named in facts.once(bound_values)]

    @property
    def bound_elements(self) -> list[tuple[str, ast.expr]]:
        """Every name that the script binds to elements one after another, with the iterable."""
        return [named for facts in self.facts for named in facts.once(bound_elements)]

    @cached_property
    def renamed_imports(self) -> list[tuple[str, str]]:
        """The new and the old name (its last part) of every ``import ... as``."""
        return [
            (alias.asname, alias.name.rpartition(".")[2])
            for alias in (binding.target for binding in self.imports)
            if isinstance(alias, ast.alias) and alias.asname
        ]

    @cached_property
    def module_bindings(self) -> dict[str, list[Binding]]:
        """The bindings of each name of the module, including functions' `global` bindings."""
        merged: dict[str, list[Binding]] = {}
        for facts in self.facts:
            for name, bindings in facts.module.bindings.items():
                merged.setdefault(name, []).extend(bindings)
        for scope in self.scopes:
            for name in scope.declared_global:
                merged.setdefault(name, []).extend(scope.bindings.get(name, ()))
        return merged

    @cached_property
    def star_imports(self) -> list[str]:
        """The modules that the script imports by ``*``."""
        bindings = self.module_bindings.get("*", [])
        modules = [binding.full_name.removesuffix("*") for binding in bindings]
        return [module.rstrip(".") or module for module in modules]

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every identifier of the script, including attributes; a fresh name must avoid them."""
        return frozenset().union(*(names for each in self.facts for names in (each.bound_names, each.loads)))

    @cached_property
    def variables(self) -> frozenset[str]:
        """Every name that some scope binds; a fresh variable must avoid them."""
        return self.local_names.union(*(facts.module.bindings for facts in self.facts))

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Every name that some scope below the module's binds."""
        return frozenset().union(*(facts.once(_local_names) for facts in self.facts))

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """Every name of a variable or an attribute that something in the script binds."""
        return self.variables.union(*(facts.attributes for facts in self.facts))

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Every identifier, and the names under which other files define the imported objects."""
        return self.identifiers.union(old for _, old in self.renamed_imports)

    @cached_property
    def loads(self) -> dict[str, int]:
        """The number of reads of each name, as a name or as an attribute."""
        found: dict[str, int] = {}
        for facts in self.facts:
            for name, number in facts.loads.items():
                found[name] = found.get(name, 0) + number
        return found

    @cached_property
    def member_loads(self) -> dict[str, dict[str, int]]:
        """The number of reads of each attribute on each name, by the attribute."""
        found: dict[str, dict[str, int]] = {}
        for facts in self.facts:
            for (base, attribute), number in facts.member_loads.items():
                of_bases = found.setdefault(attribute, {})
                of_bases[base] = of_bases.get(base, 0) + number
        return found

    @cached_property
    def attributes(self) -> dict[str, list[AttributeBinding]]:
        """Every ``base.attribute = ...``, by the attribute."""
        return self._that_run(_merged(facts.attributes for facts in self.facts))

    @cached_property
    def items(self) -> dict[str, list[ItemBinding]]:
        """Every ``base[...] = ...`` or ``base.append(...)``, by the last part of the base."""
        return self._that_run(_merged(facts.items for facts in self.facts))

    def _that_run(self, bound: dict[str, list[B]]) -> dict[str, list[B]]:
        """The bindings of attributes or items in code that runs, by name."""
        runs = self._runs
        if runs is None:
            return bound
        left = {
            name: [each for each in given if runs(each.binding.scope, each.binding.statement)]
            for name, given in bound.items()
        }
        return {name: given for name, given in left.items() if given}

    @cached_property
    def items_by_key(self) -> dict[object, list[ItemBinding]]:
        """Every ``base["key"] = ...`` with a literal key, by the key."""
        found: dict[object, list[ItemBinding]] = {}
        for items in self.items.values():
            for item in items:
                if isinstance(item.key, ast.Constant):
                    found.setdefault(item.key.value, []).append(item)
        return found


def _merged(parts: Iterable[dict[str, list[T]]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for part in parts:
        for name, values in part.items():
            found.setdefault(name, []).extend(values)
    return found


def bound_values(facts: ChunkSyntax) -> list[tuple[str, ast.expr]]:
    """Every name or attribute that a chunk assigns, with the assigned value."""
    named = [item for scope in (facts.module, *facts.scopes) for item in scope.bindings.items()]
    held = [(name, [each.binding for each in given]) for name, given in facts.attributes.items()]
    return [
        (name, each.value)
        for name, bindings in (*named, *held)
        for each in bindings
        if each.kind == "value" and each.value
    ]


def bound_elements(facts: ChunkSyntax) -> list[tuple[str, ast.expr]]:
    """Every name that a chunk binds to elements in turn, with the iterable."""
    return [
        (name, each.value)
        for scope in (facts.module, *facts.scopes)
        for name, bindings in scope.bindings.items()
        for each in bindings
        if each.kind == "element" and each.value
    ]


def _local_names(facts: ChunkSyntax) -> set[str]:
    return {name for scope in facts.scope_of.values() for name in scope.bindings}
