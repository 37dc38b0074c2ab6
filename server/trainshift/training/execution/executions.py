"""Executions: how often code of a script runs, and whether eagerly, traced, or by a model's `fit`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Function, Instance, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.execution.control_flow import ControlFlow

# Methods of a model that its `fit` runs.
_MODEL_METHODS = frozenset({"train_step", "make_train_function", "train_on_batch", "fit"})
_LAUNCHERS = ("run", "Fire", "command")


class Executions:
    """The order and number of executions of one script's code."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._flow = program.fact(ControlFlow)

    # Custom steps

    def custom_model(self, scope: Scope) -> Scope | None:
        """The model class of the script whose `fit` alone runs the code (spec.md 5.23), or None."""
        owners: list[Scope] = []
        for function in reachable([scope.function()], self._run_from):
            owner = self._fitted(function) if function is not None else None
            if function is None or (owner is not None and self._called_directly(function)):
                return None
            owners += [owner] if owner is not None else []
        return owners[0] if owners else None

    def _run_from(self, function: Scope | None) -> list[Scope | None]:
        """The callers of a function, up to the methods that `fit` runs; None is code outside of functions."""
        if function is None or self._fitted(function) is not None:
            return []
        callers, elsewhere = self._script.names.callers(function)
        if callers and not elsewhere:
            return [site.scope.function() for site in reversed(callers)]
        return [_function_around(function)]

    def _fitted(self, function: Scope) -> Scope | None:
        """The model class of a method that `fit` runs."""
        owner = function.owner()
        if owner is None or function.name not in _MODEL_METHODS:
            return None
        return owner if self._script.names.descends(owner, *api.MODEL) else None

    def _called_directly(self, function: Scope) -> bool:
        sites = self._script.names.callers(function)[0]
        return any(site.scope.function() is not function and not of_super(site) for site in sites)

    # How often, and how, code runs

    @cached_property
    def runs_in_graphs(self) -> bool:
        """Return whether the script disables eager execution."""
        disablers = ("disable_eager_execution", "disable_v2_behavior")
        return any(
            self._script.names.calls(site, *(f"tensorflow.compat.v1.{name}" for name in disablers))
            for site in self._script.sites_named(*disablers)
        )

    def runs_once(self, site: Site) -> bool:
        """Return whether the call is certainly made at most once in a run of the script."""
        return not site.deferred and self._evaluated_once(site.statement)

    def entered_once(self, scope: Scope) -> bool:
        """Return whether the function around the scope certainly runs at most once; the script's own code
        does.
        """
        function = scope.function()
        for each in reachable(filter(None, [function]), self._entered_from):
            site = self._one_call(each)
            if site is None or site.deferred or self._flow.repeats(site.statement):
                return False
        return True

    def _evaluated_once(self, statement: Statement) -> bool:
        return not self._flow.repeats(statement) and self.entered_once(statement.scope)

    def _entered_from(self, function: Scope) -> list[Scope]:
        """The function that contains the only call of another."""
        site = self._one_call(function)
        caller = site.scope.function() if site is not None else None
        return [caller] if caller is not None else []

    def _one_call(self, function: Scope) -> Site | None:
        """The only call that runs a function; None if there may be others."""
        sites, elsewhere = self._script.names.callers(function)
        if elsewhere and not sites:
            launches = [site for site in self._script.sites_named(*_LAUNCHERS) if _hands_over(site, function)]
            passed = self._script.home(function).loads(function.name) == len(launches) == 1
            return launches[0] if passed else None
        return sites[0] if not elsewhere and len(sites) == 1 else None

    def is_single(self, node: ast.expr, site: Site) -> bool:
        """Return whether `node`, read at `site`, is one and the same object throughout the run."""
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
        """Return whether the name is assigned in one place, which runs at most once."""
        _, bindings = self._script.names.lookup(node.id, site.scope, site.statement)
        if len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].statement is None:
            return False
        return self._evaluated_once(bindings[0].statement)

    def _entered_once_as_class(self, cls: Scope) -> bool:
        made = list(self._script.sites_named(cls.name))
        return len(made) == 1 == self._script.loads(cls.name) and self.runs_once(made[0])

    def is_traced(self, scope: Scope) -> bool:
        """Return whether the code may run in the trace of a `tf.function`, like the step of a Keras model."""
        return self.custom_model(scope) is not None or any(True for _ in self._tracers(scope))

    def is_in_graph(self, scope: Scope) -> bool:
        """Return whether the code may run in a graph: traced, in a layer, or in a script without eager
        execution.
        """
        return self.runs_in_graphs or self.is_traced(scope) or self._is_in_layer(scope)

    def _is_in_layer(self, scope: Scope) -> bool:
        """Return whether a layer or a model may run the code, which Keras calls with symbolic values, too."""
        functions = reachable(filter(None, [scope.function()]), self._callers_and_outer)
        owners = (each.owner() for each in functions if each.name == "call")
        return any(each is not None and self._script.names.descends(each, *api.LAYER) for each in owners)

    def compiles_with_xla(self, scope: Scope) -> bool:
        """Return whether a `tf.function` around the code asks for ``jit_compile=True``."""
        for call in self._tracers(scope):
            for word in call.keywords if isinstance(call, ast.Call) else ():
                wanted = word.arg in ("jit_compile", "experimental_compile")
                if wanted and not (isinstance(word.value, ast.Constant) and not word.value.value):
                    return True
        return False

    def has_autograph(self, scope: Scope) -> bool:
        """Return whether AutoGraph turns the code into a graph wherever a `tf.function` traces it."""
        for call in self._tracers(scope):
            given = argument(call, 2, "autograph") if isinstance(call, ast.Call) else None
            if given is not None and not (isinstance(given, ast.Constant) and given.value is True):
                return False
        return not any(
            last_name(decorator) == "do_not_convert"
            for function in scope.functions()
            for decorator in getattr(function.node, "decorator_list", [])
        )

    def _tracers(self, scope: Scope) -> Iterator[ast.expr]:
        """The `tf.function` decorators and calls under which the code may run."""
        for function in reachable(filter(None, [scope.function()]), self._callers_and_outer):
            for decorator in getattr(function.node, "decorator_list", []):
                if self._is_tf_function(decorator, function):
                    yield decorator
            yield from self._wrappings(function)

    def _callers_and_outer(self, function: Scope) -> list[Scope]:
        """The callers of a function, and the function that defines it."""
        callers = [site.scope.function() for site in self._script.names.callers(function)[0]]
        return [each for each in (_function_around(function), *reversed(callers)) if each is not None]

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

    # Code that runs

    def functions_reached(self, statement: Statement) -> set[Scope]:
        """The functions of the script that a statement calls, directly or indirectly."""
        code = self._script.code

        def called(sites: Iterable[Site]) -> Iterator[Scope]:
            return (function for site in sites for function in self._script.names.called_functions(site))

        starts = called(site for each in statement.walk() for site in code.sites_by_statement.get(each, ()))
        return set(reachable(starts, lambda function: called(code.sites_by_function.get(function, ()))))


