"""Reachability: the code of a program that may run, by names alone.  What cannot be excluded counts as run.

A file's own statements run when it is imported, except those under its ``__main__`` guard.  A function or a
class runs if running code reads its name; so does a method, unless a library calls it by itself (spec.md
7.5).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trainshift.libraries import api
from trainshift.libraries.roles import NOT_IN_WORKSPACES
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.linked import LinkedScript
from trainshift.python.names.values import Module, Value
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    ChunkSyntax,
    Scope,
    Site,
    Statement,
    behind_main_guard,
    children,
    dotted,
    last_name,
)
from trainshift.python.syntax.code import Runs
from trainshift.python.syntax.node_classes import DEFINITIONS, FUNCTIONS

# Functions that read names as strings: any name, or any attribute of the object that they are given.
_REFLECTION = frozenset({"globals", "vars", "eval", "exec", "import_module", "__import__"})
_OF_ATTRIBUTES = frozenset({"getattr", "vars"})
_NAMESPACES = frozenset({"globals", "vars"})
# Calls in the body of a class that only describe its attributes.
_DESCRIBING = frozenset({"field", "property", "classmethod", "staticmethod", "auto"})
# Classes of Python that call no methods of their subclasses but Python's own.
_SILENT = frozenset({"abc.ABC", "builtins.object"})
# Reads that give a module as an object, whatever its name.
_GIVING_MODULES = frozenset({"modules", "getmodule"})


def idle_scopes(scripts: Sequence[LinkedScript], *, seen: bool = False) -> set[Scope]:
    """Return the functions and classes that do not run in a program; its first script is the start file.

    With `seen`, attributes read by strings are ignored, so that only visible reads count.
    """
    found = set[Scope]()
    spread = _Spread(scripts, seen)
    for script in scripts[1:] if not spread.hides_names else ():
        for facts in script.facts:
            found.update(facts.scopes if facts not in spread.run else spread.waiting.get(facts, ()))
    return found


class Reachability:
    """The code of a program that may run: that of the start file, `started`, and what is not `idle`."""

    def __init__(self, started: LinkedScript, idle: set[Scope]) -> None:
        self._started = started.code.offsets
        self._idle = idle

    def runs(self, scope: Scope, statement: Statement | None) -> bool:
        """Return whether code in `scope`, at `statement` if given, may run."""
        if id(scope.facts) in self._started:
            return True
        current: Scope | None = scope
        while current is not None:
            if current in self._idle:
                return False
            current = current.parent
        return statement is None or not behind_main_guard(statement)


def only_imports(script: LinkedScript, runs: Runs) -> bool:
    """Return whether nothing of an imported file runs but its imports, according to `runs`."""
    return not any(
        not facts.once(_only_defines)
        or any(runs(scope, None) for scope in facts.scopes if scope.parent is facts.module)
        or any(runs(site.scope, site.statement) for site in facts.sites)  # A default or a base may be a call.
        for facts in script.facts
    )


def _only_defines(facts: ChunkSyntax) -> bool:
    """Return whether a chunk has only imports, texts and definitions."""
    return all(
        isinstance(each.node, (ast.Import, ast.ImportFrom, *DEFINITIONS))
        or (isinstance(each.node, ast.Expr) and isinstance(each.node.value, ast.Constant))
        or _is_main_guard(each)
        for each in facts.top
    )


class _Spread:
    """The spread from started code to everything that it reads: chunks that `run`, and methods not called
    yet.

    A method waits until running code reads its name.  The name of a variable means a definition of another
    file only where its own file imports that name.  `hides_names` is true if any name may be read by a
    string, so that everything may run.  Reading attributes by strings does that too where the program passes
    one of its modules as an object.
    """

    def __init__(self, scripts: Sequence[LinkedScript], seen: bool) -> None:
        self._start = scripts[0]
        self._may_call_any = False
        """True if a method may be called by a text, so that none waits."""
        self._looks_at_texts = not seen
        self._homes = {facts: script for script in scripts for facts in script.facts}
        self._not_imported = {script.path: script for script in scripts[1:]}
        self._defining: dict[str, list[ChunkSyntax | Scope]] = {}
        self._renamed: dict[str, list[str]] = {}
        self._read: set[str] = set()
        self._read_at_home: dict[LinkedScript, set[str]] = {}
        """The names that a file reads and does not import: no definition of another file is meant."""
        self._bindings: dict[LinkedScript, dict[str, list[Binding]]] = {}
        self._values: dict[tuple[LinkedScript, str], set[Value]] = {}
        self.run: set[ChunkSyntax | Scope] = set()
        self.waiting: dict[ChunkSyntax, set[Scope]] = {}
        self.hides_names = False
        starts = [*self._import(self._start), *self._start.facts]
        for each in reachable(starts, self._next, seen=self.run):
            if isinstance(each, ChunkSyntax) and each.once(_reflection).hides:
                self.hides_names = True
                return
        chunks = (each for each in self.run if isinstance(each, ChunkSyntax))
        self.hides_names = self._may_call_any and any(map(self._gives_module, chunks))

    def _gives_module(self, facts: ChunkSyntax) -> bool:
        """Return whether a chunk uses a module of the program as an object, rather than a name of it."""
        if not _GIVING_MODULES.isdisjoint(facts.loads):
            return True
        home = self._homes[facts]
        stars = {Module(path) for path in home.star_paths}
        whole = facts.once(_whole_reads)
        for root in whole if stars else whole.keys() & self._imports_of(home).keys():
            read, imported = whole[root], self._imported(home, root)
            values: Iterable[Value] = stars if imported is None else imported
            if not values:
                continue
            for parts in read if imported is not None else [(root, *parts) for parts in read]:
                found = values
                for part in parts:
                    of_modules = [each for each in found if isinstance(each, Module)]
                    found = {value for each in of_modules for value in home.names.attribute_of(each, part)}
                if any(isinstance(each, Module) for each in found):
                    return True
        return False

    def _imports_of(self, home: LinkedScript) -> dict[str, list[Binding]]:
        if home not in self._bindings:
            self._bindings[home] = _imports_by_name(home)
        return self._bindings[home]

    def _imported(self, home: LinkedScript, name: str) -> set[Value] | None:
        """The values of a name that a file imports, as far as they are the program's own; None for any other
        name.
        """
        bindings = self._imports_of(home).get(name)
        if bindings is None:
            return None
        if (home, name) not in self._values:
            own = (each for each in bindings if each.full_name.partition(".")[0] not in NOT_IN_WORKSPACES)
            self._values[home, name] = set[Value]().union(*map(home.names.bound, own))
        return self._values[home, name]

    def _next(self, running: ChunkSyntax | Scope) -> Iterator[ChunkSyntax | Scope]:
        if isinstance(running, Scope):
            self.waiting[running.facts].discard(running)
            home, reads = self._homes[running.facts], _reads_of(running)
            left = Counter(reads.loads)
            left.subtract(self._of_libraries(home, running.facts, reads))
            yield from self._reading(self._meaning_others(home, left, reads.bare))
            yield from self._reading_at_home(home, left)
            return
        if self._looks_at_texts and running.once(_reflection).methods and not self._may_call_any:
            self._may_call_any = True
            yield from [scope for scopes in self.waiting.values() for scope in scopes]
        home = self._homes[running]
        left, bare = self._loads_of(running)
        yield from self._reading([*self._meaning_others(home, left, bare), *running.once(_reflection).read])
        yield from self._reading_at_home(home, left)
        if home.workspace is None or not self._not_imported:
            return
        for path in home.workspace.imported_in(home, running):
            if path in self._not_imported:
                yield from self._import(self._not_imported.pop(path))

    def _import(self, script: LinkedScript) -> Iterator[ChunkSyntax | Scope]:
        """Yield the chunks that run on import of a file, or that define names that were read already."""
        for new, old in script.code.renamed_imports:
            self._renamed.setdefault(new, []).append(old)
            if new in self._read:
                yield from self._reading([old])
        for facts in script.facts if script is not self._start else ():
            names = facts.once(_defined)
            if names is None or not self._read.isdisjoint(names):
                yield facts
            for name in names or ():
                self._defining.setdefault(name, []).append(facts)

    def _reading(self, names: Iterable[str]) -> Iterator[ChunkSyntax | Scope]:
        for name in reachable(names, lambda name: self._renamed.get(name, ()), seen=self._read):
            yield from self._defining.get(name, ())

    def _reading_at_home(self, home: LinkedScript, left: Counter[str]) -> Iterator[ChunkSyntax | Scope]:
        """Yield what a file defines and its own code reads; definitions of the start file all run."""
        known = self._read_at_home.setdefault(home, set())
        for name in [name for name, count in left.items() if count > 0 and name not in known]:
            known.add(name)
            for each in self._defining.get(name, ()):
                if self._homes[each.facts if isinstance(each, Scope) else each] is home:
                    yield each

    def _meaning_others(self, home: LinkedScript, left: Counter[str], bare: Counter[str]) -> Iterator[str]:
        """Yield the names that may mean definitions of other files, of the reads that are `left`.

        An attribute may be any object's; of the `bare` names of variables, only imported ones are.
        """
        imports, has_stars = self._imports_of(home), bool(home.star_paths)
        for name, count in left.items():
            if count > 0 and (count > bare[name] or has_stars or name in imports):
                yield name

    def _loads_of(self, facts: ChunkSyntax) -> tuple[Counter[str], Counter[str]]:
        """The number of reads of each name in a chunk, except in methods that are not called yet; and the
        number of those that are no attributes.
        """
        script = self._homes[facts]
        waiting: set[Scope] = set()
        if script is not self._start and not self._may_call_any:
            methods = _methods_nothing_else_calls(script, facts)
            at_home = self._read_at_home.get(script, ())
            waiting = {each for each in methods if each.name not in self._read and each.name not in at_home}
        reads = facts.once(_reads_of_chunk)
        left, bare = Counter(facts.loads), Counter(reads.bare)
        left.subtract(self._of_libraries(script, facts, reads))
        if waiting:
            self.waiting[facts] = waiting
        for scope in waiting:
            self._defining.setdefault(scope.name, []).append(scope)
            reads = _reads_of(scope)
            left.subtract(reads.loads)
            left.update(self._of_libraries(script, facts, reads))
            bare.subtract(reads.bare)
        return left, bare

    def _of_libraries(self, home: LinkedScript, facts: ChunkSyntax, reads: _Reads) -> Counter[str]:
        """The number of reads of each name that is a member of a library: `train` in ``tf.train.Saver``."""
        found: Counter[str] = Counter()
        for root, members in reads.members.items():
            imported = self._imports_of(home).get(root, [])
            is_library = imported and all(
                each.full_name.partition(".")[0] in NOT_IN_WORKSPACES for each in imported
            )
            if is_library and len(home.module_bindings.get(root, ())) == len(imported):
                if not any(root in scope.bindings for scope in facts.scopes):
                    found.update(members)
        return found


def _imports_by_name(script: LinkedScript) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}
    for binding in script.imports:
        if isinstance(binding.target, ast.alias):
            name = binding.target.asname or binding.target.name.partition(".")[0]
            found.setdefault(name, []).append(binding)
    return found


def _methods_nothing_else_calls(script: LinkedScript, facts: ChunkSyntax) -> Iterator[Scope]:
    """The methods that run only if their name is read: neither a decorator nor a library's class
    calls them.
    """
    for scope in facts.scopes:
        owner = scope.owner()
        if owner is None or scope.name.startswith("__"):
            continue
        if not isinstance(scope.node, FUNCTIONS) or scope.node.decorator_list:
            continue
        bases = script.names.ancestry(owner)
        known = [each for each in bases if isinstance(each, Scope) and isinstance(each.node, ast.ClassDef)]
        given = sum(len(each.node.bases) for each in known if isinstance(each.node, ast.ClassDef))
        # A library's class may call the methods of its subclasses.
        silent = [each for each in bases if isinstance(each, str) and not _may_call(each, scope.name)]
        if given - len(silent) < len(known):
            yield scope


class _Reads(NamedTuple):
    """The numbers of reads in some code: of each name, `bare` or as an attribute; of names that are no
    attributes; and of the `members` in dotted names, by their first name.
    """

    loads: Counter[str]
    bare: Counter[str]
    members: dict[str, Counter[str]]


def _reads_of_chunk(facts: ChunkSyntax) -> _Reads:
    return _reads_in(each.node for each in facts.top)


def _reads_of(scope: Scope) -> _Reads:
    """The reads in a function's body."""
    return scope.facts.once(_reads_of_methods).get(scope) or _reads_in(())


