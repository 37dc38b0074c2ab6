"""Names and values: what an expression stands for, as a set that may hold "unknown".

This is σ of SPEC §1: rules ask what an expression resolves to, whatever its spelling, and get
every value that it may have.  A name may be dotted (``self.optimizer``), come in as a parameter,
out of a call, a container or a tuple.  Nothing is imported and nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trainshift.core.lazy import cached_property
from trainshift.core.names import api
from trainshift.core.names.reaching import Reaching
from trainshift.core.text.facts import (
    AttributeBinding,
    Binding,
    Scope,
    Site,
    Statement,
    closure,
    dotted,
    hides_arguments,
    last_name,
)

if TYPE_CHECKING:
    from trainshift.core.names.script import Script


@dataclass(frozen=True, slots=True)
class Library:
    """A module, class or function of a library, by its full name as imported."""

    name: str


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the workspace: the path of its file, or of the directory of a package without one."""

    path: str


@dataclass(frozen=True, slots=True)
class Instance:
    """What calling the library's `cls` gave, at the call `node`; `cls` is canonical where known."""

    cls: str
    node: ast.Call


@dataclass(frozen=True, slots=True)
class Member:
    """A library attribute or method of an object: ``dataset.batch``."""

    owner: Instance | UserInstance
    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function or lambda of the script; `owner` is the object it is bound to, if any."""

    scope: Scope
    owner: UserInstance | None = None


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the script."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class UserInstance:
    """An object of a class of the script; `node` is the call that made it, None for ``self``."""

    scope: Scope
    node: ast.Call | None


@dataclass(frozen=True, slots=True)
class Display:
    """A list, tuple, set, dict or comprehension written out in the script."""

    node: ast.expr
    scope: Scope
    statement: Statement | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string or other constant, or arithmetic on such."""

    value: object


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the script does not show."""


Value: TypeAlias = (
    Library | Module | Instance | Member | Function | Class | UserInstance | Display | Literal | Unknown
)
Values: TypeAlias = frozenset[Value]

UNKNOWN = Unknown()
# The making of an object that is of no heir's class.
_NO_CALL = ast.Call(ast.Name("object", ast.Load()), [], [])
_NOTHING: Values = frozenset()
_NO_NAMES: tuple[str, ...] = ()
_ANYTHING: Values = frozenset({UNKNOWN})
_BUILTINS = frozenset(dir(builtins))
_KNOWN_MODULES = frozenset({"tensorflow", "keras", "horovod"})
_HOROVOD = frozenset(
    {
        "init", "rank", "size", "local_rank", "local_size", "broadcast_variables", "broadcast", "allreduce",
        "DistributedGradientTape", "DistributedOptimizer", "callbacks",
    }
)  # fmt: skip
WRAPPED_TAPE = "horovod.tensorflow.DistributedGradientTape"
_TRANSPARENT = frozenset(
    {
        "tensorflow.function",
        "tensorflow.autograph.experimental.do_not_convert",
        "builtins.list",
        "builtins.tuple",
        "builtins.sorted",
        "builtins.reversed",
        "builtins.iter",
    }
)
# What calls are called that may give what they are given; `getattr` may give anything.
PASSING_ON = frozenset(name.rpartition(".")[2] for name in _TRANSPARENT) | {"DistributedOptimizer", "getattr"}

Question: TypeAlias = tuple[object, ...]
# An end for absurd scripts.
_MOST_ANSWERS = 500_000
# Questions are not followed through more questions than this, so that Python's stack is enough.
_DEEPEST = 120


class Memo:
    """What is known so far, and the questions that are still open, of scripts that are linked.

    After the `most` answers what is still unknown stays unknown.  `pause` is called before each new answer
    is looked for, and may raise to give up whatever asks.
    """

    def __init__(self, most: int = _MOST_ANSWERS) -> None:
        self.known: dict[Question, Values] = {}
        self._open: dict[Question, int] = {}
        self._cut = 0
        self._provisional: dict[Question, tuple[Values, int]] = {}
        self._until: list[list[Question]] = []
        self._left = most
        self.pause: Callable[[], None] = lambda: None

    def ask(self, question: Question, find: Callable[..., Values], *given: object) -> Values:
        """What `find` answers of what it is `given`, found once; nothing while it is being found.

        An answer that was cut short by questions further out is not the last word; it is kept as long as
        all of these are open.  They are numbered by depth, and a set of them is an integer's bits.
        """
        known = self.known.get(question)
        if known is not None:
            return known
        if question in self._open:
            self._cut |= 1 << self._open[question]
            return _NOTHING
        if question in self._provisional:
            answer, cut = self._provisional[question]
            self._cut |= cut
            return answer
        depth = len(self._open)
        if self._left <= 0 or depth >= _DEEPEST:
            return _ANYTHING
        self._left -= 1
        self.pause()
        self._open[question] = depth
        self._until.append([])
        outer, self._cut = self._cut, 0
        try:
            answer = find(*given)
        finally:
            del self._open[question]
            for each in self._until.pop():
                del self._provisional[each]
        cut = self._cut & ((1 << depth) - 1)
        if cut:
            self._provisional[question] = answer, cut
            self._until[cut.bit_length() - 1].append(question)
        else:
            self.known[question] = answer
        self._cut = outer | cut
        return answer


class Resolver:
    """Evaluates expressions of one script; answers are kept for the script's life.

    A question about code of another script of the same workspace is passed on to that one's resolver.
    """

    def __init__(self, script: Script, memo: Memo | None = None) -> None:
        self._script = script
        self.memo = memo or Memo()
        self._callers: dict[Scope, tuple[list[Site], bool]] = {}
        self._aliases: dict[str, set[str]] | None = None
        self._reachings: dict[tuple[Scope | None, str], Reaching] = {}
        self._members: dict[str, Values] = {}
        self._full_names: dict[Values, frozenset[str]] = {}

    # Questions that rules ask

    def values(self, node: ast.expr, scope: Scope, statement: Statement | None = None) -> Values:
        """Everything that `node` may stand for, read in `scope` at `statement`."""
        if self._script.workspace is not None:
            home = self._script.home(scope)
            if home is not self._script:
                return home.names.values(node, scope, statement)
        question = (id(node), id(scope))
        known = self.memo.known.get(question)
        if known is not None:
            return known
        plain = self._plain(node)
        if plain:
            self.memo.known[question] = plain
            return plain
        return self.memo.ask(question, self._evaluate, node, scope, statement)

    def site_values(self, node: ast.expr, site: Site) -> Values:
        """Everything that an expression inside a call may stand for."""
        return self.values(node, site.scope, site.statement)

    def callee(self, site: Site) -> Values:
        """Everything that the called expression may stand for."""
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
        """Whether the call may be one of the library functions or classes `names`."""
        return not self.full_names(site.node.func, site.scope, site.statement).isdisjoint(names)

    def is_a(self, value: Value, *families: str) -> bool:
        """Whether `value` is an object of one of the classes `families` or of their subclasses."""
        if isinstance(value, Instance):
            return api.is_subclass(value.cls, *families)
        if isinstance(value, UserInstance):
            return any(api.is_subclass(name, *families) for name in self.library_bases(value.scope))
        return False

    def may_be(self, values: Values, *families: str) -> bool:
        """Whether some of `values` is an object of one of `families`."""
        return any(self.is_a(value, *families) for value in values)

    def library_bases(self, cls: Scope) -> set[str]:
        """The library classes that a class of the script derives from, through its own bases."""
        found: set[str] = set()
        for each in self.ancestry(cls):
            if isinstance(each, str):
                found.add(each)
        return found

    def ancestry(self, cls: Scope) -> list[Scope | str]:
        """The class, then its bases: scopes of the script's classes, full names of library ones."""
        order: list[Scope | str] = []
        waiting: list[Scope | str] = [cls]
        while waiting:
            current = waiting.pop(0)
            if current in order:
                continue
            order.append(current)
            if isinstance(current, str):
                continue
            assert isinstance(current.node, ast.ClassDef)
            for base in current.node.bases:
                for value in self.values(base, current.parent or current, current.statement):
                    if isinstance(value, Class):
                        waiting.append(value.scope)
                    elif isinstance(value, Library):
                        waiting.append(api.canonical(value.name) or value.name)
        return order

    def function_named(self, cls: Scope, name: str) -> Scope | None:
        """The method `name` of a class of the script or of its nearest base that has one."""
        for each in self.ancestry(cls):
            if isinstance(each, Scope):
                for binding in each.bindings.get(name, ()):
                    if binding.inner is not None and binding.kind == "function":
                        return binding.inner
        return None

    def called_functions(self, site: Site) -> list[Scope]:
        """The functions of the script that the call may run (a class: its ``__init__``)."""
        found = []
        for value in self.callee(site):
            if isinstance(value, Function):
                found.append(value.scope)
            elif isinstance(value, Class):
                init = self.function_named(value.scope, "__init__")
                if init is not None:
                    found.append(init)
            elif isinstance(value, UserInstance):
                for name in ("__call__", "call"):
                    method = self.function_named(value.scope, name)
                    if method is not None:
                        found.append(method)
                        break
        return found

    def callers(self, function: Scope) -> tuple[list[Site], bool]:
        """The calls that may run `function`, and whether it may also be run from elsewhere.

        "Elsewhere" is true for a function that is passed on as a value, and for one that
        nothing in the script calls.
        """
        home = self._script.home(function)
        if home is not self._script:
            return home.names.callers(function)
        if function not in self._callers:
            # A question about itself, asked while it is being answered, sees no callers.
            self._callers[function] = ([], True)
            self._callers[function] = self._find_callers(function)
        return self._callers[function]

    def lookup(
        self, name: str, scope: Scope, statement: Statement | None
    ) -> tuple[Scope | None, list[Binding]]:
        """The bindings that `name` may have where it is read, and the scope that holds them.

        The scope is None for a module-level name; no bindings at all means a builtin, a name of
        a star import, or an undefined name.
        """
        home = self._script.home(scope)
        if home is not self._script:
            return home.names.lookup(name, scope, statement)
        current: Scope | None = scope
        first = True
        while current is not None and current.kind != "module":
            skipped = current.kind == "class" and not first
            if name in current.declared_global:
                break
            if not skipped and name in current.bindings and name not in current.declared_nonlocal:
                return current, self._reaching(name, current, current.bindings[name], statement)
            first = first and current.kind == "comprehension"
            current = current.parent
        bindings = self._script.module_bindings.get(name, [])
        return None, self._reaching(name, None, bindings, statement)

    # Evaluation

    def _evaluate(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Values:
        if isinstance(node, ast.Name):
            return self._name(node.id, scope, statement)
        if isinstance(node, ast.Attribute):
            base = self.values(node.value, scope, statement)
            return self._join(self._attribute(value, node.attr) for value in base)
        if isinstance(node, ast.Call):
            return self._call(node, scope, statement)
        if isinstance(node, ast.IfExp):
            return self.values(node.body, scope, statement) | self.values(node.orelse, scope, statement)
        if isinstance(node, ast.BoolOp):
            return self._join(self.values(value, scope, statement) for value in node.values)
        if isinstance(node, ast.NamedExpr | ast.Starred):
            return self.values(node.value, scope, statement)
        if isinstance(
            node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.DictComp
        ):
            return frozenset({Display(node, scope, statement)})
        if isinstance(node, ast.GeneratorExp):
            return frozenset({Display(node, scope, statement)})
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope, statement)
        if isinstance(node, ast.Lambda):
            return frozenset({Function(scope.facts.scope_of[node])})
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            operands = _operands(node)
            known = [self.values(operand, scope, statement) for operand in operands]
            if all(values and all(isinstance(value, Literal) for value in values) for values in known):
                return frozenset({Literal(None)})
        if isinstance(node, ast.JoinedStr):
            return frozenset({Literal("")})
        return _ANYTHING

    def _plain(self, node: ast.expr) -> Values:
        """What an expression stands for that is the same wherever it is read; nothing for any other."""
        if isinstance(node, ast.Name | ast.Attribute):
            return self._member_of_library(node)
        return frozenset({Literal(node.value)}) if isinstance(node, ast.Constant) else _NOTHING

    def _member_of_library(self, node: ast.expr) -> Values:
        """What a dotted name stands for whose root always means one library: ``tf.keras.Model``, mostly."""
        name = dotted(node)
        root, dot, below = name.partition(".")
        imported = self._libraries.get(root, ())
        if len(imported) != 1:
            return _NOTHING
        found = self._members.get(name)
        if found is None:
            (module,) = imported
            found = self._members[name] = frozenset({Library(module + dot + below)})
        return found

    @cached_property
    def _libraries(self) -> dict[str, set[str]]:
        """The names that always mean a library that is known, in any scope of the script; and which one."""
        return {
            name: {binding.full_name for binding in bindings}
            for name, bindings in self._script.module_bindings.items()
            if name not in self._script.code.local_names
            and all(
                binding.kind == "import" and binding.full_name.partition(".")[0] in _KNOWN_MODULES
                for binding in bindings
            )
        }

    def _name(self, name: str, scope: Scope, statement: Statement | None) -> Values:
        _, bindings = self.lookup(name, scope, statement)
        if bindings:
            return self._join(self.bound(binding) for binding in bindings)
        if name in self._script.module_bindings:
            return _ANYTHING
        starred = self._starred(self._script, name)
        if starred:
            return starred
        for module in reversed(self._script.code.star_imports):
            full_name = f"{module}.{name}"
            known = api.canonical(full_name) or api.is_module(full_name)
            if known or (module.startswith("horovod") and name in _HOROVOD):
                return frozenset({Library(full_name)})
        return frozenset({Library(f"builtins.{name}")}) if name in _BUILTINS else _ANYTHING

    def bound(self, binding: Binding) -> Values:
        """The values that one binding gives to its name."""
        if binding.kind == "import":
            return self._imported(binding)
        if binding.kind == "function" and binding.inner is not None:
            return frozenset({Function(binding.inner)})
        if binding.kind == "class" and binding.inner is not None:
            return frozenset({Class(binding.inner)})
        if binding.kind == "parameter":
            return self._parameter(binding)
        if binding.kind == "deleted":
            return _NOTHING
        if binding.value is None:
            return _ANYTHING
        if binding.kind == "element":
            return self._element(binding.value, binding.scope, binding.statement, binding.path)
        values = self.values(binding.value, binding.scope, binding.statement)
        return self._unpack(values, binding.path)

    def _imported(self, binding: Binding) -> Values:
        """What an import binds: of a module that is not known it may be any object."""
        root = binding.full_name.partition(".")[0]
        if root not in _KNOWN_MODULES and self._script.workspace is not None:
            where, last = binding.full_name, _NO_NAMES
            if binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom):
                # A name of the package comes before a module of the same name below it.
                where, last = _split(where)
            path, rest = self._script.workspace.locate(self._script, where)
            if path:
                return self._imported_from(path, (*rest, *last))
        if binding.full_name.startswith("."):
            return _ANYTHING
        module = Library(binding.full_name)
        from_module = binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom)
        if not from_module or root in _KNOWN_MODULES or root in sys.stdlib_module_names:
            return frozenset({module})
        return frozenset({module, UNKNOWN})

    def _imported_from(self, path: str, names: tuple[str, ...]) -> Values:
        found: Values = frozenset({Module(path)})
        for name in names:
            found = self._join(self._attribute(value, name) for value in found)
        return found

    def _module_member(self, module: Module, name: str) -> Values:
        """What a module of the workspace calls `name`: one of its own names, or a module below it."""
        # Modules may import the name from each other.
        return self.memo.ask((module, name), self._find_member, module, name)

    def _starred(self, script: Script, name: str) -> Values:
        """What `name` is through the script's star imports from the workspace; nothing if it is in none."""
        for path in script.star_paths:
            found = self._module_member(Module(path), name)
            if found and found != _ANYTHING:
                return found
        return _NOTHING

    def _find_member(self, module: Module, name: str) -> Values:
        workspace = self._script.workspace
        assert workspace is not None
        script = workspace.script(module.path)
        if script is not None:
            found = self._join(script.names.bound(each) for each in script.module_bindings.get(name, ()))
            found = found or self._starred(script, name)
            if found:
                return found
        below = workspace.below(module.path, name)
        return frozenset({Module(below)}) if below else _ANYTHING

    def _attribute(self, value: Value, name: str) -> Values:
        if isinstance(value, Library):
            return frozenset({Library(f"{value.name}.{name}")})
        if isinstance(value, Module):
            return self._module_member(value, name)
        if isinstance(value, Class):
            return self._class_attribute(value.scope, name) or _ANYTHING
        if isinstance(value, UserInstance):
            own = self.memo.ask(("own", value, name), self._method, value, name)
            bound = self.memo.ask(("bound", value, name), self._object_attribute, value, name)
            if own or bound:
                return own | bound | self._overridden(value, name)
            if any(isinstance(each, str) for each in self.ancestry(value.scope)):
                return frozenset({Member(value, name)})
            return _ANYTHING
        if isinstance(value, Instance):
            return frozenset({Member(value, name)})
        return _ANYTHING

    def _overridden(self, owner: UserInstance, name: str) -> Values:
        """What a library gives ``self``, where only heirs have an attribute of that name."""
        libraries = self.library_bases(owner.scope)
        if owner.node is not None or all(map(_is_standard, libraries)) or not self.heirs(owner.scope):
            return _NOTHING
        alone = UserInstance(owner.scope, _NO_CALL)
        own = self.memo.ask(("own", alone, name), self._method, alone, name)
        bound = self.memo.ask(("bound", alone, name), self._object_attribute, alone, name)
        return frozenset() if own or bound else frozenset({Member(owner, name)})

    def _class_attribute(self, cls: Scope, name: str) -> Values:
        for each in self.ancestry(cls):
            if isinstance(each, Scope) and name in each.bindings:
                return self._join(self.bound(binding) for binding in each.bindings[name])
        return _NOTHING

    def _method(self, owner: UserInstance, name: str) -> Values:
        """What the classes that the object may be of give it; ``self`` may be of an heir."""
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
        """What is assigned to an attribute of the object."""
        classes = {owner.scope, *(self.heirs(owner.scope) if owner.node is None else ())}
        family = {each for each in self.ancestry(owner.scope) if isinstance(each, Scope)} | classes
        found: Values = _NOTHING
        homes = dict.fromkeys([self._script, *(self._script.home(each) for each in family)])
        for own, others in (home.names.assigned_attributes for home in homes):
            for binding in (each for cls in family for each in own.get((cls, name), ())):
                found |= self.bound(binding)
            for attribute in others.get(name, ()):
                binding = attribute.binding
                if any(
                    isinstance(value, UserInstance) and value.scope in classes
                    for value in self.values(attribute.base, binding.scope, binding.statement)
                ):
                    found |= self.bound(binding)
        return found

    @cached_property
    def assigned_attributes(
        self,
    ) -> tuple[dict[tuple[Scope | None, str], list[Binding]], dict[str, list[AttributeBinding]]]:
        """What this script assigns to attributes: of ``self``, by class and attribute; and of the rest."""
        own: dict[tuple[Scope | None, str], list[Binding]] = {}
        others: dict[str, list[AttributeBinding]] = {}
        for name, attributes in self._script.code.attributes.items():
            for attribute in attributes:
                scope = attribute.binding.scope
                if self.is_self(attribute.base, scope):
                    function = scope.function()
                    owner = function.owner() if function is not None else None
                    own.setdefault((owner, name), []).append(attribute.binding)
                else:
                    others.setdefault(name, []).append(attribute)
        return own, others

    def is_self(self, node: ast.expr, scope: Scope) -> bool:
        """Whether `node` is the first parameter of the method that it stands in."""
        function = _method_around(scope)
        if function is None or not isinstance(node, ast.Name):
            return False
        # A lambda in the body of a class is passed on there, as a rule, and is no method.
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        arguments = function.node.args
        first = [*arguments.posonlyargs, *arguments.args][:1]
        return bool(first) and first[0].arg == node.id and not _decorated(function, "staticmethod")

    def _call(self, node: ast.Call, scope: Scope, statement: Statement | None) -> Values:
        answers: set[Value] = set()
        for value in self.values(node.func, scope, statement):
            answers |= self._called(value, node, scope, statement)
        return frozenset(answers)

    def _called(self, value: Value, node: ast.Call, scope: Scope, statement: Statement | None) -> Values:
        if isinstance(value, Library):
            name = api.canonical(value.name) or value.name
            first = node.args[0] if node.args else None
            if name.startswith("horovod.") and name.endswith(".DistributedOptimizer") and first is not None:
                return self.values(first, scope, statement)
            if name.startswith("horovod.") and name.endswith(".DistributedGradientTape"):
                return frozenset({Instance(WRAPPED_TAPE, node)})
            if name in _TRANSPARENT:
                return self.values(first, scope, statement) if first is not None else frozenset({value})
            if name == "functools.partial" and first is not None:
                values = self.values(first, scope, statement)
                return frozenset(v for v in values if isinstance(v, Function)) or _ANYTHING
            if name == "builtins.super" and not node.args:
                base = self._base_of(scope)
                return frozenset({UserInstance(base, node) if base is not None else Instance(name, node)})
            if name == "builtins.dict" and node.keywords:
                return frozenset({Display(node, scope, statement)})
            return frozenset({Instance(api.returns(name) or name, node)})
        if isinstance(value, Class):
            return frozenset({UserInstance(value.scope, node)})
        if isinstance(value, Function):
            return self._returned(value.scope)
        if isinstance(value, Member):
            for cls in self._classes(value.owner):
                returned = api.returns(f"{cls}.{value.name}")
                if returned is not None:
                    return frozenset({Instance(returned, node)})
                if _is_standard(cls):
                    return frozenset({Instance(f"{cls}.{value.name}", node)})
        return _ANYTHING

    def _base_of(self, scope: Scope) -> Scope | None:
        """The class of the script's own that ``super()`` stands for in a method, if there is one."""
        owner = class_around(scope)
        bases = self.ancestry(owner)[1:2] if owner is not None else []
        return next((base for base in bases if isinstance(base, Scope)), None)

    def _classes(self, value: Instance | UserInstance) -> Iterable[str]:
        return [value.cls] if isinstance(value, Instance) else self.library_bases(value.scope)

    def _returned(self, function: Scope) -> Values:
        if function.is_generator or isinstance(function.node, ast.AsyncFunctionDef):
            return _ANYTHING
        if not function.returns:
            return frozenset({Literal(None)})
        return self.memo.ask(("returned", id(function)), self._joined_returns, function)

    def _joined_returns(self, function: Scope) -> Values:
        return self._join(self.values(value, function, statement) for value, statement in function.returns)

    def _subscript(self, node: ast.Subscript, scope: Scope, statement: Statement | None) -> Values:
        base = self.values(node.value, scope, statement)
        if isinstance(node.slice, ast.Slice):  # some of the elements, in a container again
            return base if base and all(isinstance(value, Display) for value in base) else _ANYTHING
        found: Values = _NOTHING
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        for value in base:
            if isinstance(value, Display):
                found |= self._item(value, key)
            elif not (isinstance(value, Instance) and value.cls == "builtins.dict"):
                found |= _ANYTHING
        for item in self._script.item_bindings(last_name(node.value)):
            if dotted(item.base) == dotted(node.value) != "":
                other = item.key.value if isinstance(item.key, ast.Constant) else None
                if key is None or other is None or key == other:
                    found |= self.bound(item.binding)
        return found or _ANYTHING

    def _item(self, display: Display, key: object) -> Values:
        node = display.node
        if isinstance(node, ast.List | ast.Tuple) and isinstance(key, int):
            plain = not any(isinstance(element, ast.Starred) for element in node.elts)
            if plain and -len(node.elts) <= key < len(node.elts):
                return self.values(node.elts[key], display.scope, display.statement)
        if isinstance(node, ast.Dict) and key is not None:
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key:
                    return self.values(value, display.scope, display.statement)
        if isinstance(node, ast.Call) and key is not None:
            for word in node.keywords:
                if word.arg == key:
                    return self.values(word.value, display.scope, display.statement)
        return self._elements(display)

    def _elements(self, display: Display) -> Values:
        node = display.node
        parts: Iterable[ast.expr | None] = ()
        scope = display.scope
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.values
        elif isinstance(node, ast.Call):
            parts = [word.value for word in node.keywords]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            parts = [node.value if isinstance(node, ast.DictComp) else node.elt]
            scope = scope.facts.scope_of[node]
        return self._join(self.values(part, scope, display.statement) for part in parts if part is not None)

    def _element(
        self, node: ast.expr, scope: Scope, statement: Statement | None, path: tuple[int, ...]
    ) -> Values:
        """What iterating `node` yields, unpacked along `path`."""
        if isinstance(node, ast.Call):
            names = self.full_names(node.func, scope, statement)
            if "builtins.enumerate" in names and node.args:
                if path[:1] == (1,):
                    return self._element(node.args[0], scope, statement, path[1:])
                return _ANYTHING
            if "builtins.zip" in names and path and 0 <= path[0] < len(node.args):
                return self._element(node.args[path[0]], scope, statement, path[1:])
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("values", "items"):
                if node.func.attr == "items":
                    if path[:1] != (1,):
                        return _ANYTHING
                    path = path[1:]
                node = node.func.value
        found: Values = _NOTHING
        for value in self.values(node, scope, statement):
            if isinstance(value, Display):
                found |= self._unpack(self._elements(value), path)
            else:
                found |= _ANYTHING
        return found

    def _unpack(self, values: Values, path: tuple[int, ...]) -> Values:
        for index in path:
            step: Values = _NOTHING
            for value in values:
                if isinstance(value, Display) and index >= 0:
                    step |= self._item(value, index)
                else:
                    step |= _ANYTHING
            values = step
        return values

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
                {Class(owner) if _decorated(function, "classmethod") else UserInstance(owner, None)}
            )
        sites, elsewhere = self.callers(function)
        found: set[Value] = set()
        for site in sites:
            given = self.argument(site, function, name)
            if given is not None:
                found |= self.site_values(given, site)
            elif hides_arguments(site.node):
                found.add(UNKNOWN)
            elif binding.value is not None:
                found |= self.values(binding.value, binding.scope)
        if elsewhere:
            found.add(UNKNOWN)
            if binding.value is not None:
                found |= self.values(binding.value, binding.scope)
        return frozenset(found)

    def argument(self, site: Site, function: Scope, name: str) -> ast.expr | None:
        """The expression that a call passes for the parameter `name`; None if it passes none."""
        node = function.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for word in site.node.keywords:
            if word.arg == name:
                return word.value
        positional = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        if name not in positional:
            return None
        index = positional.index(name)
        bound = function.owner() is not None and not _decorated(function, "staticmethod")
        of_class = any(isinstance(value, Class) for value in self._receiver(site))
        if bound and not (of_class and site.name == function.name):
            index -= 1
        before = site.node.args[: index + 1]
        if index < 0 or len(before) <= index or any(isinstance(each, ast.Starred) for each in before):
            return None
        return before[index]

    def _receiver(self, site: Site) -> Values:
        if isinstance(site.node.func, ast.Attribute):
            return self.site_values(site.node.func.value, site)
        return _NOTHING

    # Callers

    def _find_callers(self, function: Scope) -> tuple[list[Site], bool]:
        name = function.name
        owner = function.owner()
        if not name:
            return [], True
        wanted = [function]
        if owner is not None and name == "__init__":
            wanted = [owner, *(heir for heir in self.heirs(owner) if "__init__" not in heir.bindings)]
        found: dict[Site, None] = {}
        passed_on = False
        names = dict.fromkeys([*(each.name for each in wanted), name])
        for script in self._script.users:
            for called in script.code.mentioned.intersection(names):
                sites, passed = script.names.calls_by_name(called, function)
                found.update(dict.fromkeys(sites))
                passed_on = passed_on or passed
        return list(found), not found or passed_on

    def heirs(self, cls: Scope) -> list[Scope]:
        """The classes of any linked script that derive from `cls`, directly or not."""
        found = self.memo.ask(("heirs", id(cls)), self._find_heirs, cls)
        return sorted((value.scope for value in found if isinstance(value, Class)), key=self._order)

    def _order(self, cls: Scope) -> tuple[str, int]:
        """What sorts classes by their places."""
        home = self._script.home(cls)
        return home.path, home.statement_span(cls.statement).start if cls.statement is not None else 0

    def _find_heirs(self, cls: Scope) -> Values:
        found: list[Scope] = []
        waiting = [cls]
        while waiting:
            base = waiting.pop()
            for script in self._script.home(cls).users:
                if base.name in script.code.mentioned:
                    for other in script.names.possible_heirs:
                        if other not in (cls, *found) and base in self.ancestry(other):
                            found.append(other)
                            waiting.append(other)
        return frozenset(map(Class, found))

    @cached_property
    def possible_heirs(self) -> list[Scope]:
        """The classes of this script that have a base which is plainly no library's."""
        return [
            cls
            for cls in self._script.code.derived_classes
            if isinstance(cls.node, ast.ClassDef) and not all(map(self._member_of_library, cls.node.bases))
        ]

    def calls_by_name(self, name: str, function: Scope) -> tuple[list[Site], bool]:
        """This script's calls that may run `function`, and whether it may be used otherwise than called.

        `name` is what the function (or the class, for an ``__init__``) is called where it is defined.
        """
        renamed = (new for new, old in self._script.code.renamed_imports if old == name)
        names = closure([name, *renamed], self._alias_names())
        named = list(self._script.sites_named(*sorted(names)))
        found = [site for site in named if function in self.called_functions(site)]
        others = sum(self._reads_of_libraries(each) for each in names)
        reads = sum(self._script.loads(each) for each in names) - others
        named = [site for site in named if not self._is_of_library(site.node.func)]
        aliased = sum(len(self._alias_names().get(each, ())) for each in names)
        return found, reads > len(named) + aliased

    def _reads_of_libraries(self, attribute: str) -> int:
        """How often the attribute is read of a library's module, which is none of the script's functions."""
        read = self._script.code.member_loads.get(attribute, {})
        return sum(number for base, number in read.items() if base in self._libraries)

    def _is_of_library(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self._libraries
        )

    def _alias_names(self) -> dict[str, set[str]]:
        """For each name, the names that a value of that name may be bound to."""
        if self._aliases is None:
            self._aliases = {}
            returned: dict[str, set[str]] = {}
            for scope in self._script.scopes:
                for value, _ in scope.returns:
                    if scope.name and last_name(value):
                        returned.setdefault(scope.name, set()).add(last_name(value))
            for name, value in self._script.code.bound_values:
                if isinstance(value, ast.Call):
                    origins = {last_name(argument) for argument in value.args[:1]}
                    origins |= returned.get(last_name(value.func), set())
                else:
                    origins = {last_name(value)}
                for origin in origins - {"", name}:
                    self._aliases.setdefault(origin, set()).add(name)
        return self._aliases

    # Reaching bindings

    def _reaching(
        self, name: str, scope: Scope | None, bindings: list[Binding], statement: Statement | None
    ) -> list[Binding]:
        """Those of `bindings` that may still hold where `statement` begins.

        All of them where the use is in another function than the bindings, since nothing tells
        when that function runs.
        """
        if len(bindings) < 2 or statement is None:
            return bindings
        home = statement.scope
        if (scope is None) != (home.kind == "module") or (scope is not None and home is not scope):
            return bindings
        key = (scope, name)
        if key not in self._reachings:
            self._reachings[key] = Reaching(self._script, bindings)
        return self._reachings[key].before(statement) or bindings

    def _join(self, parts: Iterable[Values]) -> Values:
        return _NOTHING.union(*parts)


def is_wrap(names: Iterable[str]) -> bool:
    """Whether one of some full names is that of Horovod's wrap of an optimizer."""
    return any(name.startswith("horovod.") and name.endswith(".DistributedOptimizer") for name in names)


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
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def class_around(scope: Scope) -> Scope | None:
    """The class in a method of which the code stands."""
    method = _method_around(scope)
    return method.owner() if method is not None else None


def _method_around(scope: Scope) -> Scope | None:
    function = scope.function()
    while function is not None and function.owner() is None:
        function = function.parent.function() if function.parent is not None else None
    return function


def _is_standard(full_name: str) -> bool:
    """Whether a class is one of Python's own library."""
    return full_name.partition(".")[0] in sys.stdlib_module_names


def is_property(function: Scope) -> bool:
    """Whether a method is read as an attribute."""
    return _decorated(function, "property", "cached_property")


def _decorated(function: Scope, *names: str) -> bool:
    decorators = getattr(function.node, "decorator_list", [])
    return any(last_name(decorator) in names for decorator in decorators)
