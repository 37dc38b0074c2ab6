"""Readers: the uses of a dataset outside the training loops for which it is divided."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries.entries import prints
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.uses import parts_of
from trainshift.python.syntax.chunk_syntax import Binding, ChunkSyntax, Scope, Site, children, last_name
from trainshift.python.values.effects import Effect
from trainshift.training.datasets.pipelines import Node, Pipelines
from trainshift.training.loops.call_effects import Effects

# Functions that query a dataset without reading its elements.
_ASKING = ("len", "cardinality", "print", "type", "isinstance", "id", "options")
_ASKED = frozenset({"element_spec", "cardinality", "options"})


class _Read(Struct, frozen=True):
    """A read of a name or an attribute, and the expression around it."""

    at: Occurrence
    parent: ast.AST | None


class Readers:
    """The readers of the datasets of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._chunks: dict[ChunkSyntax, dict[str, list[_Read]]] = {}

    def others(self, node: Node, allowed: set[int]) -> Iterator[Occurrence]:
        """Yield the reads of a dataset, under any name, that are not among the `allowed` expressions."""

        def reading(of: Node) -> list[Node]:
            return [each for each in of.consumers if each.is_dataset or each.is_function]

        for each in reachable(reading(node), reading):
            if isinstance(each.at.node, ast.Subscript):
                yield each.at  # Its container may be read anywhere.
            for binding in each.bindings:
                yield from self._of_binding(binding, each, allowed)
            for function in each.called:
                yield from self._of_function(function, allowed)

    def is_read_alone(self, made: Collection[Site]) -> bool:
        """Return whether values of these calls reach the output of rank 0 only."""
        pipelines = self._program.fact(Pipelines)
        for site in self._script.sites if made else ():
            node = site.statement.node
            if not isinstance(node, ast.Expr) or node.value is not site.node or not self._is_of_root(site):
                continue
            above = {child: each for each in ast.walk(site.node) for child in children(each)}
            for part in ast.walk(site.node):
                if isinstance(part, ast.Name):
                    at = Occurrence(part, site.scope, site.statement)
                    if any(each.kind == "element" for each in self._names.bindings(at)):
                        continue
                    root = pipelines.read(at)
                    is_made = any(up.site in made for up in pipelines.upstream(root))
                    if root.is_dataset and is_made and not _only_asks(_Read(at, above.get(part))):
                        return True
        return False

    def _is_of_root(self, site: Site) -> bool:
        """Return whether a call prints or writes, which one rank does for all."""
        if any(map(prints, self._names.full_names(site.node.func, site.scope, site.statement))):
            return True
        deed = self._program.fact(Effects).of_call(site)
        return deed is not None and deed.effect is Effect.FILES

    def _of_binding(self, binding: Binding, node: Node, allowed: set[int]) -> Iterator[Occurrence]:
        name = last_name(node.at.node)
        imported = binding.kind == "import"
        names = {name, binding.full_name.rpartition(".")[2]} if imported else {name}
        for each in sorted(names):
            for read in self._reads(each):
                if id(read.at.node) in allowed or _only_asks(read):
                    continue
                if imported or binding in self._names.bindings(read.at):
                    yield read.at
        if binding.path and isinstance(binding.value, ast.Call):
            # A function's several results are unpacked here, and perhaps elsewhere too.
            for function in self._names.called_functions(self._script.site_of(binding.value)):
                yield from self._of_function(function, {*allowed, id(binding.value)})

    def _of_function(self, function: Scope, allowed: set[int]) -> Iterator[Occurrence]:
        """Yield the calls of a function that are not among the allowed ones."""
        sites, elsewhere = self._names.callers(function)
        for site in sites:
            if id(site.node) not in allowed:
                yield Occurrence(site.node, site.scope, site.statement, site)
        if elsewhere and function.statement is not None:
            yield Occurrence(ast.Name(function.name, ast.Load()), function, function.statement)

    def _reads(self, name: str) -> Iterator[_Read]:
        for facts in self._script.facts:
            if facts.loads.get(name):
                if facts not in self._chunks:
                    self._chunks[facts] = _reads_in(facts)
                yield from self._chunks[facts].get(name, ())


def _reads_in(facts: ChunkSyntax) -> dict[str, list[_Read]]:
    """The names and attributes that a chunk reads."""
    found: dict[str, list[_Read]] = {}
    for statement in facts.statements:
        parts = list(parts_of(statement))
        above = {child: node for node, _, _ in parts for child in children(node)}
        for node, scope, _ in parts:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                read = _Read(Occurrence(node, scope, statement), above.get(node))
                found.setdefault(last_name(node), []).append(read)
    return found


def _only_asks(read: _Read) -> bool:
    """Return whether a read only needs the length or the type of a dataset, and no element."""
    parent = read.parent
    if isinstance(parent, ast.Call):
        return last_name(parent.func) in _ASKING and read.at.node is not parent.func
    return isinstance(parent, ast.Attribute) and parent.attr in _ASKED