def _reads_of_methods(facts: ChunkSyntax) -> dict[Scope, _Reads]:
    methods = (each for each in facts.scopes if each.owner() is not None)
    return {each: _reads_in(each.node.body) for each in methods if isinstance(each.node, FUNCTIONS)}


def _reads_in(nodes: Iterable[ast.AST]) -> _Reads:
    found = _Reads(Counter(), Counter(), {})
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            if name := dotted(node):
                root, *parts = name.split(".")
                found.loads.update((root, *parts))
                found.bare[root] += 1
                if parts:
                    found.members.setdefault(root, Counter()).update(parts)
                continue
            if isinstance(node, ast.Attribute):
                found.loads[node.attr] += 1
        waiting += ast.iter_child_nodes(node)
    return found


class _Reflection(NamedTuple):
    """The names that a chunk reads by strings: any name (`hides`), any of an object (`methods`), or some."""

    hides: bool = False
    methods: bool = False
    read: frozenset[str] = frozenset()


def _reflection(facts: ChunkSyntax) -> _Reflection:
    """The names that a chunk reads by strings; ``"model" in globals()`` reads none."""
    if _registers_classes(facts) or any(
        site.name == "locals" and site.scope is facts.module for site in facts.sites
    ):
        return _Reflection(hides=True)
    used = (_REFLECTION | _OF_ATTRIBUTES).intersection(facts.loads)
    if not used and "__dict__" not in facts.loads:
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
            case ast.Call(ast.Name("getattr" | "vars" as name), [_, *_]):
                counts[name] -= 1
                methods = True
            case ast.Attribute(base, "__dict__", ast.Load()):
                methods |= dotted(base) not in ("self", "cls")
            case ast.Attribute(base, name, ast.Load()) if name in counts:
                # A method of that name is not one of Python's functions.
                counts[name] -= dotted(base) not in ("builtins", "importlib")
    return _Reflection(any(count > 0 for count in counts.values()), methods, frozenset(read))


