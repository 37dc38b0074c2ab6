"""Schedule configs: the methods that a script's schedule class lacks for Keras to copy its objects.

Horovod's wrap recreates an optimizer, with its schedule, from the constructor arguments that `get_config`
returns.  Attributes contain these only if the constructor stores its arguments unchanged: arguments that are
converted to tensors, reassigned or stored under a condition must be saved before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Function, Instance, UserInstance, Values
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Statement, arguments, last_name
from trainshift.training.optimizers.wraps import Wraps

REGISTER = "register_keras_serializable"
_DATACLASS = "dataclasses.dataclass"
# Objects of these libraries are stored in a configuration as a dictionary that describes them.
_OBJECTS = ("tensorflow.", "keras.", "numpy.")
_ANEW = "Horovod recreates the optimizer"
_CANNOT_HOLD = f"{_ANEW} from its configuration, which cannot hold"


class Config(Struct, frozen=True, eq=False):
    """The contents of a new `get_config`: the code that reads each argument; for ``**``, all others.

    The code runs in `get_config` itself.  If attributes do not hold everything, it runs before the statement
    `first` instead, the first of the constructor, whose object is called `me`.
    """

    arguments: dict[str, str]
    first: Statement | None = None
    me: str = "self"


class Remake(Struct, eq=False):
    """A schedule class of the script, and the methods that it lacks for its objects to be copied.

    With `deserializes`, its configuration may contain objects, which its constructor would get as
    dictionaries.  `reason` is the reason why its objects cannot be recreated; empty if they can.
    """

    scope: Scope
    is_registered: bool = True
    config: Config | None = None
    deserializes: bool = False
    reason: str = ""

    @property
    def statement(self) -> Statement:
        """The definition of the class."""
        assert self.scope.statement is not None
        return self.scope.statement


class ScheduleConfigs:
    """The schedule classes of one script that Horovod's wrap recreates."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names

    @cached_property
    def all(self) -> list[Remake]:
        """Every class that lacks something, also for classes that inherit its constructor."""
        found: dict[Scope, Remake] = {}
        made = list(self._program.fact(Wraps).schedules)
        for schedule in made:  # The objects inside schedules are recreated too.
            given = self._given(schedule)
            made += [
                value
                for value in given
                if isinstance(value, UserInstance)
                and self._names.is_a(value, *api.SCHEDULE)
                and value not in made
            ]
            remake = found.setdefault(schedule.scope, Remake(schedule.scope))
            remake.is_registered = REGISTER in _decorators(remake.statement)
            self._complete(remake, found, given)
        return [
            each
            for each in found.values()
            if not each.is_registered or each.config or each.deserializes or each.reason
        ]

    def _complete(self, remake: Remake, found: dict[Scope, Remake], given: Values) -> None:
        """Add the methods that objects of a class need to be recreated from a configuration with such
        values.
        """
        line = self._names.ancestry(remake.scope)
        maker = next((each for each in line if isinstance(each, Scope) and self._constructs(each)), None)
        until = line.index(maker) if maker is not None else len(line)
        written = next((_method(each, "get_config") for each in line[: until + 1] if _configures(each)), None)
        if not any(map(_configures, line[: until + 1])):
            holder = maker or remake.scope
            config = self._config(holder) if maker is not None else Config({})
            found.setdefault(holder, Remake(holder)).config = config
            if config is None:
                remake.reason = f"{_ANEW}; give {remake.scope.name} a get_config method"
            elif any(isinstance(value, Function | Class) for value in given):
                remake.reason = f"{_CANNOT_HOLD} the function that {remake.scope.name} is given"
        held = self._said(written) if written is not None else given
        if self._names.may_be(held, *api.VARIABLE):
            remake.reason = f"{_CANNOT_HOLD} the tf.Variable of {remake.scope.name}"
        objects = any(
            isinstance(value, UserInstance)
            or (isinstance(value, Instance) and value.cls.startswith(_OBJECTS))
            for value in held
        )
        if objects and self._names.function_named(remake.scope, "from_config") is None:
            remake.deserializes = True

    def _given(self, schedule: UserInstance) -> Values:
        """The possible arguments of a schedule's constructor: here, in any other call, or by default."""
        found: Values = frozenset()
        if schedule.node is not None:
            site = self._program.script.site_of(schedule.node)
            found = found.union(*(self._names.site_values(each, site) for each in arguments(site.node)))
        init = self._names.function_named(schedule.scope, "__init__")
        for binding in (each for bound in init.bindings.values() for each in bound) if init else ():
            if binding.kind == "parameter" and binding.target is not _first(init):
                found |= self._names.bound(binding)
        return found

    def _said(self, get_config: Scope) -> Values:
        """The values that a `get_config` of the script puts into its dictionaries."""
        assert get_config.node is not None
        said: list[ast.expr | None] = []
        for part in ast.walk(get_config.node):
            if isinstance(part, ast.Dict):
                said += part.values
            elif isinstance(part, ast.Call):
                said += [word.value for word in part.keywords]
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Subscript):
                said.append(part.value)
        values = (self._names.values(each, get_config) for each in said if each is not None)
        return frozenset[object]().union(*values)  # type: ignore[return-value]

    # Constructors

    def _constructs(self, cls: Scope) -> bool:
        """Return whether a class has a constructor of its own, perhaps from a decorator."""
        known = [REGISTER]
        return _method(cls, "__init__") is not None or any(
            name not in known for name in _decorators(_definition(cls))
        )

    def _config(self, cls: Scope) -> Config | None:
        """The constructor arguments of a class; None if they cannot be recovered."""
        init = _method(cls, "__init__")
        if init is not None:
            return self._of_function(cls, init)
        dataclass = self._dataclass(cls)
        return self._of_fields(cls, dataclass) if dataclass is not None else None

    def _of_function(self, cls: Scope, init: Scope) -> Config | None:
        """The arguments of an ``__init__``: read from attributes that keep them, otherwise saved at its
        start.
        """
        assert isinstance(init.node, ast.FunctionDef | ast.AsyncFunctionDef)
        taken = init.node.args
        me = _first(init)
        if taken.vararg or me is None or len(taken.posonlyargs) > 1 or init.statement is None:
            return None  # A configuration contains only names.
        positional = [*taken.posonlyargs, *taken.args][1:]
        names = [each.arg for each in (*positional, *taken.kwonlyargs)]
        held = {name: self._holding(cls, init, name) for name in names}
        if all(held.values()) and taken.kwarg is None:
            return Config({name: f"self.{attribute}" for name, attribute in held.items()})
        given = {name: name for name in names}
        if taken.kwarg is not None:
            given["**"] = taken.kwarg.arg
        return Config(given, init.statement.branches["body"][0], me.arg)

    def _holding(self, cls: Scope, init: Scope, name: str) -> str:
        """The attribute that keeps an argument unchanged; empty if there is none."""
        if len(init.bindings[name]) > 1:
            return ""
        for attribute, bindings in self._attributes(cls).items():
            (first, *others) = bindings
            always = first.statement is not None and first.statement.parent is init.statement
            if always and not others and first.kind == "value" and not first.path:
                if isinstance(first.value, ast.Name) and first.value.id == name:
                    return attribute
        return ""

    def _attributes(self, cls: Scope) -> dict[str, list[Binding]]:
        """The assignments to attributes by methods of a class, of its bases and of its subclasses."""
        family = {cls, *self._names.heirs(cls), *self._names.ancestry(cls)}
        found: dict[str, list[Binding]] = {}
        for (owner, attribute), bindings in self._names.assigned_attributes[0].items():
            if owner in family:
                found.setdefault(attribute, []).extend(bindings)
        return found

    # Dataclasses

    def _dataclass(self, cls: Scope) -> ast.expr | None:
        """The decorator that makes a class a dataclass."""
        statement = _definition(cls)
        for each in getattr(statement.node, "decorator_list", ()):
            function = each.func if isinstance(each, ast.Call) else each
            names = self._names.full_names(function, statement.scope, statement)
            if _DATACLASS in names:
                return each if isinstance(each, ast.expr) else None
        return None

    def _of_fields(self, cls: Scope, decorator: ast.expr) -> Config | None:
        """The constructor arguments of a dataclass."""
        said = {word.arg for word in decorator.keywords} if isinstance(decorator, ast.Call) else set()
        after = self._names.function_named(cls, "__post_init__")
        fields = dict(self._fields(cls))
        passed = [name for name, is_passed_on in fields.items() if is_passed_on]
        changed = [name for name in fields if name in self._attributes(cls)]
        if "init" in said or ("frozen" in said and after is not None):
            return None
        if not passed and not changed:
            return Config({name: f"self.{name}" for name in fields})
        if after is None or after.parent is not cls or after.statement is None:
            return None
        assert isinstance(after.node, ast.FunctionDef | ast.AsyncFunctionDef)
        me = _first(after)
        if me is None:
            return None
        parameters = [each.arg for each in after.node.args.args if each is not me]
        by_parameter = dict(zip(passed, parameters, strict=False))
        given = {name: by_parameter.get(name, f"{me.arg}.{name}") for name in fields}
        return Config(given, after.statement.branches["body"][0], me.arg)

    def _fields(self, cls: Scope) -> Iterator[tuple[str, bool]]:
        """The fields that a dataclass' constructor takes, and whether it only passes them on."""
        for each in reversed(self._names.ancestry(cls)):
            if isinstance(each, Scope) and self._dataclass(each) is not None:
                for statement in _definition(each).branches["body"]:
                    node = statement.node
                    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                        kind = ast.unparse(node.annotation).strip("'\"").partition("[")[0].rpartition(".")[2]
                        made = node.value.keywords if isinstance(node.value, ast.Call) else []
                        if kind not in ("ClassVar", "KW_ONLY") and all(word.arg != "init" for word in made):
                            yield node.target.id, kind == "InitVar"


def _first(method: Scope | None) -> ast.arg | None:
    """The parameter of a method that is its object."""
    if method is None:
        return None
    assert isinstance(method.node, ast.FunctionDef | ast.AsyncFunctionDef)
    return next(iter([*method.node.args.posonlyargs, *method.node.args.args]), None)


def _method(cls: Scope | str, name: str) -> Scope | None:
    """The method of that name in the body of a class of the script."""
    bindings = cls.bindings.get(name, ()) if isinstance(cls, Scope) else ()
    return next((each.inner for each in bindings if each.kind == "function"), None)


def _configures(cls: Scope | str) -> bool:
    """Return whether a class has a `get_config` for its own or a base's constructor arguments."""
    if isinstance(cls, str):
        return bool(api.rate_parameters(cls))
    return _method(cls, "get_config") is not None


def _definition(cls: Scope) -> Statement:
    assert cls.statement is not None
    return cls.statement


def _decorators(statement: Statement) -> list[str]:
    """The last names of a class' decorators."""
    decorators = getattr(statement.node, "decorator_list", [])
    return [last_name(each.func if isinstance(each, ast.Call) else each) for each in decorators]
