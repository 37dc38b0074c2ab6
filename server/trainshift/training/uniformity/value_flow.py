"""Value flow: the inputs of an expression, one step back, and the tests that choose among them.

Analyses of ranks use it to follow values: through names, tuples, containers, parameters, returns and the
fetches of sessions. The result of a collective does not depend on a single rank.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable, Iterator

from msgspec.structs import replace

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api, divergence, entries
from trainshift.libraries.entries import Role
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, Instance, UserInstance
from trainshift.python.syntax.chunk_syntax import (
    ItemBinding,
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    children,
    dotted,
    element_at,
    last_name,
)
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import COLLECTIVE

_OF_SESSIONS = api.last_names(*api.SESSION, *api.MONITORED_SESSION) | {
    "MonitoredTrainingSession",
    "get_session",
}
# Calls whose results do not depend on the amount of data.
_GIVING_RESULTS = frozenset({"fit", "fit_generator", "evaluate", "predict", "train_on_batch", "compile"})


class ValueFlow:
    """The sources of the values of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._known: dict[tuple[ast.expr, Scope], tuple[Occurrence, ...]] = {}
        self._hooked: dict[str, tuple[Occurrence, ...]] = {}
        self._hooks: set[Scope] = set()

    def parts(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """The sources of an expression's value, one step back, and the tests that choose among them."""
        key = at.node, at.scope
        if key not in self._known:
            self._known[key] = tuple(self._parts(at))
        return self._known[key]

    def _parts(self, at: Occurrence) -> Iterator[Occurrence]:
        node = at.node
        if isinstance(node, ast.Call):
            yield from self._of_call(node, at)
        elif isinstance(node, ast.Name | ast.Attribute):
            if self._names.member_of_library(node):
                return
            sources = yield from self._of_step(at)
            if isinstance(node, ast.Attribute) and not sources:
                kept = list(self._kept_under(node, at))
                yield from kept or [at.part(node.value)]
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant):
                yield from self._of_step(at)
                step = self._names.steps_back(at)
                if step is not None and not step.unseen:
                    return
            # Only the run decides which element it is.
            yield at.part(node.slice)
            yield at.part(node.value)
        elif not isinstance(node, ast.Lambda):
            # The names of a comprehension are its own.
            inner = Occurrence(node, at.scope.facts.scope_of.get(node, at.scope), at.statement)
            for child in children(node):
                if isinstance(child, ast.expr):
                    yield inner.part(child)
                elif isinstance(child, ast.comprehension):
                    yield inner.part(child.iter)
                    # Which elements there are, its tests tell.
                    yield from map(inner.part, child.ifs)

    def _kept_under(self, node: ast.Attribute, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the objects that a checkpoint keeps under a name: ``checkpoint.step``."""
        for value in self._names.values(node.value, at.scope, at.statement):
            if isinstance(value, Instance) and self._names.is_a(value, *api.CHECKPOINT):
                made = self._script.site_of(value.node)
                given = argument(made.node, None, node.attr)
                if given is not None:
                    yield of_call(made).part(given)

    def computed_of(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the inputs of an expression, the tests that choose it, and the values put into it later."""
        yield from self.parts(at)
        if isinstance(at.node, ast.Call):
            if any(map(divergence.applies, self._names.full_names(at.node.func, *at[1:3]))):
                yield from (each for given in arguments(at.node) for each in self._results(at.part(given)))
            callee = self._names.callee(self._script.site_of(at.node))
            # A callable object may keep its arguments and use them later.
            if any(isinstance(each, UserInstance) for each in callee):
                yield from map(at.part, arguments(at.node))
        if isinstance(at.node, ast.Subscript):
            yield from self._order_of(at.part(at.node.value))
        if isinstance(at.node, ast.Name | ast.Attribute):
            # An element of an opaque iterable differs between ranks as the iterable does.
            step = self._names.steps_back(at)
            yield from step.within if step is not None else ()
            yield from self.added(at)
            yield from self._order_of(at)
        if self._sorting:
            yield from self._turn_of(at)

    def added(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the values put into the container that a name or an attribute holds, and their places in
        it.
        """
        if isinstance(at.node, ast.Name | ast.Attribute):
            for item in (*self._names.additions(at), *self.nested(at)):
                yield from self._names.source_of(item.binding).sources
                if item.key is not None:
                    yield Occurrence(item.key, item.binding.scope, item.binding.statement)

    def _of_step(self, at: Occurrence) -> Generator[Occurrence, None, bool]:
        """Yield the values that may be bound to a name or an element, and the tests; return whether there are
        any.
        """
        step = self._names.steps_back(at)
        sources = step.sources if step is not None else ()
        if isinstance(at.node, ast.Attribute):
            sources = (*sources, *self._set_from_afar(at.node.attr))
        elif isinstance(at.node, ast.Name) and not sources:
            yield from self._handed_to(at)
        yield from sources
        if len(sources) > 1:
            yield from (test for each in sources for test in tests_around(each.statement, at.statement))
        return bool(sources)

    def _set_from_afar(self, attribute: str) -> tuple[Occurrence, ...]:
        """The values that a function which is handed on may give to an attribute of any object.

        Its callers are not known: ``for hook in self.hooks: hook(*args)``.
        """
        if attribute not in self._hooked:
            found = []
            for each in self._script.attribute_bindings(attribute):
                at = Occurrence(each.base, each.binding.scope, each.binding.statement)
                function = at.scope.function()
                if (
                    each.binding.value is not None
                    and isinstance(each.base, ast.Name)
                    and function is not None
                    and function.owner() is None
                    and all(one.kind == "parameter" for one in function.bindings.get(each.base.id, ()))
                    and each.base.id in function.bindings
                    and self._names.callers(function) == ([], True)
                ):
                    self._hooks.add(function)
                    found.append(at.part(each.binding.value))
            self._hooked[attribute] = tuple(found)
        return self._hooked[attribute]

    def _handed_to(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield what the calls of a function that is handed on pass to it, each possibly for a parameter."""
        function = at.scope.function()
        if function in self._hooks and last_name(at.node) in function.bindings:
            for site in self._script.sites_named(*self._held):
                if function in self._names.called_functions(site):
                    yield from self._passed(site)

    def _passed(self, site: Site) -> Iterator[Occurrence]:
        """Yield the arguments of a call, and those that it passes on: ``*args``."""
        around = site.scope.function()
        for given in arguments(site.node):
            node = given.value if isinstance(given, ast.Starred) else given
            yield of_call(site).part(node)
            if isinstance(given, ast.Starred) and around is not None:
                for caller in self._names.callers(around)[0]:
                    yield from map(of_call(caller).part, arguments(caller.node))

    @cached_property
    def _held(self) -> list[str]:
        """The names of loops over what may be functions: ``for hook in self.hooks``."""
        loops = (each.node for each in self._script.statements if isinstance(each.node, ast.For))
        return sorted({each.target.id for each in loops if isinstance(each.target, ast.Name)})

    def _of_call(self, node: ast.Call, at: Occurrence) -> Iterator[Occurrence]:
        if self.is_collected(at):
            return
        site = self._script.site_of(node)
        functions = self._names.called_functions(site)
        for function in functions:
            for value, where in function.returns:
                yield Occurrence(value, function, where)
                if len(function.returns) > 1:
                    yield from tests_around(where, None)
            if function.is_generator:
                yield from map(at.part, arguments(node))
        if functions:
            return
        if last_name(node.func) in _GIVING_RESULTS:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if owner is None or not self._is_drawing(at.part(owner)):
                return
        if isinstance(node.func, ast.Attribute) and not self._names.member_of_library(node.func):
            yield at.part(node.func.value)
        shown = self._program.fact(Libraries).called(site, Role.PRINTS)
        silencing = shown.text("argument") if shown is not None else ""
        quiet = argument(node, None, silencing) if silencing else None
        yield from (at.part(given) for given in arguments(node) if given is not quiet)

    def _is_drawing(self, at: Occurrence) -> bool:
        """Return whether an object is an estimator of a library that fits by random numbers, such as
        clusters.
        """
        for each in reachable([at], self._fitted, lambda one: (one.node, one.scope)):
            for value in self._names.values(*each[:3]):
                known = entries.entry(value.cls) if isinstance(value, Instance) else None
                if known is not None and known.role is Role.DRAWS:
                    return True
        return False

    def _fitted(self, at: Occurrence) -> Iterable[Occurrence]:
        """The sources of an object, and the estimator that a call of `fit` returns."""
        if isinstance(at.node, ast.Call):
            function = at.node.func
            if isinstance(function, ast.Attribute) and function.attr == "fit":
                return (at.part(function.value),)
            return ()
        step = self._names.steps_back(at) if isinstance(at.node, ast.Name | ast.Attribute) else None
        return step.sources if step is not None else ()

    def is_collected(self, at: Occurrence) -> bool:
        """Return whether an expression is a call of a collective, whose result all ranks share.

        The call may be in code that is not known to run, such as a method of an unused class.
        """
        if at.node in self._collected:
            return True
        if not isinstance(at.node, ast.Call) or last_name(at.node.func) not in COLLECTIVE:
            return False
        return self._program.fact(Horovod).is_function(at.part(at.node.func), *COLLECTIVE)

    @cached_property
    def _collected(self) -> set[ast.AST]:
        return {site.node for site in self._program.fact(Horovod).calls(*COLLECTIVE)}

    def returned(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the results of a function or lambda that is passed on."""
        if isinstance(at.node, ast.Lambda):
            yield Occurrence(at.node.body, at.scope.facts.scope_of[at.node], at.statement)
        for value in self._names.values(*at[:3]):
            if isinstance(value, Function):
                yield from (Occurrence(node, value.scope, where) for node, where in value.scope.returns)

    def _results(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the results of a function that is passed on, and what is stored under the names that a key
        reads: ``key=lambda each: each["score"]``.
        """
        for each in self.returned(at):
            yield each
            if isinstance(each.node, ast.Attribute):
                for one in self._script.attribute_bindings(each.node.attr):
                    yield from self._names.source_of(one.binding).sources
            elif isinstance(each.node, ast.Subscript) and isinstance(each.node.slice, ast.Constant):
                for item in self._script.code.items_by_key.get(each.node.slice.value, ()):
                    yield from self._names.source_of(item.binding).sources

    def _order_of(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield what decides the order of a container: calls that shuffle it, and the keys of its sorting."""
        yield from map(of_call, self.shuffled_in_place(at))
        if not self._sorting:
            return
        for site in self._sorting.get(last_name(at.node), ()):
            sorted_ = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
            bound = self._names.bindings(of_call(site).part(sorted_)) if sorted_ is not None else ()
            if any(each in bound for each in self._names.bindings(at)):
                yield from self._keys_of(site)
        step = self._names.steps_back(at) if isinstance(at.node, ast.Name) else None
        for each in step.sources if step is not None else ():
            if isinstance(each.node, ast.Call) and last_name(each.node.func) == "sorted":
                yield from self._keys_of(self._script.site_of(each.node))

    def _turn_of(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield what decides which element of a sorted container an expression reads."""
        node: ast.expr | None = at.node
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
            inner = at.part(node)
            if node is not at.node:
                yield from self._order_of(inner)
            for binding in self._names.bindings(inner) if isinstance(node, ast.Name) else ():
                loop = binding.statement
                given = loop.node.iter if loop is not None and isinstance(loop.node, ast.For) else None
                for each in (given, *(arguments(given) if isinstance(given, ast.Call) else ())):
                    if each is not None:
                        yield from self._order_of(Occurrence(each, binding.scope, loop))
            node = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None

    def _keys_of(self, site: Site) -> Iterator[Occurrence]:
        """Yield what a call sorts by."""
        key = argument(site.node, None, "key")
        return self._results(of_call(site).part(key)) if key is not None else iter(())

    @cached_property
    def _sorting(self) -> dict[str, list[Site]]:
        """The calls that sort by a key, by the name of the container that they sort in place."""
        found: dict[str, list[Site]] = {}
        for site in self._script.sites_named("sort", "sorted"):
            if argument(site.node, None, "key") is not None:
                place = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
                found.setdefault(last_name(place) if place is not None else "", []).append(site)
        return found

    def tests_of(self, item: ItemBinding, beside: Statement | None) -> Iterator[Occurrence]:
        """Yield the tests that decide whether a value is put into a container, or into which of several."""
        binding = item.binding
        yield from tests_around(binding.statement, beside)
        if isinstance(item.base, ast.IfExp | ast.Subscript):
            decides = item.base.test if isinstance(item.base, ast.IfExp) else item.base.slice
            yield Occurrence(decides, binding.scope, binding.statement)

    def nested(self, at: Occurrence) -> Iterator[ItemBinding]:
        """Yield the values put into one of the containers that a name holds: ``folds[n].append(row)``."""
        for item, place in self._nested.get(dotted(at.node), ()) if self._nested else ():
            bound = self._names.bindings(at)
            if any(each in bound for each in self._names.bindings(place)):
                yield item

    @cached_property
    def _nested(self) -> dict[str, list[tuple[ItemBinding, Occurrence]]]:
        """The values put into nested containers, by the name of the outer container."""
        found: dict[str, list[tuple[ItemBinding, Occurrence]]] = {}
        for item in self._script.item_bindings(""):
            if isinstance(item.base, ast.Subscript) and (name := dotted(item.base.value)):
                place = Occurrence(item.base.value, item.binding.scope, item.binding.statement)
                found.setdefault(name, []).append((item, place))
        return found

    def shuffled_in_place(self, at: Occurrence) -> Iterator[Site]:
        """Yield the calls that shuffle the object of a name in place: ``random.shuffle(files)``."""
        for site in self._shuffling.get(last_name(at.node), ()) if self._shuffling else ():
            bound = self._names.bindings(of_call(site).part(site.node.args[0]))
            if any(each in bound for each in self._names.bindings(at)):
                yield site

    @cached_property
    def _shuffling(self) -> dict[str, list[Site]]:
        """The library calls that shuffle in place, by the name of their argument."""
        found: dict[str, list[Site]] = {}
        for site in self._script.sites_named("shuffle"):
            if site.node.args and isinstance(site.statement.node, ast.Expr):
                found.setdefault(last_name(site.node.args[0]), []).append(site)
        return found

    # Sessions

    @cached_property
    def has_session(self) -> bool:
        """Return whether a graph of TensorFlow 1 may be run in the program."""
        return not self._script.identifiers.isdisjoint(_OF_SESSIONS)

    def fetched(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the fetches behind a name that holds a session's result: ``v, _ = session.run([loss,
        op])``.
        """
        key = at.node.slice if isinstance(at.node, ast.Subscript) else None
        name = at.part(at.node.value) if isinstance(at.node, ast.Subscript) else at
        if not self.has_session or not isinstance(name.node, ast.Name):
            return
        for binding in self._names.bindings(name):
            called = binding.value
            if not isinstance(called, ast.Call) or last_name(called.func) != "run" or not called.args:
                continue
            asked = replace(binding, value=called.args[0]).taken
            if isinstance(asked, ast.List | ast.Tuple | ast.Dict):
                asked = _element_of(asked, key)
            if asked is not None:
                yield Occurrence(asked, binding.scope, binding.statement)


def tests_around(statement: Statement | None, beside: Statement | None) -> Iterator[Occurrence]:
    """Yield the tests of the enclosing `if`s of a statement, in its function, except those that also enclose
    `beside`.
    """
    if statement is None:
        return
    common = set(beside.ancestors()) if beside is not None else set()
    for each in statement.ancestors():
        if each.scope is statement.scope and each not in common and isinstance(each.node, ast.If):
            yield Occurrence(each.node.test, each.scope, each)


def _element_of(display: ast.List | ast.Tuple | ast.Dict, key: ast.expr | None) -> ast.expr | None:
    """The element of a literal list or dict that a constant key selects."""
    if not isinstance(key, ast.Constant):
        return None
    if isinstance(display, ast.Dict):
        pairs = zip(display.keys, display.values, strict=True)
        named = (value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key.value)
        return next(named, None)
    return element_at(display.elts, key.value) if isinstance(key.value, int) and key.value >= 0 else None
