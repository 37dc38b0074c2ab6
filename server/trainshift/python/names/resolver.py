"""The resolver: the abstract value of an expression, as a set that may contain Unknown.

This is σ of spec.md 1: rules resolve an expression of any spelling, and get every possible value.  A name may
be dotted (``self.optimizer``), a parameter, or come from a call, a container or a tuple.  Nothing is imported
or run.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator

from trainshift.libraries import api
from trainshift.libraries.entries import follows_objects, is_known, is_told_of
from trainshift.libraries.roles import (
    DECORATORS,
    HOROVOD_MEMBERS,
    KNOWN_MODULES,
    WRAPPED_TAPE,
    is_horovod,
    wraps_optimizer,
    wraps_tape,
)
from trainshift.python.names.callers import Callers
from trainshift.python.names.classes import ClassHierarchy, class_around, is_decorated, is_property
from trainshift.python.names.containers import Containers
from trainshift.python.names.linked import LinkedNames, LinkedScript
from trainshift.python.names.lookup import Lookup
from trainshift.python.names.memo import Memo
from trainshift.python.names.occurrence import UNSEEN, Occurrence, Step
from trainshift.python.names.provenance import Provenance
from trainshift.python.names.values import (
    ANYTHING,
    NOTHING,
    RECORD,
    UNKNOWN,
    Class,
    Display,
    Function,
    Instance,
    Library,
    Literal,
    Member,
    Module,
    UserInstance,
    Value,
    Values,
)
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    AttributeBinding,
    Binding,
    ItemBinding,
    Scope,
    Site,
    Slot,
    Statement,
    alternatives,
    children,
    dotted,
)

# The creation of an object whose class has no subclass.
_NO_CALL = ast.Call(ast.Name("object", ast.Load()), [], [])
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, *COMPREHENSIONS)
_NO_NAMES: tuple[str, ...] = ()
_BUILTINS = frozenset(dir(builtins))
# Calls that return their argument, or a container of the same elements.
_TRANSPARENT = DECORATORS | {
    "builtins.list",
    "builtins.tuple",
    "builtins.sorted",
    "builtins.reversed",
    "builtins.iter",
}
_FIELD = "dataclasses.field"
# The result of these calls depends on their place, or on their arguments.
_READ_FURTHER = _TRANSPARENT | {_FIELD, "functools.partial", "builtins.super", "builtins.dict"}
_NAMING = (ast.Name, ast.Attribute)
# The names of calls that may return their argument; `getattr` may return anything.
PASSING_ON = frozenset(name.rpartition(".")[2] for name in _TRANSPARENT) | {"DistributedOptimizer", "getattr"}


class Resolver:
    """The names of one script: resolves expressions to values, and answers questions about names.

    Its parts query each other directly, and the whole through `LinkedNames`.  Answers are kept for the
    script's life.  Questions about code of another script go to that script's names.
    """

    def __init__(self, script: LinkedScript, memo: Memo | None = None) -> None:
        self._script = script
        self.memo = memo or Memo()
        self._full_names: dict[Values, frozenset[str]] = {}

        self._lookup = lookup = Lookup(script)
        self.lookup = lookup.lookup
        self.member_of_library = lookup.member_of_library

        self._classes = classes = ClassHierarchy(script, self, lookup)
        self.is_a, self.may_be, self.is_self = classes.is_a, classes.may_be, classes.is_self
        self.library_bases, self.ancestry, self.heirs = classes.library_bases, classes.ancestry, classes.heirs
        self.descends = classes.descends
        self.function_named, self.function_of = classes.function_named, classes.function_of
        self.called_functions, self.fields = classes.called_functions, classes.fields

        self._callers = calls = Callers(script, self, lookup, classes)
        self.callers, self.calls_by_name = calls.callers, calls.calls_by_name
        self.argument, self.position = calls.argument, calls.position
        self.bound_arguments = calls.bound_arguments

        self._containers = containers = Containers(script, self)
        self.entry, self.put_at, self.added_at = containers.entry, containers.put_at, containers.added_at

        self._provenance = provenance = Provenance(script, self, classes, calls, containers)
        self.steps_back, self.handed = provenance.steps_back, provenance.handed
        self.all_sources = provenance.all_sources
        self.given, self.given_by_key = provenance.given, provenance.given_by_key
        self.object_bindings, self.field_values = provenance.object_bindings, provenance.field_values
        self.given_to_fields = provenance.given_to_fields

    @property
    def libraries(self) -> dict[str, set[str]]:
        """The names that always mean a known library, in any scope of the script, with that library."""
        return self._lookup.libraries

    @property
    def possible_heirs(self) -> list[Scope]:
        """The classes of this script with a base that is certainly not a library's."""
        return self._classes.possible_heirs

    @property
    def assigned_attributes(
        self,
    ) -> tuple[dict[tuple[Scope | None, str], list[Binding]], dict[str, list[AttributeBinding]]]:
        """The assignments to attributes in this script: to those of ``self``, by class and attribute, and
        to others.
        """
        return self._classes.assigned_attributes

    # Questions about code, answered with the names of its own file

    def _elsewhere(self, scope: Scope) -> LinkedNames | None:
        """The names of the scope's file, if that is a different one."""
        if self._script.workspace is None:
            return None
        home = self._script.home(scope)
        return home.names if home is not self._script else None

    def bindings(self, at: Occurrence) -> list[Binding]:
        """The bindings that may give a name or an attribute its value; none for another expression."""
        return (self._elsewhere(at.scope) or self._provenance).bindings(at)

    def source_of(self, binding: Binding) -> Step:
        """The sources of a binding's value, as occurrences."""
        return (self._elsewhere(binding.scope) or self._provenance).source_of(binding)

    def elements(self, at: Occurrence, path: tuple[Slot, ...] = ()) -> Step:
        """The step to the elements of an iterable, unpacked along `path`."""
        return (self._elsewhere(at.scope) or self._provenance).elements(at, path)

    def unpacked(self, at: Occurrence, path: tuple[Slot, ...]) -> Step:
        """The step to the part of a value that unpacking along `path` takes."""
        return (self._elsewhere(at.scope) or self._containers).unpacked(at, path)

    def item(self, at: Occurrence) -> Step:
        """The step to the element that a subscript selects."""
        return (self._elsewhere(at.scope) or self._containers).item(at)

    def additions(self, at: Occurrence) -> Iterator[ItemBinding]:
        """Yield the later additions to the container of a (dotted) name, by assignment or by a method."""
        return (self._elsewhere(at.scope) or self._containers).additions(at)

    def bound(self, binding: Binding) -> Values:
        """The values of one binding."""
        elsewhere = self._elsewhere(binding.scope)
        return self._bound(binding) if elsewhere is None else elsewhere.bound(binding)

    # Values

    def site_values(self, node: ast.expr, site: Site) -> Values:
        """The possible values of an expression inside a call."""
        return self.values(node, site.scope, site.statement)

    def callee(self, site: Site) -> Values:
        """The possible values of the called expression."""
        return self.values(site.node.func, site.scope, site.statement)

    def full_names(self, node: ast.expr, scope: Scope, statement: Statement | None = None) -> frozenset[str]:
        """The full library names that `node` may resolve to (empty if none)."""
        values = self.values(node, scope, statement)
        found = self._full_names.get(values)
        if found is None:
            names = [value.name for value in values if isinstance(value, Library)]
            found = self._full_names[values] = frozenset(api.canonical(name) or name for name in names)
        return found

    def calls(self, site: Site, *names: str) -> bool:
        """Return whether the call may be one of the library functions or classes `names`."""
        return not self.full_names(site.node.func, site.scope, site.statement).isdisjoint(names)

    def values(self, node: ast.expr, scope: Scope, statement: Statement | None = None) -> Values:
        """The possible values of `node`, read in `scope` at `statement`."""
        question = (id(node), id(scope))
        known = self.memo.known.get(question)
        if known is not None:
            return known
        if self._script.workspace is not None:
            home = self._script.home(scope)
            if home is not self._script:
                return home.names.values(node, scope, statement)
        plain = self._plain(node)
        if plain:
            self.memo.known[question] = plain
            return plain
        return self.memo.ask(question, self._evaluate, node, scope, statement)

    def _evaluate(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Values:
        if isinstance(node, ast.Name):
            return self._name(node.id, scope, statement)
        if isinstance(node, ast.Attribute):
            base = self.values(node.value, scope, statement)
            return _join(self._attribute(value, node.attr) for value in base)
        if isinstance(node, ast.Call):
            return self._call(node, scope, statement)
        if isinstance(node, _DISPLAYS):
            return frozenset({Display(node, scope, statement)})
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            return _join(self.values(part, scope, statement) for part in alternatives(node))
        if isinstance(node, ast.Subscript | ast.Starred):
            return self._of(self.steps_back(Occurrence(node, scope, statement)) or UNSEEN)
        if isinstance(node, ast.Lambda):
            return frozenset({Function(scope.facts.scope_of[node])})
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            operands = _operands(node)
            known = [self.values(operand, scope, statement) for operand in operands]
            if all(values and all(isinstance(value, Literal) for value in values) for values in known):
                return frozenset({Literal(...)})
        if isinstance(node, ast.JoinedStr):
            return frozenset({Literal("")})
        return ANYTHING

    def _plain(self, node: ast.expr) -> Values:
        """The values of an expression that are the same wherever it is read; none for any other."""
        if isinstance(node, _NAMING):
            return self.member_of_library(node)
        if isinstance(node, ast.Call):
            return self._plain_call(node)
        return frozenset({Literal(node.value)}) if isinstance(node, ast.Constant) else NOTHING

    def _plain_call(self, node: ast.Call) -> Values:
        """The values of a call of a library's function or class, ``Dense(10)``, or of a method of
        its result.
        """
        called = node.func
        if isinstance(called, ast.Call):
            return ANYTHING if self._library_called(called) else NOTHING
        name = self._library_called(node)
        return frozenset({Instance(api.returns(name) or name, node)}) if name else NOTHING

    def _library_called(self, node: ast.Call) -> str:
        """The library's name of a called function; empty if more code decides the result."""
        for value in self.member_of_library(node.func) if isinstance(node.func, _NAMING) else ():
            if isinstance(value, Library):
                name = api.canonical(value.name) or value.name
                if name not in _READ_FURTHER and not is_horovod(name):
                    return name
        return ""

    def _name(self, name: str, scope: Scope, statement: Statement | None) -> Values:
        _, bindings = self.lookup(name, scope, statement)
        if bindings:
            return _join(self.bound(binding) for binding in bindings)
        if name in self._script.module_bindings:
            return ANYTHING
        starred = self._starred(self._script, name)
        if starred:
            return starred
        for module in reversed(self._script.code.star_imports):
            full_name = f"{module}.{name}"
            known = api.canonical(full_name) or api.is_module(full_name) or is_told_of(full_name)
            if known or (module.startswith("horovod") and name in HOROVOD_MEMBERS):
                return frozenset({Library(full_name)})
        return frozenset({Library(f"builtins.{name}")}) if name in _BUILTINS else ANYTHING

    def _bound(self, binding: Binding) -> Values:
        if binding.kind == "import":
            return self._imported(binding)
        if binding.kind == "function" and binding.inner is not None:
            return frozenset({Function(binding.inner)})
        if binding.kind == "class" and binding.inner is not None:
            return frozenset({Class(binding.inner)})
        if binding.kind == "parameter":
            return self._parameter(binding)
        if binding.kind == "deleted":
            return NOTHING
        if binding.value is None:
            return ANYTHING
        if binding.path or binding.kind == "element":
            return self._of(self.source_of(binding))
        return self.values(binding.value, binding.scope, binding.statement)

    def _imported(self, binding: Binding) -> Values:
        """The values of an import; the import of an unknown module may be any object."""
        root = binding.full_name.partition(".")[0]
        if root not in KNOWN_MODULES and self._script.workspace is not None:
            where, last = binding.full_name, _NO_NAMES
            if binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom):
                # A name of the package takes precedence over a submodule of the same name.
                where, last = _split(where)
            path, rest = self._script.workspace.locate(self._script, where)
            if path:
                return self._imported_from(path, (*rest, *last))
        if binding.full_name.startswith("."):
            return ANYTHING
        module = Library(binding.full_name)
        from_module = binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom)
        if not from_module or root in KNOWN_MODULES or root in sys.stdlib_module_names:
            return frozenset({module})
        if is_known(binding.full_name):
            return frozenset({module})
        return frozenset({module, UNKNOWN})

    def _imported_from(self, path: str, names: tuple[str, ...]) -> Values:
        found: Values = frozenset({Module(path)})
        for name in names:
            found = _join(self._attribute(value, name) for value in found)
        return found

    def _module_member(self, module: Module, name: str) -> Values:
        """The values of `name` in a module of the workspace: one of its names, or a submodule."""
        # Modules may import the name from each other.
        return self.memo.ask((module, name), self._find_member, module, name)

    def _starred(self, script: LinkedScript, name: str) -> Values:
        """The values of `name` through the script's star imports from the workspace; none if no module
        has it.
        """
        for path in script.star_paths:
            found = self._module_member(Module(path), name)
            if found and found != ANYTHING:
                return found
        return NOTHING

    def _find_member(self, module: Module, name: str) -> Values:
        workspace = self._script.workspace
        assert workspace is not None
        script = workspace.script(module.path)
        if script is not None:
            found = _join(script.names.bound(each) for each in script.module_bindings.get(name, ()))
            found = found or self._starred(script, name)
            if found:
                return found
        below = workspace.below(module.path, name)
        return frozenset({Module(below)}) if below else ANYTHING

    def attribute_of(self, value: Value, name: str) -> Values:
        """The possible values of an object's attribute."""
        return self._attribute(value, name)

    def _attribute(self, value: Value, name: str) -> Values:
        if isinstance(value, Library):
            return self._added(value, name) or frozenset({Library(f"{value.name}.{name}")})
        if isinstance(value, Module):
            return self._module_member(value, name)
        if isinstance(value, Class):
            bound = self.memo.ask(("bound", value, name), self._assigned, value, name)
            return self._class_attribute(value.scope, name) | bound or ANYTHING
        if isinstance(value, UserInstance):
            own = self.memo.ask(("own", value, name), self._method, value, name)
            bound = self.memo.ask(("bound", value, name), self._object_attribute, value, name)
            if own or bound:
                return own | bound | self._overridden(value, name)
            if self.memo.is_open(("bound", value, name)):  # ``self.a = wrapped(self.a)``
                return NOTHING
            if any(isinstance(each, str) for each in self.ancestry(value.scope)):
                return frozenset({Member(value, name)})
            return ANYTHING
        if isinstance(value, Instance):
            return frozenset({Member(value, name)})
        return ANYTHING

    def _added(self, module: Library, name: str) -> Values:
        """The values of an attribute that the script adds to a module of TensorFlow or Keras."""
        added = (
            each.binding
            for each in self._script.attribute_bindings(name)
            if f"{dotted(each.base)}.{name}" in self._lookup.own_members
            and module in self.member_of_library(each.base)
        )
        return _join(map(self.bound, added))

    def _overridden(self, owner: UserInstance, name: str) -> Values:
        """The values of an attribute of ``self`` that only a library's base class has."""
        libraries = self.library_bases(owner.scope)
        if owner.node is not None or all(map(_is_standard, libraries)) or not self.heirs(owner.scope):
            return NOTHING
        alone = UserInstance(owner.scope, _NO_CALL)
        own = self.memo.ask(("own", alone, name), self._method, alone, name)
        bound = self.memo.ask(("bound", alone, name), self._object_attribute, alone, name)
        return frozenset() if own or bound else frozenset({Member(owner, name)})

    def _class_attribute(self, cls: Scope, name: str) -> Values:
        for each in self.ancestry(cls):
            if isinstance(each, Scope) and name in each.bindings:
                return _join(self.bound(binding) for binding in each.bindings[name])
        return NOTHING

    def _method(self, owner: UserInstance, name: str) -> Values:
        """The values of a method in the possible classes of an object; ``self`` may be of a subclass."""
        found = self._class_attribute(owner.scope, name)
        for heir in self.heirs(owner.scope) if owner.node is None else ():
            found = found.union(*(self.bound(binding) for binding in heir.bindings.get(name, ())))
        bound: set[Value] = set()
        for value in found:
            if not isinstance(value, Function):
                bound.add(value)
            elif is_property(value.scope):
                bound |= self._returned(value.scope)
            else:
                bound.add(Function(value.scope, owner))
        return frozenset(bound)

    def _object_attribute(self, owner: UserInstance, name: str) -> Values:
        """The values assigned to an attribute of an object."""
        given = map(self._of, self.field_values(owner, name))
        return _join([self._assigned(owner, name), *given])

    def _assigned(self, owner: UserInstance | Class, name: str) -> Values:
        return _join(map(self.bound, self.object_bindings(owner, name)))

    def _call(self, node: ast.Call, scope: Scope, statement: Statement | None) -> Values:
        answers: set[Value] = set()
        for value in self.values(node.func, scope, statement):
            answers |= self._called(value, node, scope, statement)
        return frozenset(answers)

    def _called(self, value: Value, node: ast.Call, scope: Scope, statement: Statement | None) -> Values:
        if isinstance(value, Library):
            return self._called_library(value, node, scope, statement)
        if isinstance(value, Class):
            return frozenset({UserInstance(value.scope, node)})
        if isinstance(value, Function | UserInstance):
            function = self.function_of(value)
            return self._returned(function) if function is not None else ANYTHING
        if isinstance(value, Instance) and value.cls == "collections.namedtuple":
            return frozenset({Instance(RECORD, node)})
        if isinstance(value, Member):
            for cls in self._classes_of(value.owner):
                returned = api.returns(f"{cls}.{value.name}")
                if returned is not None:
                    return frozenset({Instance(returned, node)})
                if _is_standard(cls) or follows_objects(cls.partition(".")[0]):
                    return frozenset({Instance(f"{cls}.{value.name}", node)})
        return ANYTHING

    def _called_library(
        self, value: Library, node: ast.Call, scope: Scope, statement: Statement | None
    ) -> Values:
        name = api.canonical(value.name) or value.name
        first = node.args[0] if node.args else None
        if wraps_optimizer(name) and first is not None:
            return self.values(first, scope, statement)
        if wraps_tape(name):
            return frozenset({Instance(WRAPPED_TAPE, node)})
        if name == _FIELD:
            return self._field(node, scope, statement)
        if name in _TRANSPARENT:
            return self.values(first, scope, statement) if first is not None else frozenset({value})
        if name == "functools.partial" and first is not None:
            values = self.values(first, scope, statement)
            return frozenset(v for v in values if isinstance(v, Function)) or ANYTHING
        if name == "builtins.super" and not node.args:
            base = self._base_of(scope)
            return frozenset({UserInstance(base, node) if base is not None else Instance(name, node)})
        if name == "builtins.dict" and node.keywords:
            return frozenset({Display(node, scope, statement)})
        return frozenset({Instance(api.returns(name) or name, node)})

    def _field(self, node: ast.Call, scope: Scope, statement: Statement | None) -> Values:
        """The values of a dataclass field's default."""
        given = {word.arg: word.value for word in node.keywords}
        if "default" in given:
            return self.values(given["default"], scope, statement)
        made = self.values(given["default_factory"], scope, statement) if "default_factory" in given else ()
        return _join(self._called(value, node, scope, statement) for value in made)

    def _base_of(self, scope: Scope) -> Scope | None:
        """The class of the script that ``super()`` refers to in a method, if there is one."""
        owner = class_around(scope)
        bases = self.ancestry(owner)[1:2] if owner is not None else []
        return next((base for base in bases if isinstance(base, Scope)), None)

    def _classes_of(self, value: Instance | UserInstance) -> Iterable[str]:
        return [value.cls] if isinstance(value, Instance) else self.library_bases(value.scope)

    def _returned(self, function: Scope) -> Values:
        if function.is_generator or isinstance(function.node, ast.AsyncFunctionDef):
            return ANYTHING
        if not function.returns:
            return frozenset({Literal(None)})
        return self.memo.ask(("returned", id(function)), self._joined_returns, function)

    def _joined_returns(self, function: Scope) -> Values:
        return _join(self.values(value, function, statement) for value, statement in function.returns)

    def _parameter(self, binding: Binding) -> Values:
        return self.memo.ask(("parameter", id(binding)), self._find_parameter, binding)

    def _find_parameter(self, binding: Binding) -> Values:
        function = binding.inner
        assert function is not None
        assert isinstance(binding.target, ast.arg)
        name = binding.target.arg
        owner = function.owner()
        if owner is not None and self.is_self(ast.Name(name, ast.Load()), function):
            return frozenset(
                {Class(owner) if is_decorated(function, "classmethod") else UserInstance(owner, None)}
            )
        return self._of(self.source_of(binding))

    def _of(self, step: Step) -> Values:
        """The values of a step's sources."""
        found = _join(self.values(each.node, each.scope, each.statement) for each in step.sources)
        return found | ANYTHING if step.unseen else found


def _split(full_name: str) -> tuple[str, tuple[str, ...]]:
    """The module and the name of a ``from`` import; the dots of a relative one stay with the module."""
    module, _, name = full_name.rpartition(".")
    dots = full_name[: len(full_name) - len(full_name.lstrip("."))]
    return (module if module.strip(".") else dots), (name,)


def _operands(node: ast.expr) -> list[ast.expr]:
    """The operands of an expression; those of a long sum all at once."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        found.append(node.right)
        node = node.left
    if found:
        return [*found, node]
    return [child for child in children(node) if isinstance(child, ast.expr)]


def _is_standard(full_name: str) -> bool:
    """Return whether a class is one of Python's own library."""
    return full_name.partition(".")[0] in sys.stdlib_module_names


def _join(parts: Iterable[Values]) -> Values:
    return NOTHING.union(*parts)
