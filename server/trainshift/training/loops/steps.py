"""Steps: the optimizer steps of a script, their tapes, and their variables.

A tape belongs to a training loop when its gradients reach an `apply_gradients` (spec.md 2); a tape
whose gradients do not, such as that of a gradient penalty, is left alone.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from typing import TypeGuard, TypeVar

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.roles import WRAPPED_TAPE
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, Instance, Value, Values
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Statement, argument, dotted, last_name
from trainshift.python.values.backward_slice import backward_slice
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.horovod.existing_use import Horovod

T = TypeVar("T")
APPLY = "apply"
GRADIENT_METHODS = ("gradient", "jacobian", "batch_jacobian")
VARIABLE_LISTS = ("trainable_variables", "trainable_weights", "variables", "weights")


class Tape(Struct, eq=False):
    """A gradient tape: its creation, and the `with` that records on it.

    `name` is the (dotted) name that the `with` binds or enters; empty if there is none.
    """

    creation: Site
    with_statement: Statement | None = None
    name: str = ""


class Gradient(Struct, eq=False):
    """A call of ``tape.gradient`` or a similar method.

    `bare` are the tapes that may reach it undistributed, `wrapped` those that may reach it distributed, by
    the calls `wraps`: a tape is among both if a condition decides.
    """

    site: Site
    tapes: list[Tape]
    bare: frozenset[Tape]
    wrapped: frozenset[Tape]
    wraps: list[Site]

    def needs_wrap(self, tape: Tape) -> bool:
        """Return whether a tape always comes undistributed."""
        return tape in self.bare - self.wrapped


class Step(Struct, eq=False):
    """A call of `apply_gradients` or `apply`, or of `train_on_batch`, whose receiver is the model.

    `models` are the expressions whose ``.variables`` are all that the step trains, empty if they are unknown.
    In ``apply(grads, variables)`` the `pairs` are the gradients, next to the `variables`; `gradients` are the
    gradient calls that reach it, none if they are `reduced` by an allreduce of the script's own.
    """

    site: Site
    receiver: ast.expr
    pairs: ast.expr | None
    gradients: list[Gradient]
    models: list[ast.expr]
    traced: bool
    reduced: bool = False
    on_batch: bool = False
    variables: ast.expr | None = None

    @property
    def statement(self) -> Statement:
        """The statement of the call."""
        return self.site.statement


class Steps:
    """The optimizer steps of one script."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._executions = program.fact(Executions)
        self._flow = program.fact(ControlFlow)

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
                for node in itertools.chain(*self._creations(values)):
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
            bare, wrapped = self._creations(values)
            wraps = [self._script.site_of(value.node) for value in values if _is_wrap(value)]
            if bare or wraps:
                ways = [[by_node[node] for node in way if node in by_node] for way in (bare, wrapped)]
                tapes = list(dict.fromkeys(tape for way in ways for tape in way))
                found.append(Gradient(site, tapes, frozenset(ways[0]), frozenset(ways[1]), wraps))
        return found

    @cached_property
    def steps(self) -> list[Step]:
        """Every optimizer step, with the tapes' gradients that reach it.

        Training on rank 0 alone is not a step: a rank that averaged would wait for the others.
        """
        steps = []
        for site in (*self._script.sites_named("apply_gradients"), *self._applied):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or self._is_delegation(site, function):
                continue
            variables = None
            if site.name == APPLY:
                pairs, variables = _applied_to(site)
                owners = self._owners(variables, site.scope, site.statement) if variables else None
            else:
                pairs = argument(site.node, 0, "grads_and_vars")
                owners = self._models(site, pairs)
            traced = self._executions.is_traced(site.scope)
            step = Step(site, function.value, pairs, [], owners or [], traced, variables=variables)
            step.gradients = self._gradients_of(step)
            if site.name == APPLY and variables is None:
                self._take_sources(step)
            steps.append(step)
        alone = [step for step in steps if self._is_alone(step)]
        shared = self._optimizers(*(step for step in steps if step not in alone))
        return [step for step in steps if step not in alone or not shared.isdisjoint(self._optimizers(step))]

    def _take_sources(self, step: Step) -> None:
        """For ``apply(grads)``, use the sources of the gradients as the variables that the optimizer was
        built with.
        """
        if len(step.gradients) != 1 or step.gradients[0].site.scope is not step.site.scope:
            return
        taken = step.gradients[0].site
        sources = argument(taken.node, 1, "sources")
        if sources is None or not is_plain(sources):
            return
        step.models = self._owners(sources, taken.scope, taken.statement) or []
        step.variables = sources

    @property
    def _applied(self) -> Iterator[Site]:
        """The calls of ``optimizer.apply(grads, variables)``, as Keras 3 has it."""
        for site in self._script.sites_named(APPLY):
            if isinstance(site.node.func, ast.Attribute):
                grads, variables = _applied_to(site)
                values = self._script.names.site_values(site.node.func.value, site)
                if self._script.names.may_be(values, *api.OPTIMIZERS):
                    yield site
                elif grads is not None and variables is not None and self.tapes:
                    by_node = {gradient.site.node: gradient for gradient in self.gradients}
                    if reaching_calls(self._script, by_node, grads, site.scope, site.statement):
                        yield site

    def _is_alone(self, step: Step) -> bool:
        """Return whether only rank 0 makes a step, by a known optimizer, without Horovod."""
        reduced = step.reduced or any(each.wraps for each in step.gradients)
        return not reduced and self._horovod.site_on_root(step.site) and bool(self._optimizers(step))

    def _optimizers(self, *steps: Step) -> set[ast.Call]:
        """The calls that create the optimizers of some steps, as far as they are known."""
        values = itertools.chain(
            *(self._script.names.site_values(each.receiver, each.site) for each in steps)
        )
        return {each.node for each in values if isinstance(each, Instance)}

    def _is_delegation(self, site: Site, function: ast.Attribute) -> bool:
        """Return whether the call is a class's own ``apply_gradients``, or an optimizer's call of super."""
        if isinstance(function.value, ast.Call) and last_name(function.value.func) == "super":
            return True
        values = self._script.names.callee(site)
        if not values or not all(isinstance(value, Function) for value in values):
            return False
        # A custom optimizer steps by its own method, which calls that of its base.
        receiver = self._script.names.site_values(function.value, site)
        return not self._script.names.may_be(receiver, *api.OPTIMIZERS)

    def _creations(
        self, values: Values, behind: Values = frozenset()
    ) -> tuple[list[ast.Call], list[ast.Call]]:
        """The calls that created the tapes among `values`, plain or wrapped.

        The wraps in `behind` were already followed, and are not followed again: ``self.tape =
        wrap(self.tape)``.
        """
        bare: list[ast.Call] = []
        wrapped: list[ast.Call] = []
        for value in values - behind:
            if _is_wrap(value):
                inner = self._script.site_of(value.node)
                given = self._script.names.site_values(value.node.args[0], inner)
                ways = self._creations(given, behind | {value})
                wrapped += itertools.chain(*ways)
            elif isinstance(value, Instance) and self._script.names.is_a(value, *api.TAPE):
                bare.append(value.node)
        return bare, wrapped

    # From a step to its gradients

    def _gradients_of(self, step: Step) -> list[Gradient]:
        if step.pairs is None:
            return []
        if self._reduced_by_hand(step):
            step.reduced = True
            return []
        by_node = {gradient.site.node: gradient for gradient in self.gradients}
        found = self.reaching(step, by_node)
        if not found:
            home = step.site.scope.function()
            near = [each for each in self.gradients if each.site.scope.function() is home]
            found = near or list(self.gradients)
            return [each for each in found if not self.of_input(each)]
        if len(found) > 1:
            return [each for each in found if not self.of_input(each)] or found
        return found

    def _reduced_by_hand(self, step: Step) -> bool:
        """Return whether the gradients pass through an allreduce of the script's own."""
        calls = {site.node: site for site in self._horovod.calls("allreduce", "grouped_allreduce")}
        return bool(self.reaching(step, calls))

    def reaching(self, step: Step, wanted: Mapping[ast.Call, T]) -> list[T]:
        """Return those of the `wanted` calls whose results reach the gradients that a step applies."""
        pairs, at = step.pairs, (step.site.scope, step.statement)
        if pairs is None:
            return []
        # The variables beside it have no gradient, and following a model's may read a whole library.
        if isinstance(pairs, ast.Call) and len(pairs.args) == 2 and not pairs.keywords:
            if "builtins.zip" in self._script.names.full_names(pairs.func, *at):
                pairs = pairs.args[0]
        return reaching_calls(self._script, wanted, pairs, *at)

    def is_optimizers_own(self, scope: Scope) -> bool:
        """Return whether code is a method of an optimizer, which a loop calls, but which is not a loop."""
        owner = class_around(scope)
        return owner is not None and self._script.names.descends(owner, *api.OPTIMIZERS)

    def of_input(self, gradient: Gradient) -> bool:
        """Return whether a gradient is taken with respect to an input (``tape.watch``), not a weight."""
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
        if not watched or "" in names or not names <= watched:
            return False
        site = gradient.site
        return not any(self._is_weight(Occurrence(part, site.scope, site.statement)) for part in parts)

    def _is_weight(self, at: Occurrence) -> bool:
        """Return whether an expression contains a model's variables, or is a variable."""
        for each in backward_slice(self._script.names, at):
            read = (part.attr for part in ast.walk(each.node) if isinstance(part, ast.Attribute))
            values = self._script.names.values(each.node, each.scope, each.statement)
            if any(attribute in VARIABLE_LISTS for attribute in read) or self._script.names.may_be(
                values, *api.VARIABLE
            ):
                return True
        return False

    # Variables that a step trains

    def _models(self, site: Site, pairs: ast.expr | None) -> list[ast.expr]:
        variables = self._variables_of(pairs, site.scope, site.statement) if pairs is not None else None
        models = self._owners(*variables) if variables is not None else None
        return models or []

    def _variables_of(
        self, pairs: ast.expr, scope: Scope, statement: Statement | None
    ) -> tuple[ast.expr, Scope, Statement | None] | None:
        """The expression of the variables in ``zip(gradients, variables)``, followed through names."""
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
        """The expression of the variables that a step trains, with its scope and statement; None if
        unknown.
        """
        if step.variables is not None:
            return step.variables, step.site.scope, step.statement
        if step.pairs is None:
            return None
        return self._variables_of(step.pairs, step.site.scope, step.statement)

    def has_fixed_variables(self, step: Step) -> bool:
        """Return whether the step trains variables that the module binds once."""
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
                if bindings[0].kind != "value" or where is None or self._flow.repeats(where):
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
        """The only assignment behind a name, if the assigned value means the same here."""
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


def _applied_to(site: Site) -> tuple[ast.expr | None, ast.expr | None]:
    """The gradients and the variables of an ``optimizer.apply``."""
    return argument(site.node, 0, "grads"), argument(site.node, 1, "trainable_variables")


def _is_wrap(value: Value) -> TypeGuard[Instance]:
    """Return whether a value is the result of ``hvd.DistributedGradientTape(tape)``."""
    return isinstance(value, Instance) and value.cls == WRAPPED_TAPE and bool(value.node.args)


def is_plain(node: ast.expr) -> bool:
    """Return whether evaluating `node` again returns the same object without effects: names and constants."""
    if isinstance(node, ast.Attribute):
        return is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return is_plain(node.value) and (isinstance(node.slice, ast.Constant) or is_plain(node.slice))
    return isinstance(node, ast.Name)