def _hands_over(site: Site, function: Scope) -> bool:
    """Return whether a call gets the function by its name: ``app.run(main)``."""
    return any(isinstance(each, ast.Name) and each.id == function.name for each in site.node.args)


def is_of_one_branch(site: Site) -> bool:
    """Return whether a call is in one branch of an `if` of its own function that also has another branch."""
    for below, above in pairwise(site.statement.path()):
        if above.scope is not site.statement.scope:
            return False
        if isinstance(above.node, ast.If) and above.branches.get("orelse") and below.branch != "header":
            return True
    return False


def of_super(site: Site) -> bool:
    """Return whether the call is that of a base class: ``super().compile(...)``."""
    function = site.node.func
    receiver = function.value if isinstance(function, ast.Attribute) else function
    return isinstance(receiver, ast.Call) and last_name(receiver.func) == "super"


def innermost_loop(statement: Statement) -> Statement | None:
    """The innermost loop around a statement of its function, which a `break` there leaves; None if there is
    none.
    """
    for below, above in pairwise(statement.path()):
        if above.scope is not statement.scope:
            return None
        if isinstance(above.node, LOOPS) and below.branch == "body":
            return above
    return None


def _function_around(function: Scope) -> Scope | None:
    return function.parent.function() if function.parent is not None else None


def counted_in(statement: Statement) -> str:
    """The counter that a statement increments: ``step += 1``, ``step.assign_add(1)``, ``for step, x in
    enumerate(ds)``.
    """
    node, value = statement.node, getattr(statement.node, "value", None)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return dotted(node.target) if _is_one(node.value) else ""
    if isinstance(node, ast.Assign) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        name = dotted(node.targets[0])
        return name if name == dotted(value.left) and _is_one(value.right) else ""
    if isinstance(node, ast.Expr) and isinstance(value, ast.Call) and last_name(value.func) == "assign_add":
        given = argument(value, 0, "delta")
        return dotted(getattr(value.func, "value", value)) if given is not None and _is_one(given) else ""
    if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and node.target.elts:
        if isinstance(node.iter, ast.Call) and last_name(node.iter.func) == "enumerate":
            return dotted(node.target.elts[0])
    return ""


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def run_apart(one: Statement, other: Statement) -> bool:
    """Return whether a run reaches only one of two statements, in two branches of an `if` that no loop
    repeats.
    """
    below = {each.parent: each for each in other.path()}
    for each in one.path():
        above = each.parent
        if above is not None and isinstance(above.node, ast.If) and above in below:
            if below[above].branch != each.branch:
                return not any(isinstance(around.node, LOOPS) for around in above.ancestors())
    return False
