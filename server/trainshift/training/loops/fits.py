"""Keras loops: the calls of a script that fit models, and the `compile` calls for their optimizers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.names.values import (
    Class,
    Display,
    Function,
    Instance,
    Member,
    Unknown,
    UserInstance,
    Value,
    Values,
)
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    dotted,
    hides_arguments,
    last_name,
)
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, of_super
from trainshift.training.execution.origins import Origins
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loop_reader import is_strange
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Step, Steps

ON_BATCH = "train_on_batch"
DEFAULT_OPTIMIZER = "rmsprop"


class Fit(Struct, frozen=True, eq=False):
    """A call that fits a model.  `certain` is false if only the call itself suggests a Keras model."""

    site: Site
    model: ast.expr
    certain: bool

    def given(self, name: str) -> ast.expr | None:
        """The argument `name`, by keyword or by its real position (spec.md 5.9)."""
        return method_argument(self.site, name)


class Compile(Struct, frozen=True, eq=False):
    """A `compile` of a model that is fitted.

    `optimizer` is its argument, None if there is none.  `own_tape` is the class whose `train_step` takes
    the gradients by a tape of its own (spec.md 5.23), so that the optimizer must not be wrapped.
    """

    site: Site
    optimizer: ast.expr | None
    own_tape: Scope | None


class Fits:
    """The Keras loops of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._compiles: dict[Fit, tuple[Compile, ...]] = {}
        self._identities: dict[ast.expr, frozenset[ast.AST | Scope | None]] = {}

    @cached_property
    def fits(self) -> list[Fit]:
        """Every `fit` and `fit_generator`."""
        return [fit for fit in self._all if fit.site.name != ON_BATCH]

    @cached_property
    def batches(self) -> list[Fit]:
        """Every `train_on_batch`."""
        return [fit for fit in self._all if fit.site.name == ON_BATCH]

    @cached_property
    def _all(self) -> list[Fit]:
        return [fit for loop in self._loops for fit in _fits(loop)]

    @cached_property
    def _loops(self) -> list[Loop]:
        return [loop for loop in self._program.fact(Loops).own if loop.pattern is Pattern.OPTIMIZER]

    @cached_property
    def steps(self) -> list[Step]:
        """The steps of `train_on_batch`; if one block has several on one model, only the first."""
        by_site = {fit.site: fit for fit in self.batches}
        firsts = map(by_site.__getitem__, firsts_on_batch(self._script, by_site))
        return [Step(fit.site, fit.model, None, [], [fit.model], False, on_batch=True) for fit in firsts]

    @cached_property
    def compiles(self) -> list[Compile]:
        """Every `compile` that may be of a model that the script fits."""
        return [
            Compile(site, self._optimizer_of(site), self.own_tape(site.node.func.value, site))
            for site in self._script.sites_named("compile")
            if isinstance(site.node.func, ast.Attribute)
            and self._is_of_model(site)
            and any(self._same_model(fit, site) for fit in self._all)
        ]

    @cached_property
    def own_compiles(self) -> list[Compile]:
        """The calls of the script's own `compile` method on a model that it fits, with any arguments."""
        known = {each.site for each in self.compiles}
        return [
            Compile(site, None, self.own_tape(site.node.func.value, site))
            for site in self._script.sites_named("compile")
            if isinstance(site.node.func, ast.Attribute)
            and site not in known
            and not of_super(site)
            and any(isinstance(value, Function) for value in self._names.callee(site))
            and any(self._same_model(fit, site) for fit in self._all)
        ]

    def compiles_of(self, fit: Fit) -> tuple[Compile, ...]:
        """The `compile` calls that may be of the model that is fitted."""
        if fit not in self._compiles:
            found = (each for each in self.compiles if self._same_model(fit, each.site))
            self._compiles[fit] = tuple(found)
        return self._compiles[fit]

    def fit_of(self, node: ast.expr, site: Site) -> Fit | None:
        """A call that fits the object of an expression, as far as the script shows."""
        made = self._identity(node, site) - {None}
        for fit in self._all:
            same_name = fit.site.scope is site.scope and dotted(fit.model) == dotted(node) != ""
            if same_name or not made.isdisjoint(self._identity(fit.model, fit.site)):
                return fit
        return None

    def _is_of_model(self, site: Site) -> bool:
        """Return whether the call may be `Model.compile` (or the script's own method that takes an
        optimizer).
        """
        if of_super(site):
            return False
        values = self._names.callee(site)
        takes = any(word.arg == "optimizer" for word in site.node.keywords)
        if any(isinstance(value, Function) for value in values):
            return takes or self._optimizer_of(site) is not None
        members = [value for value in values if isinstance(value, Member)]
        known = [each for each in members if not self.is_of_stranger(each.owner)]
        if known:
            return any(self._names.is_a(value.owner, *api.MODEL) for value in known)
        return takes or bool(members) or any(isinstance(value, Unknown) for value in values)

    def is_of_stranger(self, value: Value) -> bool:
        """Return whether a model's class, or a class that it extends, is one of an unknown library."""
        if isinstance(value, UserInstance):
            return any(map(is_strange, self._names.library_bases(value.scope)))
        return isinstance(value, Instance) and is_strange(value.cls)

    def _optimizer_of(self, site: Site) -> ast.expr | None:
        """The optimizer argument of a `compile`, found by the parameters of the script's own `compile` if it
        has one.
        """
        own = [each.scope for each in self._names.callee(site) if isinstance(each, Function)]
        if not own:
            return method_argument(site, "optimizer")
        given = (self._names.argument(site, function, "optimizer") for function in own)
        # A parameter that accepts any keyword passes the optimizer on.
        named = (word.value for word in site.node.keywords if word.arg == "optimizer")
        return next((each for each in (*given, *named) if each is not None), None)

    def _same_model(self, fit: Fit, site: Site) -> bool:
        """Return whether a `compile` may be of the model that is fitted."""
        assert isinstance(site.node.func, ast.Attribute)
        compiled = site.node.func.value
        if site.scope is fit.site.scope and dotted(compiled) == dotted(fit.model) != "":
            return True
        fitted, given = self._identity(fit.model, fit.site), self._identity(compiled, site)
        return not fitted.isdisjoint(given) or None in fitted or None in given

    def _identity(self, node: ast.expr, site: Site) -> frozenset[ast.AST | Scope | None]:
        """The identity of a model: the calls that create it, or its own class; None for unknown parts."""
        known = self._identities.get(node)
        if known is None:
            values = self._names.site_values(node, site)
            made = self._program.fact(Origins).of(Occurrence(node, site.scope, site.statement))
            known = made.union(value.node for value in values if isinstance(value, Instance))
            known = known.union(value.scope for value in values if isinstance(value, UserInstance))
            self._identities[node] = known
        return known

    def is_loaded_compiled(self, fit: Fit) -> bool:
        """Return whether a model may come from `load_model` with its optimizer, and is not compiled again."""
        return bool(self.loads_of(fit))

    def loads_of(self, fit: Fit) -> list[Site]:
        """The calls of `load_model` that may return the fitted model, with its optimizer."""
        made = self._identity(fit.model, fit.site)
        compiled = [
            (each.site.statement, self._identity(each.site.node.func.value, each.site))
            for each in self.compiles
            if isinstance(each.site.node.func, ast.Attribute)
        ]
        calls = self._script.code.sites_by_node
        loading = (calls.get(node) for node in made if isinstance(node, ast.Call))
        return [
            site
            for site in loading
            if site is not None
            and not self._is_compiled(
                fit, site, [statement for statement, identity in compiled if site.node in identity]
            )
            and self._names.calls(site, "tensorflow.keras.models.load_model")
            and not any(word.arg == "compile" for word in site.node.keywords)
        ]

    def _is_compiled(self, fit: Fit, loading: Site, compiling: list[Statement]) -> bool:
        """Return whether a loaded model is compiled before it is fitted, on every known path."""
        flow = self._program.fact(ControlFlow)
        graph = flow.graph(fit.site.statement)
        here = [each for each in compiling if flow.graph(each) is graph]
        if len(here) < len(compiling) or not here:
            return bool(compiling)
        start = loading.statement if flow.graph(loading.statement) is graph else None
        return not flow.avoids(here, fit.site.statement, start)

    def own_tape(self, model: ast.expr, site: Site) -> Scope | None:
        """The class of a model whose own step applies the gradients of its own tape."""
        return next((cls for cls in self._own_tapes(model, site) if cls is not None), None)

    def librarys_tape(self, model: ast.expr, site: Site) -> str:
        """The library class of a model whose step applies the gradients of its own tape.

        Empty if there is none, or if a class of the script overrides the step.
        """
        libraries = self._program.fact(Libraries)
        for value in self._names.site_values(model, site):
            known = libraries.of(value)
            if known is None or known.role is not Role.MODEL or known.text("step") != "tape":
                continue
            if isinstance(value, Instance):
                return value.cls.rpartition(".")[2]
            if isinstance(value, UserInstance) and not self._replaces_step(value.scope):
                return value.scope.name
        return ""

    def is_compiled_by_library(self, fit: Fit) -> bool:
        """Return whether the library that makes a fitted model compiles it."""
        known = map(self._program.fact(Libraries).of, self._names.site_values(fit.model, fit.site))
        return any(each is not None and each.flag("compiled") for each in known)

    def _replaces_step(self, cls: Scope) -> bool:
        """Return whether a class has a `train_step` that does not call its base's."""
        step = self._names.function_named(cls, "train_step")
        return step is not None and not any(
            site.scope.function() is step and of_super(site)
            for site in self._script.sites_named("train_step")
        )

    def may_have_own_tape_or_not(self, compile: Compile) -> bool:
        """Return whether it is unknown if the compiled model has a tape of its own."""
        assert isinstance(compile.site.node.func, ast.Attribute)
        return len(self._own_tapes(compile.site.node.func.value, compile.site)) > 1

    def _own_tapes(self, model: ast.expr, site: Site) -> set[Scope | None]:
        """For each possible class of the model: the class whose step has its own tape, or None."""
        values = self._names.site_values(model, site)
        found = {self._with_own_tape(value) for value in values}
        if len(found) > 1:
            made = self._made_for(model, site.scope, site.statement)
            found = {self._with_own_tape(value) for value in made} or found
        return found

    def _with_own_tape(self, value: Value) -> Scope | None:
        if not isinstance(value, UserInstance | Class):
            return None
        family = self._names.ancestry(value.scope)
        steps = self._program.fact(Steps).steps
        own = any(
            (each.gradients or each.reduced)
            and self._program.fact(Executions).custom_model(each.site.scope) in family
            for each in steps
        )
        return value.scope if own else None

    def _made_for(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Values:
        """The classes that a function of the script instantiates for a call that passes it the class."""
        while isinstance(node, ast.Name):
            bindings = self._names.lookup(node.id, scope, statement)[1]
            if len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].value is None:
                return frozenset()
            node, scope, statement = bindings[0].value, bindings[0].scope, bindings[0].statement
        found: set[Value] = set()
        call = self._script.site_of(node) if isinstance(node, ast.Call) else None
        for function in self._names.called_functions(call) if call is not None else ():
            for returned, where in function.returns:
                if isinstance(returned, ast.Name):
                    bindings = self._names.lookup(returned.id, function, where)[1]
                    returned = next((each.value for each in bindings if each.value is not None), returned)
                maker = returned.func if isinstance(returned, ast.Call) else returned
                given = self._names.argument(call, function, last_name(maker)) if call is not None else None
                default = function.bindings.get(last_name(maker), [])
                if given is not None and call is not None:
                    found |= self._names.site_values(given, call)
                elif any(each.kind == "parameter" for each in default) and default[0].value is not None:
                    found |= self._names.values(default[0].value, default[0].scope)
                else:
                    return frozenset()
        return frozenset(found)

    def uses_compiled_optimizer(self, model: Scope) -> bool:
        """Return whether the `train_step` of a model class steps the optimizer with which it was compiled."""
        family = self._names.ancestry(model)
        return any(
            self._program.fact(Executions).custom_model(step.site.scope) in family
            and is_compiled_optimizer(step)
            for step in self._program.fact(Steps).steps
        )


