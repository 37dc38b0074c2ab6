"""Scoping: the possible bindings of a name where it is read."""

from __future__ import annotations

import ast

from trainshift.libraries import api
from trainshift.libraries.roles import KNOWN_MODULES
from trainshift.python.lazy import cached_property
from trainshift.python.names.linked import LinkedScript
from trainshift.python.names.reaching_bindings import Reaching
from trainshift.python.names.scoping import owner_of
from trainshift.python.names.values import NOTHING, Library, Values
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Statement, dotted


class Lookup:
    """The bindings of the names of one script.

    A question about code of another script in the workspace is passed on to that script's names.
    """

    def __init__(self, script: LinkedScript) -> None:
        self._script = script
        self._reachings: dict[tuple[Scope | None, str], Reaching] = {}
        self._nonlocal: dict[int, dict[str, list[Scope]]] = {}
        self._members: dict[str, Values] = {}

    def lookup(
        self, name: str, scope: Scope, statement: Statement | None
    ) -> tuple[Scope | None, list[Binding]]:
        """The possible bindings of `name` where it is read, and the scope that owns them.

        The scope is None for a module-level name; no bindings mean a builtin, a name of a star import, or an
        undefined name.
        """
        home = self._script.home(scope)
        if home is not self._script:
            return home.names.lookup(name, scope, statement)
        owner = owner_of(name, scope)
        if owner is not None:
            bindings = owner.bindings[name] + self._bound_inside(name, owner)
            return owner, self._reaching(name, owner, bindings, statement)
        bindings = self._script.module_bindings.get(name, [])
        return None, self._reaching(name, None, bindings, statement)

    def _bound_inside(self, name: str, scope: Scope) -> list[Binding]:
        """The bindings of a function's name by inner functions, by `nonlocal`."""
        key = id(scope.facts)
        if key not in self._nonlocal:
            declaring: dict[str, list[Scope]] = {}
            for each in scope.facts.scopes:
                for declared in each.declared_nonlocal:
                    declaring.setdefault(declared, []).append(each)
            self._nonlocal[key] = declaring
        return [
            binding
            for inner in self._nonlocal[key].get(name, ())
            if scope in inner.functions()
            for binding in inner.bindings.get(name, ())
        ]

    def _reaching(
        self, name: str, scope: Scope | None, bindings: list[Binding], statement: Statement | None
    ) -> list[Binding]:
        """Filter `bindings` to those that may still hold where `statement` begins.

        If a function reads a name of an outer function, the time is unknown and all bindings count.  For a
        name of the module, those count that may hold where the function is defined, or come later.
        """
        if len(bindings) < 2 or statement is None:
            return bindings
        home = statement.scope
        is_inside = scope is None and home.kind != "module"
        if not is_inside and scope is not None and home is not scope:
            return bindings
        key = (scope, name)
        if key not in self._reachings:
            self._reachings[key] = Reaching(name, scope, self._script.top_index, bindings)
        reaching = self._reachings[key]
        found = reaching.within(statement) if is_inside else reaching.before(statement)
        return found or bindings

    def member_of_library(self, node: ast.expr) -> Values:
        """The value of a dotted name whose root is always the same library, such as ``tf.keras.Model``."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        imported = self.libraries.get(root.id, ()) if isinstance(root, ast.Name) else ()
        if len(imported) != 1:
            return NOTHING
        name = dotted(node)
        found = self._members.get(name)
        if found is None:
            (module,) = imported
            _, dot, below = name.partition(".")
            is_own = any(name == each or name.startswith(f"{each}.") for each in self.own_members)
            found = NOTHING if is_own else frozenset({Library(module + dot + below)})
            self._members[name] = found
        return found

    @cached_property
    def own_members(self) -> frozenset[str]:
        """The dotted names that the script adds to TensorFlow's or Keras' modules: ``tf.model = net``."""
        added: set[str] = set()
        for attribute, given in self._script.code.attributes.items():
            for name in filter(None, (dotted(each.base) for each in given)):
                root, dot, below = name.partition(".")
                modules = self.libraries.get(root, set())
                if modules and all(api.is_new_member(f"{each}{dot}{below}.{attribute}") for each in modules):
                    added.add(f"{name}.{attribute}")
        return frozenset(added)

    @cached_property
    def libraries(self) -> dict[str, set[str]]:
        """The names that always mean a known library, in any scope of the script, with that library."""
        return {
            name: {binding.full_name for binding in bindings}
            for name, bindings in self._script.module_bindings.items()
            if name not in self._script.code.local_names
            and all(
                binding.kind == "import" and binding.full_name.partition(".")[0] in KNOWN_MODULES
                for binding in bindings
            )
        }
