"""Provenance: the possible sources of an expression's value, one step back.

This is the only engine that follows values.  Its callers take these steps, and decide only where to stop: at
a call that creates a model, at a number, at the elements of a literal list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from trainshift.libraries.roles import RECORDS
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.callers import Callers
from trainshift.python.names.classes import ClassHierarchy, is_property
from trainshift.python.names.containers import Containers
from trainshift.python.names.linked import LinkedNames, LinkedScript
from trainshift.python.names.occurrence import UNSEEN, Occurrence, Step, joined, unseen_in
from trainshift.python.names.values import (
    RECORD,
    Class,
    Display,
    Instance,
    Module,
    UserInstance,
    Values,
)
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Slot, alternatives, argument, dotted

# A tuple, because this test runs very often: a union would be built each time.
_NAMED = (ast.Name, ast.Attribute)
_RECORDS = RECORDS | {RECORD}


class Handed(NamedTuple):
    """The argument that a call passes to a parameter, and whether the call may leave it out."""

    step: Step
    may_lack: bool = False


class Provenance:
    """The sources of values in one script: one step back for each kind of expression."""

    def __init__(
        self,
        script: LinkedScript,
        names: LinkedNames,
        classes: ClassHierarchy,
        callers: Callers,
        containers: Containers,
    ) -> None:
        self._script = script
        self._names = names
        self._classes = classes
        self._callers = callers
        self._containers = containers
        # The functions whose callers' collected arguments are being computed.
        self._collected: set[Scope] = set()
        # Answers found while no question about names was open, so that they are final.  The node is kept as
        # well, because a new node may get the `id` of a deleted one.
        self._known: dict[tuple[int, int, int, bool], tuple[Step | None, ast.expr]] = {}

    def all_sources(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """All sources of a value, one step back; none if it is created in place, or some are unseen."""
        step = self.steps_back(at)
        return step.sources if step is not None and not step.unseen else ()

    def steps_back(self, at: Occurrence) -> Step | None:
        """The possible sources of an expression's value, one step back.

        None if the value is created in place: by a call, as a number, as a literal list.
        """
        if self._script.workspace is not None:
            home = self._script.home(at.scope)
            if home is not self._script:
                return home.names.steps_back(at)
        node = at.node
        key = id(node), id(at.scope), id(at.statement), at.tested
        known = self._known.get(key)
        if known is not None:
            return known[0]
        is_decided = self._names.memo.is_idle and not self._collected
        step = self._read(at)
        if is_decided:
            self._known[key] = step, node
        return step

    def _read(self, at: Occurrence) -> Step | None:
        node = at.node
        if isinstance(node, _NAMED):
            steps = [self._names.source_of(binding) for binding in self._names.bindings(at)]
            if isinstance(node, ast.Attribute):
                steps += self._given_by_properties(node, at)
                steps += self.given_to_fields(at)
            step = joined(steps)
            step = step if step.sources or step.unseen else UNSEEN
        elif parts := alternatives(node):
            return _choice(node, parts, at)
        elif isinstance(node, ast.Subscript):
            step = self._names.item(at)
        elif isinstance(node, ast.Starred):
            step = self._names.elements(at.part(node.value))
        elif isinstance(node, ast.Await):
            step = unseen_in(at.part(node.value))
        elif (found := self._given_by_call(node, at)) is not None:
            step = found
        else:
            return None
        if at.tested:
            return step._replace(sources=tuple(each._replace(tested=True) for each in step.sources))
        return step

    def bindings(self, at: Occurrence) -> list[Binding]:
        """The bindings that may give a name or an attribute its value; none for another expression."""
        node = at.node
        if isinstance(node, ast.Name):
            return self._names.lookup(node.id, at.scope, at.statement)[1]
        return list(dict.fromkeys(self._of_attribute(node, at))) if isinstance(node, ast.Attribute) else []

    def source_of(self, binding: Binding) -> Step:
        """The sources of a binding's value, as occurrences."""
        if binding.kind == "parameter" and binding.inner is not None:
            sites, elsewhere = self._names.callers(binding.inner)
            step = self.handed(binding, sites, or_default=elsewhere)
            return step._replace(unseen=step.unseen or elsewhere)
        if binding.kind == "import":
            return self._imported_from_files(binding)
        if binding.kind == "deleted":
            return Step()
        if binding.value is None:
            return UNSEEN
        at = Occurrence(binding.value, binding.scope, binding.statement)
        if binding.kind == "element":
            return self._names.elements(at, binding.path)
        return self._names.unpacked(at, binding.path) if binding.path else Step((at,))

    def handed(self, binding: Binding, sites: Iterable[Site], or_default: bool = False) -> Step:
        """The step to a parameter's arguments at some calls, or to its default if a call leaves it out."""
        function = binding.inner
        assert function is not None
        assert isinstance(binding.target, ast.arg)
        given = [self._given(site, function, binding.target.arg) for site in sites]
        step = joined(each.step for each in given)
        if not or_default and not any(each.may_lack for each in given):
            return step
        if binding.value is None:
            return step._replace(unseen=True)
        default = Occurrence(binding.value, binding.scope, function.statement)
        return step._replace(sources=(*step.sources, default))

    # Arguments behind ``*`` and ``**``

    def _given(self, site: Site, function: Scope, name: str) -> Handed:
        """The argument that a call passes to the parameter `name` of a function."""
        given = self._callers.argument(site, function, name)
        if given is not None:
            return Handed(Step((Occurrence(given, site.scope, site.statement, site),)))
        applied = self._callers.applied(site, function, name)
        if applied:
            return Handed(Step(applied))
        ways = []
        index = self._callers.position(site, function, name)
        starred = next((at for at, each in enumerate(site.node.args) if isinstance(each, ast.Starred)), None)
        if starred is not None and index is not None and index >= starred:
            spread = site.node.args[starred]
            assert isinstance(spread, ast.Starred)
            ways.append(self._spread(spread.value, index - starred, site))
        return _either([*ways, self.given_by_key(site, name)])

    def given(self, site: Site, position: int | None, *names: str) -> tuple[Occurrence, ...]:
        """The arguments of a call at a position or under one of some names, also through ``**``.

        If the argument is hidden, return the dictionary itself, or the sequence after ``*``.
        """
        node = argument(site.node, position, *names)
        if node is not None:
            return (Occurrence(node, site.scope, site.statement),)
        step = joined(self.given_by_key(site, name).step for name in names)
        spread = [
            each.value for each in site.node.args if isinstance(each, ast.Starred) and position is not None
        ]
        hidden = [Occurrence(each, site.scope, site.statement, site) for each in spread]
        return (*step.sources, *step.within, *hidden)

    def given_by_key(self, site: Site, name: str) -> Handed:
        """The values that the ``**`` arguments of a call pass to the keyword `name`."""
        ways = [self._by_key(word.value, name, site) for word in site.node.keywords if word.arg is None]
        return _either(ways)

    def _by_key(self, mapping: ast.expr, name: str, site: Site) -> Handed:
        function = self._collecting(mapping, site, "kwarg")
        if function is not None:
            return self._from_callers(function, lambda caller: self._keyword(caller, name))
        values = self._names.values(mapping, site.scope, site.statement)
        at = Occurrence(mapping, site.scope, site.statement, site)
        ways = []
        for value in values:
            if not isinstance(value, Display) or not isinstance(value.node, ast.Dict | ast.Call):
                return Handed(unseen_in(at))
            ways.append(self._entry(value, name))
            ways += (Handed(step) for step in self._containers.put_at(value, name))
        ways += (Handed(step) for step in self._containers.added_at(at, name))
        return _one_of(ways) if ways else Handed(unseen_in(at))

    def _entry(self, mapping: Display, name: str) -> Handed:
        """The value of a literal dictionary under a name."""
        found = self._containers.entry(mapping, name)
        if found is not None:
            return Handed(found)
        node = mapping.node
        names = node.keys if isinstance(node, ast.Dict) else [word.arg for word in node.keywords]  # type: ignore[attr-defined]
        at = Occurrence(node, mapping.scope, mapping.statement)
        return Handed(unseen_in(at)) if None in names else Handed(Step(), True)

    def _keyword(self, site: Site, name: str) -> Handed:
        """The value that a call passes on under a keyword that its function collects in ``**``."""
        for word in site.node.keywords:
            if word.arg == name:
                return Handed(Step((Occurrence(word.value, site.scope, site.statement, site),)))
        return self.given_by_key(site, name)

    def _spread(self, sequence: ast.expr, index: int, site: Site) -> Handed:
        """The value that ``*sequence`` passes on at an index."""
        function = self._collecting(sequence, site, "vararg")
        if function is None:
            return Handed(unseen_in(Occurrence(sequence, site.scope, site.statement, site)))
        after = len(function.arguments.posonlyargs) + len(function.arguments.args)
        return self._from_callers(function, lambda caller: self._positional(caller, function, after + index))

    def _positional(self, site: Site, function: Scope, index: int) -> Handed:
        index -= self._callers.bound_arguments(site, function)
        before = site.node.args[: index + 1]
        starred = next((at for at, each in enumerate(before) if isinstance(each, ast.Starred)), None)
        if starred is not None:
            spread = before[starred]
            assert isinstance(spread, ast.Starred)
            return self._spread(spread.value, index - starred, site)
        if len(before) <= index:
            return Handed(Step(), True)
        return Handed(Step((Occurrence(before[index], site.scope, site.statement, site),)))

    def _collecting(self, node: ast.expr, site: Site, collector: str) -> Scope | None:
        """The function around a call whose ``*`` or ``**`` parameter (`collector`) is `node`."""
        function = site.scope.function()
        if function is None or not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        own = getattr(function.node.args, collector)
        named = own is not None and isinstance(node, ast.Name) and node.id == own.arg
        return function if named and len(function.bindings.get(own.arg, ())) == 1 else None

    def elements(self, at: Occurrence, path: tuple[Slot, ...] = ()) -> Step:
        """The step to the elements of an iterable; for ``*args`` of a function, to its callers' arguments."""
        function = self._of_varargs(at)
        if function is None:
            return self._containers.elements(at, path)
        before = len(function.arguments.posonlyargs) + len(function.arguments.args)
        return self._containers.along(
            self._from_callers(function, lambda caller: self._left(caller, function, before)).step, path
        )

    def _of_varargs(self, at: Occurrence) -> Scope | None:
        """The function of which a name is the ``*args``."""
        bindings = self._names.bindings(at) if isinstance(at.node, ast.Name) else []
        if len(bindings) != 1 or not isinstance(bindings[0].target, ast.arg):
            return None
        function = bindings[0].scope
        is_function = isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
        return function if is_function and function.node.args.vararg is bindings[0].target else None  # type: ignore[union-attr]

    def _left(self, site: Site, function: Scope, before: int) -> Handed:
        """The positional arguments of a call after the named parameters of a function."""
        rest = site.node.args[max(0, before - self._callers.bound_arguments(site, function)) :]
        at = Occurrence(site.node, site.scope, site.statement)
        if any(isinstance(each, ast.Starred) for each in site.node.args):
            return Handed(unseen_in(at))
        sources = tuple(Occurrence(each, site.scope, site.statement, site) for each in rest)
        return Handed(Step(sources), not sources)

    def _from_callers(self, function: Scope, given: Callable[[Site], Handed]) -> Handed:
        """The arguments passed by any of a function's callers."""
        if function in self._collected:  # It passes its argument to itself.
            return Handed(Step(), True)
        self._collected.add(function)
        try:
            sites, elsewhere = self._names.callers(function)
            ways = [given(site) for site in sites]
        finally:
            self._collected.discard(function)
        return _one_of([*ways, *([Handed(UNSEEN)] if elsewhere else [])])

    def object_bindings(self, owner: UserInstance | Class, name: str) -> Iterator[Binding]:
        """Yield the bindings of an attribute of the script's object or class, in methods or from outside."""
        is_self = isinstance(owner, UserInstance) and owner.node is None
        heirs = self._classes.heirs(owner.scope) if is_self else []
        classes = {owner.scope, *heirs}
        family = [each for each in self._classes.ancestry(owner.scope) if isinstance(each, Scope)] + heirs
        homes = dict.fromkeys(
            [self._script, *(self._script.home(each) for each in family), *self._script.users]
        )
        for own, others in (home.names.assigned_attributes for home in homes):
            for cls in family:
                yield from own.get((cls, name), ())
            for attribute in others.get(name, ()):
                binding = attribute.binding
                if any(
                    isinstance(value, UserInstance | Class) and value.scope in classes
                    for value in self._names.values(attribute.base, binding.scope, binding.statement)
                ):
                    yield binding

    def _of_attribute(self, node: ast.Attribute, at: Occurrence) -> Iterator[Binding]:
        """Yield the bindings of an attribute: by its class, by its module, or under the same dotted name."""
        for value in self._base(node, at):
            if isinstance(value, UserInstance | Class):
                yield from self.object_bindings(value, node.attr)
                heirs = (
                    self._classes.heirs(value.scope)
                    if isinstance(value, UserInstance) and value.node is None
                    else []
                )
                for cls in (*self._classes.ancestry(value.scope), *heirs):
                    if isinstance(cls, Scope):
                        yield from (each for each in cls.bindings.get(node.attr, ()) if each.kind == "value")
            elif isinstance(value, Module) and self._script.workspace is not None:
                script = self._script.workspace.script(value.path)
                yield from script.module_bindings.get(node.attr, ()) if script is not None else ()
        if not self._classes.is_self(node.value, at.scope):
            name = dotted(node.value)
            for attribute in self._script.attribute_bindings(node.attr) if name else ():
                own = self._classes.is_self(attribute.base, attribute.binding.scope)
                if dotted(attribute.base) == name and not own:
                    yield attribute.binding

    def _base(self, node: ast.Attribute, at: Occurrence) -> Values:
        return self._names.values(node.value, at.scope, at.statement)

    def _given_by_properties(self, node: ast.Attribute, at: Occurrence) -> Iterator[Step]:
        for value in self._base(node, at):
            if isinstance(value, UserInstance):
                method = self._classes.function_named(value.scope, node.attr)
                if method is not None and is_property(method):
                    yield _returns(method)
            elif isinstance(value, Module) and self._script.workspace is not None:
                yield from _given_by_module(self._script.workspace.script(value.path), node.attr)

    def given_to_fields(self, at: Occurrence) -> Iterator[Step]:
        """Yield the steps to constructor arguments for an attribute that is a field of a dataclass."""
        node = at.node
        for value in self._base(node, at) if isinstance(node, ast.Attribute) else ():
            if isinstance(value, UserInstance) and isinstance(node, ast.Attribute):
                yield from self.field_values(value, node.attr)
            elif isinstance(value, Instance) and value.cls in _RECORDS and isinstance(node, ast.Attribute):
                yield from self._given_to_record(value, node.attr)

    def _given_to_record(self, record: Instance, name: str) -> Iterator[Step]:
        """Yield the steps to the values of a library object's attribute, from its creation and later, in
        any file.
        """
        site = self._script.site_of(record.node)
        given = self._keyword(site, name).step
        if given.sources:
            yield given
        for maker in self._names.site_values(site.node.func, site) if record.cls == RECORD else ():
            names = argument(maker.node, 1, "field_names") if isinstance(maker, Instance) else None
            fields = _texts(names) if names is not None else []
            position = fields.index(name) if name in fields else len(site.node.args)
            for each in site.node.args[position : position + 1]:
                yield Step((Occurrence(each, site.scope, site.statement, site),))
        for script in self._script.linked:
            for attribute in script.attribute_bindings(name):
                binding = attribute.binding
                if record in self._names.values(attribute.base, binding.scope, binding.statement):
                    yield self._names.source_of(binding)

    def field_values(self, owner: UserInstance, name: str) -> Iterator[Step]:
        """Yield the steps to constructor arguments for a field of an object with a generated constructor."""
        fields = self._classes.fields(owner.scope)
        if name not in fields:
            return
        sites = [self._script.site_of(owner.node)] if owner.node is not None else self._makings(owner.scope)
        for site in sites:
            given = site.node.args[: fields.index(name) + 1]
            if any(isinstance(each, ast.Starred) for each in given):
                yield UNSEEN
            elif len(given) > fields.index(name):
                yield Step((Occurrence(given[-1], site.scope, site.statement, site),))
            else:
                yield self._keyword(site, name).step

    def _makings(self, cls: Scope) -> list[Site]:
        """The calls of a class by its name."""
        scripts = self._script.home(cls).users
        named = (site for script in scripts for site in script.sites_named(cls.name))
        return [site for site in named if Class(cls) in self._names.callee(site)]

    def _given_by_call(self, node: ast.expr, at: Occurrence) -> Step | None:
        """The step to the result of a call of the script's functions; None if it calls none of them."""
        if not isinstance(node, ast.Call):
            return None
        values = self._names.values(node.func, at.scope, at.statement)
        functions = [each for value in values if (each := self._classes.function_of(value)) is not None]
        if not functions:
            return None
        steps = [
            UNSEEN if each.is_generator or isinstance(each.node, ast.AsyncFunctionDef) else _returns(each)
            for each in functions
        ]
        return joined([*steps, Step(unseen=len(functions) < len(values))])

    def _imported_from_files(self, binding: Binding) -> Step:
        """The step to an imported name's value, in any file; files may import it from each other."""
        workspace = self._script.workspace
        if workspace is None:
            return UNSEEN

        steps: list[Step] = []

        def imported(each: Binding) -> list[Binding]:
            if each.kind != "import":
                return []
            path, names = workspace.locate(self._script.home(each.scope), each.full_name)
            script = workspace.script(path) if path and len(names) == 1 else None
            steps.extend(_given_by_module(script, names[0]) if script is not None else ())
            return script.module_bindings.get(names[0], []) if script is not None else []

        steps += [
            self._script.home(each.scope).names.source_of(each)
            for each in list(reachable([binding], imported))
            if each.kind != "import"
        ]
        return joined(steps) if steps else UNSEEN