def is_compiled_optimizer(step: Step) -> bool:
    """Return whether a step is that of ``self.optimizer``, which the callback of `fit` broadcasts."""
    return dotted(step.receiver) == "self.optimizer"


def method_argument(site: Site, name: str) -> ast.expr | None:
    """The argument of a model's method, by keyword or by its real position."""
    signature = api.method("tensorflow.keras.Model", site.name)
    return argument(site.node, signature.position(name) if signature else None, name)


def hides(script: Script, site: Site, name: str) -> bool:
    """Return whether ``*`` or ``**`` may hide the argument `name` of a model's method."""
    if not hides_arguments(site.node) or method_argument(site, name) is not None:
        return False
    hiding = [word.value for word in site.node.keywords if word.arg is None]
    starred = any(isinstance(each, ast.Starred) for each in site.node.args)
    return starred or any(name in (keys := _keys(script, each, site)) or "" in keys for each in hiding)


def _keys(script: Script, node: ast.expr, site: Site) -> set[str]:
    """The keys of a literal dictionary; an empty key among them if not all are known."""
    values = script.names.site_values(node, site)
    keys: set[str] = {""} if not values or next(script.item_bindings(last_name(node)), None) else set()
    for value in values:
        shown = value.node if isinstance(value, Display) else None
        if isinstance(shown, ast.Dict):
            keys.update(str(key.value) if isinstance(key, ast.Constant) else "" for key in shown.keys)
        elif isinstance(shown, ast.Call) and not shown.args:
            keys.update(word.arg or "" for word in shown.keywords)
        else:
            keys.add("")
    return keys


def _fits(loop: Loop) -> Iterator[Fit]:
    for site in loop.sites:
        if isinstance(site.node.func, ast.Attribute):
            yield Fit(site, site.node.func.value, loop.certain)


def firsts_on_batch(script: Script, sites: Iterable[Site] | None = None) -> Iterator[Site]:
    """Yield the calls of `train_on_batch`; if one block has several on one model, only the first."""
    seen: set[tuple[int, str]] = set()
    for site in script.sites_named(ON_BATCH) if sites is None else sites:
        if isinstance(site.node.func, ast.Attribute):
            block, _ = script.siblings(site.statement)
            model = site.node.func.value
            key = (id(block[0]), dotted(model) or ast.dump(model))
            if key not in seen:
                seen.add(key)
                yield site
