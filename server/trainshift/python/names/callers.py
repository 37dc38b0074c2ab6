"""The call graph by name: the calls that may run a function, and the arguments that they pass."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trainshift.python.flow.traversal import closure, reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import ClassHierarchy, is_decorated
from trainshift.python.names.linked import LinkedNames, LinkedScript
from trainshift.python.names.lookup import Lookup
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import NOTHING, Class, Function, Values
from trainshift.python.syntax.call_binding import bind_call
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Site, alternatives, last_name
from trainshift.python.syntax.code import bound_elements, bound_values


class Callers:
    """The calls of one script, by the functions to which its `names` resolve them."""

    def __init__(
        self, script: LinkedScript, names: LinkedNames, lookup: Lookup, classes: ClassHierarchy
    ) -> None:
        self._script = script
        self._names = names
        self._lookup = lookup
        self._classes = classes
        self._callers: dict[Scope, tuple[list[Site], bool]] = {}
        self._aliases: dict[str, set[str]] | None = None
        self._named: dict[str, tuple[list[Site], bool]] = {}
        self._running: dict[str, dict[Scope, dict[Site, None]]] = {}
        self._partials: dict[tuple[Site, Scope], list[Site]] = {}

    def callers(self, function: Scope) -> tuple[list[Site], bool]:
        """The calls that may run `function`, and whether it may also be run from elsewhere.

        "Elsewhere" is true for a function that is passed on as a value, and for one that
        nothing in the script calls.
        """
        home = self._script.home(function)
        if home is not self._script:
            return home.names.callers(function)
        if function not in self._callers:
            # A recursive question sees no callers.
            self._callers[function] = ([], True)
            try:
                self._callers[function] = self._find_callers(function)
            except BaseException:
                del self._callers[function]  # The question was given up: it is asked again.
                raise
        return self._callers[function]

    def argument(self, site: Site, function: Scope, name: str) -> ast.expr | None:
        """The expression that a call passes for the parameter `name`; None if it passes none."""
        return bind_call(site.node, function.arguments, self.bound_arguments(site, function)).given.get(name)

    def position(self, site: Site, function: Scope, name: str) -> int | None:
        """The positional index of a parameter in a call; None if it has none."""
        arguments = function.arguments
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        if name not in positional:
            return None
        index = positional.index(name) - self.bound_arguments(site, function)
        return index if index >= 0 else None

    def bound_arguments(self, site: Site, function: Scope) -> int:
        """The number of parameters that are bound before the call: ``self``, and those of a ``partial``."""
        partials = self.partials(site, function)
        applied = len(partials[0].node.args) - 1 if partials else 0
        bound = function.owner() is not None and not is_decorated(function, "staticmethod")
        if not bound or site.name != function.name:
            return applied + int(bound)
        return int(not any(isinstance(value, Class) for value in self._receiver(site)))

    def partials(self, site: Site, function: Scope) -> list[Site]:
        """The calls of ``partial`` by which a call reaches a function: ``partial(step, model)(x)``."""
        if not self._has_partials or site.name == function.name:
            return []
        key = site, function
        if key not in self._partials:
            self._partials[key] = []  # Asked again for what it is asked by: none of its own.
            start = Occurrence(site.node.func, site.scope, site.statement)
            reached = reachable([start], self._wrapped, lambda each: (each.node, each.scope))
            found = (each for each in reached if self._is_partial(each))
            sites = [self._script.home(each.scope).site_of(each.node) for each in found]  # type: ignore[arg-type]
            self._partials[key] = [each for each in sites if self._applies(each, function)]
        return self._partials[key]

    def applied(self, site: Site, function: Scope, name: str) -> tuple[Occurrence, ...]:
        """The values that calls of ``partial`` behind a call bind to the parameter `name`."""
        found = []
        for each in self.partials(site, function):
            call = ast.Call(each.node.func, each.node.args[1:], each.node.keywords)
            given = bind_call(call, function.arguments).given.get(name)
            if given is not None:
                found.append(Occurrence(given, each.scope, each.statement, each))
        return tuple(found)

    @cached_property
    def _has_partials(self) -> bool:
        return any(next(each.sites_named("partial"), None) is not None for each in self._script.users)

    def _is_partial(self, at: Occurrence) -> bool:
        return isinstance(at.node, ast.Call) and "functools.partial" in self._names.full_names(
            at.node.func, at.scope, at.statement
        )

    def _applies(self, partial: Site, function: Scope) -> bool:
        """Return whether a call of ``partial`` applies a function to its other arguments."""
        given = self._names.site_values(partial.node.args[0], partial) if partial.node.args else NOTHING
        return any(isinstance(each, Function) and each.scope is function for each in given)

    def _wrapped(self, at: Occurrence) -> Iterable[Occurrence]:
        """The expressions that what is called comes from, one step back, through wrappers and tables."""
        node = at.node
        if isinstance(node, ast.Call):
            return () if self._is_partial(at) else map(at.part, node.args[:1])
        step = self._names.steps_back(at)
        if step is not None and step.sources:
            return step.sources
        parts = [node.value] if isinstance(node, ast.Subscript) else _possible(node)
        return (at.part(each) for each in parts if each is not node)

    def _receiver(self, site: Site) -> Values:
        if isinstance(site.node.func, ast.Attribute):
            return self._names.site_values(site.node.func.value, site)
        return NOTHING

    def _find_callers(self, function: Scope) -> tuple[list[Site], bool]:
        name = function.name
        owner = function.owner()
        if not name:
            return self._calls_of_lambda(function), True
        wanted = [function]
        if owner is not None and name == "__init__":
            wanted = [
                owner,
                *(heir for heir in self._classes.heirs(owner) if "__init__" not in heir.bindings),
            ]
        found: dict[Site, None] = {}
        passed_on = False
        names = dict.fromkeys([*(each.name for each in wanted), name])
        for script in self._script.users:
            for called in script.code.mentioned.intersection(names):
                sites, passed = script.names.calls_by_name(called, function)
                # Code of other programs that share the file passes nothing in this one.
                runs = self._script.runs
                found.update((site, None) for site in sites if runs(site.scope, site.statement))
                passed_on = passed_on or passed
        return list(found), not found or passed_on

    def _calls_of_lambda(self, function: Scope) -> list[Site]:
        """The calls of the names that a lambda is bound to, in its own file."""
        names = [name for name, value in self._script.code.bound_values if function.node in _possible(value)]
        sites = (site for name in dict.fromkeys(names) for site in self.calls_by_name(name, function)[0])
        return list(dict.fromkeys(sites))

    def calls_by_name(self, name: str, function: Scope) -> tuple[list[Site], bool]:
        """This script's calls that may run `function`, and whether it may be used otherwise than called.

        `name` is the function's name (or the class's, for an ``__init__``) at its definition.
        """
        if name not in self._named:
            self._named[name] = self._calls_named(name)
        named, is_passed_on = self._named[name]
        if not self._names.memo.is_idle:  # What a call runs may not be final yet.
            return [site for site in named if function in self._classes.called_functions(site)], is_passed_on
        if name not in self._running:
            running: dict[Scope, dict[Site, None]] = {}
            for site in named:
                for called in self._classes.called_functions(site):
                    running.setdefault(called, {})[site] = None
            self._running[name] = running
        return list(self._running[name].get(function, ())), is_passed_on

    def _calls_named(self, name: str) -> tuple[list[Site], bool]:
        """The calls of functions that may have this name, and whether the name is read other than
        by calls.
        """
        renamed = (new for new, old in self._script.code.renamed_imports if old == name)
        names = closure([name, *renamed], self._alias_names())
        ordered = sorted(names)
        choosing = dict.fromkeys(site for each in ordered for site in self._choosing.get(each, ()))
        named = [*self._script.sites_named(*ordered), *choosing]
        others = sum(self._reads_of_libraries(each) for each in names)
        reads = sum(self._script.loads(each) for each in names) - others
        calls = sum(not self._is_of_library(site.node.func) for site in named)
        aliased = sum(len(self._alias_names().get(each, ())) for each in names)
        return named, reads > calls + aliased

    @cached_property
    def _choosing(self) -> dict[str, list[Site]]:
        """The calls through a table or a wrapper, by each name called: ``table[key]()``,
        ``partial(a, 1)()``.
        """
        found: dict[str, list[Site]] = {}
        for site in self._script.sites_named(""):
            for name in _spelled(site.node.func) - {""}:
                found.setdefault(name, []).append(site)
        return found

    def _reads_of_libraries(self, attribute: str) -> int:
        """The number of reads of the attribute on a library's module, which are not functions of
        the script.
        """
        read = self._script.code.member_loads.get(attribute, {})
        return sum(number for base, number in read.items() if base in self._lookup.libraries)

    def _is_of_library(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self._lookup.libraries
        )

    def _alias_names(self) -> dict[str, set[str]]:
        """The names to which values of each name may be bound.

        The result of a function is bound to its name and ``()``.
        """
        if self._aliases is None:
            self._aliases = {}
            for facts in self._script.facts:
                for origin, name in facts.once(_aliases):
                    self._aliases.setdefault(origin, set()).add(name)
        return self._aliases


def _aliases(facts: ChunkSyntax) -> list[tuple[str, str]]:
    """The pairs of a name and another one to which its values may be bound in a chunk."""
    results = [(f"{scope.name}()", value) for scope in facts.scopes for value, _ in scope.returns]
    found = [(name, _spelled(value)) for name, value in (*results, *facts.once(bound_values))]
    found += [(name, _holding(value)) for name, value in facts.once(bound_elements)]
    return [(origin, name) for name, origins in found for origin in sorted(origins - {"", name})]


def _possible(node: ast.expr) -> list[ast.expr]:
    """The possible values of an expression, as expressions: ``a if c else b``, ``{"x": a}``, ``wrap(a)``."""
    parts = node.values if isinstance(node, ast.Dict) else alternatives(node)
    if isinstance(node, ast.Call):
        parts = node.args[:1]
    return [each for part in parts for each in _possible(part)] if parts else [node]


def _spelled(node: ast.expr) -> set[str]:
    """The names of an expression's possible values; for a call, of its result or argument:
    ``tf.function(a)``.
    """
    if not isinstance(node, ast.Call):
        parts = alternatives(node)
        return set[str]().union(*map(_spelled, parts)) if parts else _chosen(node)
    returned = last_name(node.func)
    wrapped = _spelled(node.args[0]) if node.args else set[str]()
    return wrapped | ({f"{returned}()"} if returned else set())


def _chosen(node: ast.expr) -> set[str]:
    """The names among which an expression chooses: ``a if c else b``, ``{"x": a}[key]``, ``table[key]``,
    ``{"x": wrap(a)}``.
    """
    if isinstance(node, ast.Call):
        return _spelled(node)
    if isinstance(node, ast.Subscript):
        return _chosen(node.value)
    parts = node.values if isinstance(node, ast.Dict) else alternatives(node)
    if isinstance(node, ast.List | ast.Tuple):
        parts = node.elts
    return set[str]().union(*map(_chosen, parts)) if parts else {last_name(node)}


def _holding(node: ast.expr) -> set[str]:
    """The names of the lists and dictionaries over which a loop iterates, perhaps several in parallel."""
    if not isinstance(node, ast.Call):
        return _chosen(node)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values"):
        return _chosen(node.func.value)
    is_row = last_name(node.func) in ("enumerate", "zip")
    return set[str]().union(*map(_holding, node.args)) if is_row else set()