def _given_by_module(script: LinkedScript | None, name: str) -> Iterator[Step]:
    """Yield the steps to what a module's ``__getattr__`` returns for a name that the module lacks."""
    bound = script.module_bindings if script is not None else {}
    for each in bound.get("__getattr__", ()) if name not in bound else ():
        if each.inner is not None:
            yield _returns(each.inner)


def _either(ways: list[Handed]) -> Handed:
    """Join the alternatives by which one call may pass an argument; each may pass none."""
    given = [way for way in ways if way.step.sources or way.step.unseen]
    return Handed(joined(way.step for way in given), all(way.may_lack for way in given))


def _one_of(ways: list[Handed]) -> Handed:
    """Join the arguments of several calls."""
    return Handed(joined(way.step for way in ways), any(way.may_lack for way in ways))


def _choice(node: ast.expr, parts: list[ast.expr], at: Occurrence) -> Step:
    """The alternatives of an expression; all but the last operand of ``or`` count only if true."""
    last = len(parts) - 1 if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else 0
    sources = (
        Occurrence(part, at.scope, at.statement, tested=at.tested or index < last)
        for index, part in enumerate(parts)
    )
    return Step(tuple(sources))


def _texts(node: ast.expr) -> list[str]:
    """The words of a string, or of a list of strings: the fields of a `namedtuple`."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    texts = [each.value for each in parts if isinstance(each, ast.Constant)]
    return [word for text in texts if isinstance(text, str) for word in text.replace(",", " ").split()]


def _returns(function: Scope) -> Step:
    return Step(tuple(Occurrence(value, function, statement) for value, statement in function.returns))