def _registers_classes(facts: ChunkSyntax) -> bool:
    """Return whether a chunk may find classes that no code names: by a hook of their definition, or as
    subclasses.
    """
    return "__subclasses__" in facts.loads or any(
        scope.name == "__init_subclass__"
        or (isinstance(scope.node, ast.ClassDef) and any(map(_is_own_metaclass, scope.node.keywords)))
        for scope in facts.scopes
    )


def _is_own_metaclass(given: ast.keyword) -> bool:
    return given.arg == "metaclass" and last_name(given.value) != "ABCMeta"


def _whole_reads(facts: ChunkSyntax) -> dict[str, set[tuple[str, ...]]]:
    """The dotted names that a chunk reads, the longest ones: their further parts by the first one.

    A final ``__dict__`` is left out, because it gives what its module does.
    """
    found: dict[str, set[tuple[str, ...]]] = {}
    waiting: list[ast.AST] = [statement.node for statement in facts.top]
    while waiting:
        node = waiting.pop()
        name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if name:
            root, *parts = name.split(".")
            found.setdefault(root, set()).add(tuple(parts[:-1] if parts[-1:] == ["__dict__"] else parts))
        else:
            waiting += ast.iter_child_nodes(node)
    return found


def _defined(facts: ChunkSyntax) -> list[str] | None:
    """The names that a chunk only defines, including aliases; None for a chunk that runs anyway."""
    names = []
    for statement in facts.top:
        node = statement.node
        if isinstance(node, DEFINITIONS) and not node.decorator_list:
            # Python calls a module's `__getattr__` by itself, and runs the body of a class.
            if node.name == "__getattr__" or any(map(_is_in_class_body, facts.sites)):
                return None
            names.append(node.name)
        elif isinstance(node, ast.Assign) and _only_names(node.value) and _are_names(node.targets):
            names += [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif not _is_main_guard(statement):
            return None
    return names


def _is_in_class_body(site: Site) -> bool:
    """Return whether a call stands in the body of a class itself, and may have an effect."""
    return (
        site.scope.kind == "class"
        and not isinstance(site.statement.node, FUNCTIONS)
        and site.name not in _DESCRIBING
        and all(scope.kind == "class" for scope in _around(site.scope))
    )


def _around(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those around it, up to the module's."""
    while scope.parent is not None:
        yield scope
        scope = scope.parent


def _only_names(value: ast.expr) -> bool:
    """Return whether a value is another name's, or a table of such: ``{"Dense": Dense, "MLP": MLP}``."""
    displays = (ast.Dict, ast.List, ast.Tuple, ast.Set)
    start: list[ast.AST] = [value]
    parts = list(reachable(start, lambda each: children(each) if isinstance(each, displays) else ()))
    leaves = [each for each in parts if not isinstance(each, (*displays, ast.Constant, ast.expr_context))]
    return bool(leaves) and all(isinstance(each, ast.Name) for each in leaves)


def _are_names(targets: list[ast.expr]) -> bool:
    return all(isinstance(each, ast.Name) for each in targets)


def _is_main_guard(statement: Statement) -> bool:
    filled = {name: block for name, block in statement.branches.items() if block}
    return list(filled) == ["body"] and behind_main_guard(filled["body"][0])


def _may_call(library_class: str, method: str) -> bool:
    """Return whether a library's class may call a subclass's method; a Keras model calls its known
    methods.
    """
    if library_class in _SILENT:
        return False
    is_known = not method.startswith("_") and api.is_subclass(library_class, *api.MODEL)
    return not is_known or api.method(library_class, method) is not None
