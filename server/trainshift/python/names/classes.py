"""Classes of a script: their bases and subclasses, their methods, and the class of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.linked import LinkedNames, LinkedScript
from trainshift.python.names.lookup import Lookup
from trainshift.python.names.values import Class, Function, Instance, Library, UserInstance, Value, Values
from trainshift.python.syntax.chunk_syntax import AttributeBinding, Binding, Scope, Site, last_name

_DATACLASSES = frozenset({"dataclasses.dataclass"})


class ClassHierarchy:
    """The class hierarchy of one script, by the bases that its `names` resolve."""

    def __init__(self, script: LinkedScript, names: LinkedNames, lookup: Lookup) -> None:
        self._script = script
        self._names = names
        self._lookup = lookup
        self._ancestries: dict[Scope, list[Scope | str]] = {}
        self._called: dict[Site, list[Scope]] = {}

    def is_a(self, value: Value, *families: str) -> bool:
        """Return whether `value` is an object of one of the classes `families` or of their subclasses."""
        if isinstance(value, Instance):
            return api.is_subclass(value.cls, *families)
        if isinstance(value, UserInstance):
            return self.descends(value.scope, *families)
        return False

    def descends(self, cls: Scope, *families: str) -> bool:
        """Return whether a class of the script inherits from one of the classes `families`, or a subclass of
        one.
        """
        return any(api.is_subclass(base, *families) for base in self.library_bases(cls))

    def may_be(self, values: Values, *families: str) -> bool:
        """Return whether some of `values` is an object of one of `families`."""
        return any(self.is_a(value, *families) for value in values)

    def library_bases(self, cls: Scope) -> set[str]:
        """The library classes that a class of the script inherits from, through its own bases."""
        return {each for each in self.ancestry(cls) if isinstance(each, str)}

    def ancestry(self, cls: Scope) -> list[Scope | str]:
        """The class, then its bases: scopes of the script's classes, full names of library ones."""
        known = self._ancestries.get(cls)
        if known is None:
            known = self._find_ancestry(cls)
            if self._names.memo.is_idle:
                self._ancestries[cls] = known
        return known

    def _find_ancestry(self, cls: Scope) -> list[Scope | str]:
        order: dict[Scope | str, None] = {cls: None}
        level: list[Scope | str] = [cls]
        while level:  # Nearest first: bases of one level come before those of the next.
            bases = [base for each in level if isinstance(each, Scope) for base in self._bases(each)]
            level = [each for each in dict.fromkeys(bases) if each not in order]
            order.update(dict.fromkeys(level))
        return list(order)

    def _bases(self, cls: Scope) -> Iterator[Scope | str]:
        assert isinstance(cls.node, ast.ClassDef)
        for base in cls.node.bases:
            for value in self._names.values(base, cls.parent or cls, cls.statement):
                if isinstance(value, Class):
                    yield value.scope
                elif isinstance(value, Library):
                    yield api.canonical(value.name) or value.name

    def function_named(self, cls: Scope, name: str) -> Scope | None:
        """The method `name` of a class of the script, or of its nearest base that has one."""
        for each in self.ancestry(cls):
            if isinstance(each, Scope):
                for binding in each.bindings.get(name, ()):
                    if binding.inner is not None and binding.kind == "function":
                        return binding.inner
        return None

    def called_functions(self, site: Site) -> list[Scope]:
        """The functions of the script that the call may run (a class: its ``__init__``)."""
        known = self._called.get(site)
        if known is None:
            known = self._find_called(site)
            if self._names.memo.is_idle:
                self._called[site] = known
        return known

    def _find_called(self, site: Site) -> list[Scope]:
        found = []
        for value in self._names.callee(site):
            if isinstance(value, Class):
                function = self.function_named(value.scope, "__init__")
            else:
                function = self.function_of(value)
            if function is not None:
                found.append(function)
        return found

    def function_of(self, value: Value) -> Scope | None:
        """The function that runs when a value is called: the value itself, or its ``__call__``."""
        if isinstance(value, Function):
            return value.scope
        if isinstance(value, UserInstance):
            return self.function_named(value.scope, "__call__") or self.function_named(value.scope, "call")
        return None

    def heirs(self, cls: Scope) -> list[Scope]:
        """The classes of any linked script that inherit from `cls`, directly or not, and may be used."""
        found = self._names.memo.ask(("heirs", id(cls)), self._find_heirs, cls)
        return sorted((value.scope for value in found if isinstance(value, Class)), key=self._order)

    def _order(self, cls: Scope) -> tuple[str, int]:
        """A sort key for classes, by place."""
        home = self._script.home(cls)
        return home.path, home.statement_span(cls.statement).start if cls.statement is not None else 0

    def _find_heirs(self, cls: Scope) -> Values:
        def heirs(base: Scope) -> Iterator[Scope]:
            for script in self._script.home(cls).users:
                if base.name in script.code.mentioned:
                    yield from (each for each in script.names.possible_heirs if base in self.ancestry(each))

        return frozenset(
            Class(each)
            for each in reachable([cls], heirs)
            if each is not cls and self._script.runs(each, each.statement)
        )

    def fields(self, cls: Scope) -> list[str]:
        """The fields of a dataclass or named tuple, in order; none for another class."""
        found: dict[str, None] = {}
        is_made_of_them = False
        for each in reversed(self.ancestry(cls)):
            if isinstance(each, str):
                is_made_of_them = is_made_of_them or each == "typing.NamedTuple"
            elif isinstance(each.node, ast.ClassDef):
                decorators = (
                    node.func if isinstance(node, ast.Call) else node for node in each.node.decorator_list
                )
                scope = each.parent or each
                named = (self._names.full_names(node, scope, each.statement) for node in decorators)
                is_made_of_them = is_made_of_them or any(
                    not _DATACLASSES.isdisjoint(names) for names in named
                )
                for statement in each.node.body:
                    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        found[statement.target.id] = None
        return list(found) if is_made_of_them else []

    @cached_property
    def possible_heirs(self) -> list[Scope]:
        """The classes of this script with a base that is certainly not a library's."""
        return [
            cls
            for cls in self._script.code.derived_classes
            if isinstance(cls.node, ast.ClassDef)
            and not all(map(self._lookup.member_of_library, cls.node.bases))
        ]

    @cached_property
    def assigned_attributes(
        self,
    ) -> tuple[dict[tuple[Scope | None, str], list[Binding]], dict[str, list[AttributeBinding]]]:
        """The assignments to attributes in this script: to those of ``self``, by class and attribute, and
        to others.
        """
        own: dict[tuple[Scope | None, str], list[Binding]] = {}
        others: dict[str, list[AttributeBinding]] = {}
        for name, attributes in self._script.code.attributes.items():
            for attribute in attributes:
                scope = attribute.binding.scope
                if self.is_self(attribute.base, scope):
                    own.setdefault((class_around(scope), name), []).append(attribute.binding)
                else:
                    others.setdefault(name, []).append(attribute)
        return own, others

    def is_self(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether `node` is the first parameter of the method around it."""
        function = _method_around(scope)
        if function is None or not isinstance(node, ast.Name):
            return False
        # A lambda in the body of a class is usually passed on there, and is not a method.
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        arguments = function.node.args
        first = [*arguments.posonlyargs, *arguments.args][:1]
        return bool(first) and first[0].arg == node.id and not is_decorated(function, "staticmethod")


def class_around(scope: Scope) -> Scope | None:
    """The class of the method around some code."""
    method = _method_around(scope)
    return method.owner() if method is not None else None


def _method_around(scope: Scope) -> Scope | None:
    return next((each for each in scope.functions() if each.owner() is not None), None)


def is_property(function: Scope) -> bool:
    """Return whether a method is read as an attribute."""
    return is_decorated(function, "property", "cached_property")


def is_decorated(function: Scope, *names: str) -> bool:
    decorators = getattr(function.node, "decorator_list", [])
    return any(last_name(decorator) in names for decorator in decorators)
