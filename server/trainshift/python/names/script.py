"""A script: source, statements, scopes and resolved names of one version of one file."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from trainshift.python.lazy import cached_property
from trainshift.python.names.resolver import PASSING_ON, Resolver
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.chunk_syntax import (
    AttributeBinding,
    Binding,
    ChunkSyntax,
    ItemBinding,
    Scope,
    Site,
    Statement,
    last_name,
)
from trainshift.python.syntax.chunks import ChunkCache, ParseFailure, parse
from trainshift.python.syntax.code import Code, Runs
from trainshift.python.syntax.fresh_names import fresh_name

if TYPE_CHECKING:
    from trainshift.python.names.workspace import Workspace


def all_run(scope: Scope, statement: Statement | None) -> bool:
    """Return true: all code of a single file may run."""
    return True


class HasScript(Protocol):
    """An object that analyses one script."""

    script: Script


class Script:
    """One version of a script. All of its spans are in code points of `source.text`.

    With a `workspace` its names are followed into the files that it imports; `path` is its own file.
    """

    def __init__(self, code: Code, workspace: Workspace | None = None, path: str = "") -> None:
        self.code = code
        self.source = code.source
        self.workspace = workspace
        self.path = path
        self.names = Resolver(self, workspace.memo if workspace is not None else None)

    @property
    def chunks(self) -> list[tuple[int, str]]:
        """The offset and the text of every chunk."""
        return self.code.chunks

    @property
    def facts(self) -> list[ChunkSyntax]:
        """The facts of every chunk."""
        return self.code.facts

    @property
    def top(self) -> list[Statement]:
        """The module's own statements, in order."""
        return self.code.top

    @property
    def top_index(self) -> dict[Statement, int]:
        """The place of each of the module's own statements."""
        return self.code.top_index

    @property
    def statements(self) -> list[Statement]:
        """Every statement, in text order, at any depth."""
        return self.code.statements

    @property
    def sites(self) -> list[Site]:
        """Every call."""
        return self.code.sites

    @property
    def scopes(self) -> list[Scope]:
        """Every function and class scope."""
        return self.code.scopes

    @property
    def imports(self) -> list[Binding]:
        """Every name that an import binds, at any depth."""
        return self.code.imports

    @property
    def module_bindings(self) -> dict[str, list[Binding]]:
        """The bindings of each name of the module, including `global` ones in functions."""
        return self.code.module_bindings

    @property
    def identifiers(self) -> frozenset[str]:
        """Every identifier of the script, including attributes; a fresh name must avoid them."""
        return self.code.identifiers

    def fresh(self, base: str, ours: Iterable[str] = (), taken: Iterable[str] = ()) -> str:
        """`base`, or `base_2`, ...: the first that is not `taken`, and not used by the script except as one
        of `ours`.
        """
        taken = self.identifiers.difference(ours).union(taken)
        return fresh_name(base, taken, first=2)

    def first_free(self, *names: str, ours: Iterable[str] = (), taken: Iterable[str] = ()) -> str:
        """The first of some names that is free in the sense of `fresh`; else the first one with a number."""
        fresh = [self.fresh(name, ours, taken) for name in names]
        return next((each for each, name in zip(fresh, names, strict=True) if each == name), fresh[0])

    def siblings(self, statement: Statement) -> tuple[list[Statement], int]:
        """The whole block around the statement, and the statement's index in it.

        A statement's own `block` ends with its chunk, which is only a part of the module.
        """
        if statement.parent is None:
            home = self.home(statement.scope)
            return home.top, home.top_index[statement]
        return statement.block, statement.index

    def following(self, statement: Statement) -> Statement | None:
        """The next statement of the same block."""
        block, index = self.siblings(statement)
        return block[index + 1] if index + 1 < len(block) else None

    def preceding(self, statement: Statement) -> Statement | None:
        """The statement before, in the same block."""
        block, index = self.siblings(statement)
        return block[index - 1] if index else None

    def sites_named(self, *names: str) -> Iterator[Site]:
        """Every call whose callee's last part is one of `names`."""
        for name in names:
            yield from self.code.sites_by_name.get(name, ())

    def called_name(self, site: Site) -> str:
        """The name of a called function in its own module, if an import renames it."""
        return self._renamed.get(site.name, site.name) if isinstance(site.node.func, ast.Name) else site.name

    def sites_called(self, *names: str) -> Iterator[Site]:
        """Yield the calls of functions with one of some names, including renamed imports."""
        yield from self.sites_named(*names, *(given for given, own in self._renamed.items() if own in names))

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """The original names behind names that imports rename."""
        return {
            binding.target.asname: binding.full_name.rpartition(".")[2]
            for binding in self.imports
            if isinstance(binding.target, ast.alias) and binding.target.asname
        }

    def sites_calling(self, last_names: Collection[str]) -> list[Site]:
        """The calls that may be of a library's member with one of these last names, in text order.

        Only the spelling decides: a call of another name does not count, unless a linked script binds that
        name.
        """
        own = self._bound_names
        return [
            site
            for site in self.sites
            if site.name in last_names
            or site.name in own
            or (not site.name and self.may_be_callable(site.node.func))
        ]

    def may_be_callable(self, node: ast.expr) -> bool:
        """Return whether an unnamed callee may be a function of a library, or of the script.

        ``Dense(8)(x)`` calls an object: only functions that return their argument, and those of the script,
        may return anything else.
        """
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        return not name or name in PASSING_ON or name in self._bound_names

    def may_run(self, call: ast.Call) -> bool:
        """Return whether a call may be of a function of this script, or of a linked one, by its name."""
        name = last_name(call.func)
        return name in self._bound_names if name else self.may_be_callable(call.func)

    @cached_property
    def _bound_names(self) -> frozenset[str]:
        """The names that the script, or a linked script, binds."""
        scripts = [self] if self.workspace is None else [self, *self.workspace.reachable]
        return frozenset().union(*(script.code.bound_names for script in scripts))

    def site_of(self, call: ast.Call) -> Site:
        """The site of a call node of this script, or of a linked one."""
        site = self.code.sites_by_node.get(call)
        if site is None and self.workspace is not None:
            found = (script.code.sites_by_node.get(call) for script in self.workspace.scripts)
            site = next((each for each in found if each is not None), None)
        if site is None:
            raise KeyError(f"no call of the script: {ast.dump(call)}")
        return site

    def home(self, scope: Scope) -> Script:
        """The script of the scope: this one, or a linked one."""
        if self.workspace is None or id(scope.facts) in self.code.offsets:
            return self
        return self.workspace.home(scope)

    @property
    def may_be_imported(self) -> bool:
        """Return whether another file may import this script's names, as far as files are known."""
        return self.workspace is not None and self.workspace.root_may_be_imported

    @property
    def runs(self) -> Runs:
        """The test of whether code in a scope, at a statement if given, may run in the script's program."""
        return self.workspace.runs if self.workspace is not None else all_run

    @property
    def users(self) -> list[Script]:
        """The scripts that may call this one's functions: itself, and the linked ones."""
        return self.workspace.running if self.workspace is not None else [self]

    # The files that it consists of; a joined script overrides this.

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The scripts of the files, the start file's first."""
        return (self,)

    def at(self, offset: int) -> tuple[Script, int]:
        """The script of the file at an offset, and the offset in that file."""
        return self, offset

    def line_at(self, offset: int) -> int:
        """The 1-based line of an offset, in its file."""
        script, start = self.at(offset)
        return script.source.line_of(start) + 1

    def start_of(self, script: Script) -> int:
        """The offset of a file's text."""
        return 0

    def parts(self, edits: tuple[Edit, ...]) -> list[tuple[Script, tuple[Edit, ...]]]:
        """Split edits, in text order, by file, with the offsets of each file."""
        return [(self, edits)]

    @property
    def linked(self) -> list[Script]:
        """Itself, and every script of the program for which it is read, if any of its code runs."""
        return [self] if self.workspace is None else self.workspace.running

    def run_by_import(self, binding: Binding) -> Iterator[Script]:
        """The scripts of the workspace whose own code an import runs."""
        workspace = self.workspace
        for path in workspace.run_by_import(self, binding) if workspace is not None else ():
            imported = workspace.script(path) if workspace is not None else None
            if imported is not None:
                yield imported

    @cached_property
    def star_paths(self) -> list[str]:
        """The files of the workspace that the script imports by ``*``."""
        if self.workspace is None:
            return []
        found = (self.workspace.locate(self, module) for module in self.code.star_imports)
        return [path for path, rest in found if path and not rest]

    def loads(self, name: str) -> int:
        """The number of reads of `name`, as a name or as an attribute."""
        return self.code.loads.get(name, 0)

    def attribute_bindings(self, attribute: str) -> Iterator[AttributeBinding]:
        """Every ``base.attribute = ...`` of the script."""
        yield from self.code.attributes.get(attribute, ())

    def item_bindings(self, name: str) -> Iterator[ItemBinding]:
        """Every ``base[...] = ...`` or ``base.append(...)`` where `base` ends in `name`."""
        yield from self.code.items.get(name, ())

    def text_of(self, scope: Scope) -> Script:
        """The script whose text contains a scope's spans: its own file, or the joined text of all."""
        return self.home(scope)

    def span(self, node: ast.AST, within: ChunkSyntax | Scope | Statement | Site) -> Span:
        """The span of `node` in its script; `within` identifies the chunk that contains it."""
        facts = _facts(within)
        offset = self.text_of(facts.module).code.offsets[id(facts)]
        span = facts.span(node)
        return Span(offset + span.start, offset + span.end)

    def statement_span(self, statement: Statement) -> Span:
        """The statement's own code, decorators included, without its trailing comment."""
        span = self.span(statement.node, statement)
        decorators = getattr(statement.node, "decorator_list", None)
        if decorators:
            first = self.span(decorators[0], statement)
            at = self.text_of(statement.scope).source.text.rindex("@", 0, first.start)
            return Span(at, span.end)
        return span

    def header_span(self, statement: Statement) -> Span:
        """The first line of a statement's own code, below its decorators: a compound statement's header."""
        span = self.span(statement.node, statement)
        line_end = self.text_of(statement.scope).source.line_end(span.start)
        return Span(span.start, min(span.end, line_end))

    def text(self, node: ast.AST, within: ChunkSyntax | Scope | Statement | Site) -> str:
        """The source text of `node`."""
        span = self.span(node, within)
        return self.text_of(_facts(within).module).source.text[span.start : span.end]


def read_script(text: str, cache: ChunkCache | None = None) -> Script | ParseFailure:
    """Read a script; `text` has no byte order mark.  A syntax error is a result, not an exception."""
    chunks = parse(text, cache)
    if isinstance(chunks, ParseFailure):
        return chunks
    return Script(Code(Source(text), chunks))


def _facts(within: ChunkSyntax | Scope | Statement | Site) -> ChunkSyntax:
    if isinstance(within, ChunkSyntax):
        return within
    if isinstance(within, Scope):
        return within.facts
    return within.scope.facts
