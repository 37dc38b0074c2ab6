"""Reachability: the code of a program that may run, by names alone.  What cannot be excluded counts as run.

A file's own statements run when it is imported, those behind its ``__main__`` guard do not.  A function or a
class runs where code that runs reads its name; so does a method, unless a library calls it by itself
(spec.md 7.5).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.script import Script
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Statement, behind_main_guard

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# What reads names by their text: then any name may be read, or any attribute.
_REFLECTION = frozenset({"globals", "vars", "eval", "exec", "import_module", "__import__"})
_OF_ATTRIBUTES = frozenset({"getattr"})
_NAMESPACES = frozenset({"globals", "vars"})


class Reachability:
    """What runs of `scripts`, the first of which is started and runs as a whole.

    With `seen` an attribute that is read by its text counts as none, so that only what is seen to run does.
    """

    def __init__(self, scripts: Sequence[Script], seen: bool = False) -> None:
        self._hiding = _REFLECTION if seen else _REFLECTION | _OF_ATTRIBUTES
        self._start, *self._others = scripts
        self._idle: set[Scope] = set()
        run, read = self._spread()
        if read is None:
            return
        hides_methods = not seen and any(facts.once(_reflection).methods for facts in run)
        for script in self._others:
            for facts in script.facts:
                if facts not in run:
                    self._idle.update(facts.scopes)
                elif not hides_methods:
                    self._idle.update(self._unused_methods(script, facts, read))

    def runs(self, scope: Scope, statement: Statement | None) -> bool:
        """Whether code in `scope` may run, and `statement`, where it stands in one."""
        if id(scope.facts) in self._start.code.offsets:
            return True
        current: Scope | None = scope
        while current is not None:
            if current in self._idle:
                return False
            current = current.parent
        return statement is None or not behind_main_guard(statement)

    def _spread(self) -> tuple[set[ChunkSyntax], set[str] | None]:
        """From what is started to what it reads: the chunks that run, the names they read (None: any)."""
        homes = {facts: script for script in (self._start, *self._others) for facts in script.facts}
        others = {script.path: script for script in self._others}
        defining: dict[str, list[ChunkSyntax]] = {}
        renamed: dict[str, list[str]] = {}
        run: set[ChunkSyntax] = set()
        read: set[str] = set()

        def imported(script: Script) -> Iterator[ChunkSyntax]:
            """The chunks that run as soon as a file is imported, or for what is read already."""
            for new, old in script.code.renamed_imports:
                renamed.setdefault(new, []).append(old)
                if new in read:
                    yield from reading([old])
            for facts in script.facts if script is not self._start else ():
                names = _defined(facts)
                if names is None or not read.isdisjoint(names):
                    yield facts
                for name in names or ():
                    defining.setdefault(name, []).append(facts)

        def reading(names: Iterable[str]) -> Iterator[ChunkSyntax]:
            for name in reachable(names, lambda name: renamed.get(name, ()), seen=read):
                yield from defining.get(name, ())

        def run_next(facts: ChunkSyntax) -> Iterator[ChunkSyntax]:
            yield from reading([*facts.loads, *facts.once(_reflection).read])
            home = homes[facts]
            if home.workspace is None or not others:
                return
            for binding in facts.imports:
                for path in home.workspace.run_by_import(home, binding):
                    if path in others:
                        yield from imported(others.pop(path))

        starts = [*imported(self._start), *self._start.facts]
        for facts in reachable(starts, run_next, seen=run):
            if not self._hiding.isdisjoint(facts.once(_reflection).hiding):
                return run, None
        return run, read

    @staticmethod
    def _unused_methods(script: Script, facts: ChunkSyntax, read: set[str]) -> Iterator[Scope]:
        for scope in facts.scopes:
            owner = scope.owner()
            if owner is None or scope.name in read or scope.name.startswith("__"):
                continue
            bases = script.names.ancestry(owner)
            known = [
                each for each in bases if isinstance(each, Scope) and isinstance(each.node, ast.ClassDef)
            ]
            given = sum(len(each.node.bases) for each in known if isinstance(each.node, ast.ClassDef))
            decorated = bool(getattr(scope.node, "decorator_list", ()))
            # What the heir of a class that is not the workspace's defines, that class may call.
            silent = [each for each in bases if isinstance(each, str) and not _may_call(each, scope.name)]
            if not decorated and given - len(silent) < len(known):
                yield scope


class _Reflection(NamedTuple):
    """What a chunk reads by text: any name (`hiding` how), any of its own `methods`, or the names shown."""

    hiding: frozenset[str] = frozenset()
    methods: bool = False
    read: frozenset[str] = frozenset()


def _reflection(facts: ChunkSyntax) -> _Reflection:
    """What a chunk reads by its text; ``"model" in globals()`` reads nothing."""
    used = (_REFLECTION | _OF_ATTRIBUTES).intersection(facts.loads)
    if not used:
        return _Reflection()
    counts = {name: facts.loads[name] for name in used}
    read, methods = set(), False
    for node in (inner for statement in facts.top for inner in ast.walk(statement.node)):
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Call(ast.Name(name), [])]):
                if name in _NAMESPACES:
                    counts[name] -= 1
            case ast.Subscript(ast.Call(ast.Name(name), []), ast.Constant(str(text))):
                if name in _NAMESPACES:
                    counts[name] -= 1
                    read.add(text)
            case ast.Call(ast.Name("getattr"), [_, ast.Constant(str(text)), *_]):
                counts["getattr"] -= 1
                read.add(text)
            case ast.Call(ast.Name("getattr"), [ast.Name("self" | "cls"), *_]):
                counts["getattr"] -= 1
                methods = True
    hiding = frozenset(name for name, count in counts.items() if count > 0)
    return _Reflection(hiding, methods, frozenset(read))


def _defined(facts: ChunkSyntax) -> list[str] | None:
    """The names that a chunk of definitions, other names included, defines; None for one that runs anyway."""
    names = []
    for statement in facts.top:
        node = statement.node
        if isinstance(node, _DEFINITIONS) and not node.decorator_list:
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and _are_names(node.targets):
            names += [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif not _is_main_guard(statement):
            return None
    return names


def _are_names(targets: list[ast.expr]) -> bool:
    return all(isinstance(each, ast.Name) for each in targets)


def _is_main_guard(statement: Statement) -> bool:
    filled = {name: block for name, block in statement.branches.items() if block}
    return list(filled) == ["body"] and behind_main_guard(filled["body"][0])


def _may_call(library_class: str, method: str) -> bool:
    """Whether a class of a library may call what an heir defines; a Keras model calls the methods it has."""
    is_known = not method.startswith("_") and api.is_subclass(library_class, *api.MODEL)
    return not is_known or api.method(library_class, method) is not None
