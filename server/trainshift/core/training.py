"""Training loops: the optimizer steps of a script, the tapes that feed them, and what they train.

A tape belongs to a training loop when its gradients reach an `apply_gradients` (SPEC §2); a tape
whose gradients do not, such as that of a gradient penalty, is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from trainshift.core import api
from trainshift.core.facts import Binding, Scope, Site, Statement, argument, dotted, last_name
from trainshift.core.flow import reaching_calls
from trainshift.core.horovod import Horovod
from trainshift.core.lazy import cached_property
from trainshift.core.names import (
    WRAPPED_TAPE,
    Function,
    Instance,
    UserInstance,
    Values,
)
from trainshift.core.script import Script

GRADIENT_METHODS = ("gradient", "jacobian", "batch_jacobian")
VARIABLE_LISTS = ("trainable_variables", "trainable_weights", "variables", "weights")
LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Methods of a model that its `fit` runs.
_MODEL_METHODS = frozenset({"train_step", "make_train_function", "train_on_batch", "fit"})
# A custom step is not looked for through more callers than this.
_DEEPEST = 40
_LAUNCHERS = ("run", "Fire", "command")


@dataclass(eq=False, slots=True)
class Tape:
    """A gradient tape: where it is made, the `with` that records on it, and its gradient calls.

    `name` is the (dotted) name that the `with` binds or enters; empty if there is none.
    """

    creation: Site
    with_statement: Statement | None = None
    name: str = ""
    training: list[Gradient] = field(default_factory=list)
    other: list[Gradient] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Gradient:
    """A call of ``tape.gradient`` or its like; `wrapped` if its tape is distributed already."""

    site: Site
    tapes: list[Tape]
    wrapped: bool


@dataclass(eq=False, slots=True)
class Step:
    """A call of `apply_gradients`, or of `train_on_batch`, whose receiver is the model.

    `models` are the expressions whose ``.variables`` are all that the step trains, empty if
    they cannot be told; `gradients` are the gradient calls that reach it, none if they are `reduced`
    by an allreduce of the script's own.
    """

    site: Site
    receiver: ast.expr
    pairs: ast.expr | None
    gradients: list[Gradient]
    models: list[ast.expr]
    traced: bool
    reduced: bool = False
    on_batch: bool = False

    @property
    def statement(self) -> Statement:
        """The statement that the call stands in."""
        return self.site.statement


class Training:
    """The training loops of one script."""

    def __init__(self, script: Script, horovod: Horovod, others: Callable[[], Iterable[Site]]) -> None:
        """`others` gives the calls that train in another way than by `apply_gradients`."""
        self._script = script
        self._horovod = horovod
        self.others = others

    @cached_property
    def tapes(self) -> list[Tape]:
        """Every gradient tape that the script makes."""
        found = {
            site.node: Tape(site)
            for site in self._script.sites_named("GradientTape")
            if self._script.names.calls(site, *api.TAPE)
        }
        for statement in self._script.statements:
            if not found or not isinstance(statement.node, ast.With | ast.AsyncWith):
                continue
            for item in statement.node.items:
                values = self._script.names.values(item.context_expr, statement.scope, statement)
                made, _ = self._creations(values)
                for node in made:
                    tape = found.get(node)
                    if tape is not None:
                        tape.with_statement = statement
                        tape.name = dotted(item.optional_vars or item.context_expr)
        return list(found.values())

    @cached_property
    def gradients(self) -> list[Gradient]:
        """Every gradient call on a tape of the script."""
        by_node = {tape.creation.node: tape for tape in self.tapes}
        found = []
        for site in self._script.sites_named(*GRADIENT_METHODS):
            if not isinstance(site.node.func, ast.Attribute):
                continue
            values = self._script.names.site_values(site.node.func.value, site)
            made, bare = self._creations(values)
            tapes = [by_node[node] for node in made if node in by_node]
            if made:
                found.append(Gradient(site, tapes, not bare))
        return found

    @cached_property
    def steps(self) -> list[Step]:
        """Every optimizer step, with the tapes' gradients that reach it."""
        steps = []
        for site in self._script.sites_named("apply_gradients"):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or self._is_delegation(site, function):
                continue
            pairs = argument(site.node, 0, "grads_and_vars")
            step = Step(
                site, function.value, pairs, [], self._models(site, pairs), self.is_traced(site.scope)
            )
            step.gradients = self._gradients_of(step)
            steps.append(step)
        for gradient in dict.fromkeys(each for step in steps for each in step.gradients):
            for tape in gradient.tapes:
                tape.training.append(gradient)
        for gradient in self.gradients:
            for tape in gradient.tapes:
                if gradient not in tape.training:
                    tape.other.append(gradient)
        return steps

    def _is_delegation(self, site: Site, function: ast.Attribute) -> bool:
        """Whether the call is a class's own ``apply_gradients``, or an optimizer's call of super."""
        if isinstance(function.value, ast.Call) and last_name(function.value.func) == "super":
            return True
        values = self._script.names.callee(site)
        return bool(values) and all(isinstance(value, Function) for value in values)

    def _creations(self, values: Values) -> tuple[list[ast.Call], bool]:
        """The calls that made the tapes among `values`, and whether some tape is not wrapped."""
        made: list[ast.Call] = []
        bare = False
        for value in values:
            if not isinstance(value, Instance):
                continue
            if value.cls == WRAPPED_TAPE and value.node.args:
                inner = self._script.site_of(value.node)
                made += self._creations(self._script.names.site_values(value.node.args[0], inner))[0]
            elif self._script.names.is_a(value, *api.TAPE):
                made.append(value.node)
                bare = True
        return made, bare

    # From a step back to the gradients

    def _gradients_of(self, step: Step) -> list[Gradient]:
        if step.pairs is None:
            return []
        if self._reduced_by_hand(step):
            step.reduced = True
            return []
        by_node = {gradient.site.node: gradient for gradient in self.gradients}
        found = reaching_calls(self._script, by_node, step.pairs, step.site.scope, step.statement)
        if not found:
            home = step.site.scope.function()
            near = [each for each in self.gradients if each.site.scope.function() is home]
            found = near or list(self.gradients)
            return [each for each in found if not self.of_input(each)]
        if len(found) > 1:
            return [each for each in found if not self.of_input(each)] or found
        return found

    def _reduced_by_hand(self, step: Step) -> bool:
        """Whether the gradients pass through an allreduce of the script's own."""
        calls = {site.node: site for site in self._horovod.calls("allreduce", "grouped_allreduce")}
        assert step.pairs is not None
        return bool(calls) and bool(
            reaching_calls(self._script, calls, step.pairs, step.site.scope, step.statement)
        )

    def of_input(self, gradient: Gradient) -> bool:
        """Whether the gradient is taken of what ``tape.watch`` watches: an input, not a weight."""
        sources = argument(gradient.site.node, 1, "sources")
        if sources is None:
            return False
        parts = sources.elts if isinstance(sources, ast.List | ast.Tuple) else [sources]
        receiver = dotted(gradient.site.node.func.value)  # type: ignore[attr-defined]
        watched = {
            dotted(argument)
            for site in self._script.sites_named("watch")
            if site.scope.function() is gradient.site.scope.function()
            and isinstance(site.node.func, ast.Attribute)
            and dotted(site.node.func.value) == receiver
            for argument in site.node.args
        }
        names = {dotted(part) for part in parts}
        return bool(watched) and "" not in names and names <= watched

    # What a step trains

    def _models(self, site: Site, pairs: ast.expr | None) -> list[ast.expr]:
        variables = self._variables_of(pairs, site.scope, site.statement) if pairs is not None else None
        models = self._owners(*variables) if variables is not None else None
        return models or []

    def _variables_of(
        self, pairs: ast.expr, scope: Scope, statement: Statement | None
    ) -> tuple[ast.expr, Scope, Statement | None] | None:
        """The expression of the variables in ``zip(gradients, variables)``, looked for behind names."""
        names = self._script.names
        if isinstance(pairs, ast.Call) and len(pairs.args) >= 1:
            called = names.full_names(pairs.func, scope, statement)
            if "builtins.zip" in called and len(pairs.args) == 2:
                return pairs.args[1], scope, statement
            if "builtins.list" in called or "builtins.tuple" in called:
                return self._variables_of(pairs.args[0], scope, statement)
        if isinstance(pairs, ast.ListComp | ast.GeneratorExp) and len(pairs.generators) == 1:
            return self._variables_of(pairs.generators[0].iter, scope, statement)
        binding = self._visible_binding(pairs, scope, statement)
        if binding is not None and binding.value is not None:
            return self._variables_of(binding.value, binding.scope, binding.statement)
        return None

    def variables(self, step: Step) -> tuple[ast.expr, Scope, Statement | None] | None:
        """The expression of the variables that a step trains, and where it is read; None if unseen."""
        if step.pairs is None:
            return None
        return self._variables_of(step.pairs, step.site.scope, step.statement)

    def has_fixed_variables(self, step: Step) -> bool:
        """Whether the step trains variables that the module binds once."""
        found = self.variables(step)
        if not found:
            return False
        node, scope, statement = found
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                home, bindings = self._script.names.lookup(part.id, scope, statement)
                if home is not None or len(bindings) != 1:
                    return False
                where = bindings[0].statement
                if bindings[0].kind != "value" or where is None or in_loop(where):
                    return False
        return True

    def _owners(self, node: ast.expr, scope: Scope, statement: Statement | None) -> list[ast.expr] | None:
        """The models whose variables `node` lists; None if it may list any others."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = (self._owners(side, scope, statement) for side in (node.left, node.right))
            if left is None or right is None:
                return None
            texts = {ast.dump(each): each for each in [*left, *right]}
            return list(texts.values())
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._owners(node.value, scope, statement)
        if isinstance(node, ast.Attribute) and node.attr in VARIABLE_LISTS:
            values = self._script.names.values(node.value, scope, statement)
            known = self._script.names.may_be(values, *api.MODEL, *api.LAYER, *api.MODULE)
            return [node.value] if known and is_plain(node.value) else None
        binding = self._visible_binding(node, scope, statement)
        if binding is not None and binding.value is not None:
            return self._owners(binding.value, binding.scope, binding.statement)
        return None

    def _visible_binding(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Binding | None:
        """The one assignment behind a name, if what it assigns reads the same from here."""
        if not isinstance(node, ast.Name):
            return None
        home, bindings = self._script.names.lookup(node.id, scope, statement)
        if len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].path:
            return None
        if home is None and scope.function() is not None and not self._reads_module(bindings[0], scope):
            return None
        return bindings[0]

    def _reads_module(self, binding: Binding, scope: Scope) -> bool:
        assert binding.value is not None
        names = {part.id for part in ast.walk(binding.value) if isinstance(part, ast.Name)}
        return all(self._script.names.lookup(name, scope, None)[0] is None for name in names)

    # Custom steps

    def custom_model(self, scope: Scope, seen: frozenset[Scope] = frozenset()) -> Scope | None:
        """The model class of the script whose `fit` alone runs the code (C23); None if there is none."""
        function = scope.function()
        while function is not None and function not in seen:
            owner = function.owner()
            if owner is not None and function.name in _MODEL_METHODS:
                bases = self._script.names.library_bases(owner)
                if any(api.is_subclass(base, *api.MODEL) for base in bases):
                    return None if self._called_directly(function) else owner
            callers, elsewhere = self._script.names.callers(function)
            if callers and not elsewhere and len(seen) < _DEEPEST:
                seen |= {function}
                models = [self.custom_model(site.scope, seen) for site in callers]
                return models[0] if all(models) else None
            function = function.parent.function() if function.parent is not None else None
        return None

    def _called_directly(self, function: Scope) -> bool:
        sites = self._script.names.callers(function)[0]
        return any(site.scope.function() is not function and not of_super(site) for site in sites)

    # How often, and how, code runs

    @cached_property
    def runs_in_graphs(self) -> bool:
        """Whether the script disables eager execution."""
        disablers = ("disable_eager_execution", "disable_v2_behavior")
        return any(
            self._script.names.calls(site, *(f"tensorflow.compat.v1.{name}" for name in disablers))
            for site in self._script.sites_named(*disablers)
        )

    def runs_once(self, site: Site, depth: int = 0) -> bool:
        """Whether the call is surely made at most once in a run of the script."""
        if site.deferred or depth > 20 or in_loop(site.statement):
            return False
        return self._entered_once(site.scope, depth)

    def _entered_once(self, scope: Scope, depth: int) -> bool:
        function = scope.function()
        if function is None:
            return True
        sites, elsewhere = self._script.names.callers(function)
        if elsewhere and not sites:
            launches = [site for site in self._script.sites_named(*_LAUNCHERS) if _hands_over(site, function)]
            passed = self._script.loads(function.name) == len(launches) == 1
            return passed and self.runs_once(launches[0], depth + 1)
        return not elsewhere and len(sites) == 1 and self.runs_once(sites[0], depth + 1)

    def is_single(self, node: ast.expr, site: Site) -> bool:
        """Whether `node`, read at `site`, is one and the same object throughout the run."""
        if isinstance(node, ast.Name) and self._bound_once(node, site):
            return True
        values = self._script.names.site_values(node, site)
        if len(values) != 1:
            return False
        (value,) = values
        if isinstance(value, UserInstance) and value.node is None:
            return self._entered_once_as_class(value.scope)
        if isinstance(value, Instance | UserInstance) and value.node is not None:
            return self.runs_once(self._script.site_of(value.node))
        return False

    def _bound_once(self, node: ast.Name, site: Site) -> bool:
        """Whether the name is assigned in one place, which runs at most once."""
        _, bindings = self._script.names.lookup(node.id, site.scope, site.statement)
        if len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].statement is None:
            return False
        return not in_loop(bindings[0].statement) and self._entered_once(bindings[0].scope, 0)

    def _entered_once_as_class(self, cls: Scope) -> bool:
        made = list(self._script.sites_named(cls.name))
        return len(made) == 1 == self._script.loads(cls.name) and self.runs_once(made[0])

    def is_traced(self, scope: Scope) -> bool:
        """Whether the code may run in the trace of a `tf.function`, as the step of a Keras model does."""
        return self.custom_model(scope) is not None or any(True for _ in self._tracers(scope, set()))

    def compiles_with_xla(self, scope: Scope) -> bool:
        """Whether a `tf.function` around the code asks for ``jit_compile=True``."""
        for call in self._tracers(scope, set()):
            for word in call.keywords if isinstance(call, ast.Call) else ():
                wanted = word.arg in ("jit_compile", "experimental_compile")
                if wanted and not (isinstance(word.value, ast.Constant) and not word.value.value):
                    return True
        return False

    def _tracers(self, scope: Scope, seen: set[Scope]) -> Iterator[ast.expr]:
        """The `tf.function` decorators and calls under which the code may run."""
        function = scope.function()
        while function is not None and function not in seen:
            seen.add(function)
            for decorator in getattr(function.node, "decorator_list", []):
                if self._is_tf_function(decorator, function):
                    yield decorator
            yield from self._wrappings(function)
            sites, _ = self._script.names.callers(function)
            for site in sites:
                yield from self._tracers(site.scope, seen)
            function = function.parent.function() if function.parent is not None else None

    def _is_tf_function(self, node: ast.expr, function: Scope) -> bool:
        target = node.func if isinstance(node, ast.Call) else node
        outer = function.parent or function
        names = self._script.names.full_names(target, outer, function.statement)
        if "functools.partial" in names and isinstance(node, ast.Call) and node.args:
            names = self._script.names.full_names(node.args[0], outer, function.statement)
        return "tensorflow.function" in names

    def _wrappings(self, function: Scope) -> Iterator[ast.Call]:
        """Calls such as ``tf.function(step)``."""
        for site in self._script.sites_named("function"):
            if site.node.args and self._script.names.calls(site, "tensorflow.function"):
                values = self._script.names.site_values(site.node.args[0], site)
                if any(isinstance(value, Function) and value.scope is function for value in values):
                    yield site.node

    # What trains

    @cached_property
    def functions(self) -> set[Scope]:
        """Functions that make an optimizer step or take a trained gradient, or call one that does."""
        found: set[Scope] = set()
        waiting = [step.site.scope.function() for step in self.steps]
        waiting += [each.site.scope.function() for step in self.steps for each in step.gradients]
        waiting += [site.scope.function() for site in self._horovod.calls("broadcast_variables", "allreduce")]
        waiting += [site.scope.function() for site in self.others()]
        while waiting:
            function = waiting.pop()
            if function is None or function in found:
                continue
            found.add(function)
            waiting += [site.scope.function() for site in self._script.names.callers(function)[0]]
            # A nested function runs, as far as can be told, whenever the one around it does.
            if function.parent is not None and not function.name:
                waiting.append(function.parent.function())
        return found

    @cached_property
    def _training_sites(self) -> set[Site]:
        found = {step.site for step in self.steps}.union(self.others())
        found |= {each.site for step in self.steps for each in step.gradients}
        for function in self.functions:
            found.update(self._script.names.callers(function)[0])
        return found

    def site_trains(self, site: Site) -> bool:
        """Whether the call makes an optimizer step, or anything else that every rank must take part in."""
        return site in self._training_sites

    def statement_trains(self, statement: Statement) -> bool:
        """Whether something inside the statement trains."""
        return statement in self._training_statements

    @cached_property
    def _training_statements(self) -> set[Statement]:
        return {above for site in self._training_sites for above in site.statement.path()}


def _hands_over(site: Site, function: Scope) -> bool:
    """Whether the call is given the function by its name: ``app.run(main)``."""
    return any(isinstance(each, ast.Name) and each.id == function.name for each in site.node.args)


def in_loop(statement: Statement) -> bool:
    """Whether the statement is repeated by a loop of its own function."""
    for below, above in pairwise(statement.path()):
        if above.scope is not statement.scope:
            return False
        if isinstance(above.node, LOOPS) and below.branch == "body":
            return True
    return False


def of_super(site: Site) -> bool:
    """Whether the call is that of a base class: ``super().compile(...)``."""
    function = site.node.func
    receiver = function.value if isinstance(function, ast.Attribute) else function
    return isinstance(receiver, ast.Call) and last_name(receiver.func) == "super"


def is_plain(node: ast.expr) -> bool:
    """Whether reading `node` again gives the same object and does nothing else: names and constants."""
    if isinstance(node, ast.Attribute):
        return is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return is_plain(node.value) and (isinstance(node.slice, ast.Constant) or is_plain(node.slice))
    return isinstance(node, ast.Name)
