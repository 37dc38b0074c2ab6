"""Find the use of Horovod in a script: its import, the code of the root rank, the scaled values.

spec.md 5.20: statements that are already distributed are recognised here and left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.python.flow.cfg import Cfg, Point, reached
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Library
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Statement,
    arguments,
    dotted,
    expression_path,
)
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import counted_in
from trainshift.training.execution.graph_slice import is_reached

TENSORFLOW = "horovod.tensorflow"
KERAS = "horovod.tensorflow.keras"
# Other imports that bind one of the two: Horovod for standalone Keras.
_ALSO = {KERAS: ("horovod.keras",)}
# Objects that Horovod's elastic training keeps in sync on all ranks, including variables.
_ELASTIC = ("KerasState", "TensorFlowKerasState", "TensorFlowState")

_SETTING_UP = ("init", "local_rank")
# Calls that assign values to variables.
_SETTING = ("set_weights", "assign", "load_state_dict", "set_value")
# Initial values of the flag of a broadcast.
_NONE_YET = ("False", "set()")
_NO_VALUE_YET = ".Variable(False, trainable=False)"
# Nested tests are read to this depth; beyond, nothing is known to run on rank 0 alone.
_DEEPEST = 60
# Expressions that may only pass a value on; tests, and choices between values, are read separately.
_HANDING = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


class Horovod:
    """Horovod facts of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._asked_of: set[Scope] = set()
        self._calls: dict[tuple[str, ...], tuple[Site, ...]] = {}
        self._answers = Questions(False, False, deepest=_DEEPEST)
        # Points reached without a test for rank 0, by graph.
        self._elsewhere: dict[Cfg, frozenset[Point]] = {}

    def imported_as(self, module: str) -> tuple[str, Statement] | None:
        """The expression for `module` (TENSORFLOW, KERAS) at module level, and its import."""
        wanted = (module, *_ALSO.get(module, ()))
        for name, bindings in self._script.module_bindings.items():
            imports = [binding for binding in bindings if binding.kind == "import"]
            if any(not _stands_in_for(binding, imports) for binding in bindings if binding not in imports):
                continue
            for binding in imports:
                if binding.scope.kind != "module" or binding.statement is None:
                    continue
                if binding.full_name in wanted:
                    return name, binding.statement
                if isinstance(binding.target, ast.alias) and binding.target.name in wanted:
                    return binding.target.name, binding.statement
        return None

    @cached_property
    def is_used(self) -> bool:
        """Return whether any Horovod module is imported, anywhere in the script."""
        return any(binding.full_name.partition(".")[0] == "horovod" for binding in self._script.imports)

    @cached_property
    def is_elastic(self) -> bool:
        """Return whether the script trains with Horovod's elastic state, as ranks come and go."""
        return bool(self.calls(*_ELASTIC))

    def is_call(self, site: Site, *functions: str) -> bool:
        """Return whether the call is ``hvd.<function>()`` for one of `functions`."""
        return not self._functions(site.node.func, site.scope, site.statement).isdisjoint(functions)

    def is_function(self, at: Occurrence, *functions: str) -> bool:
        """Return whether an expression is an uncalled Horovod function that should be called."""
        values = self._script.names.values(*at[:3])
        return bool(values) and all(
            isinstance(each, Library)
            and each.name.startswith("horovod.")
            and each.name.rpartition(".")[2] in functions
            for each in values
        )

    def is_statement(self, statement: Statement | None, *functions: str) -> bool:
        """Return whether a statement only calls one of Horovod's `functions`."""
        node = statement.node if statement is not None else None
        called = node.value if isinstance(node, ast.Expr) else None
        return isinstance(called, ast.Call) and self.is_call(self._script.site_of(called), *functions)

    def calls(self, *functions: str) -> tuple[Site, ...]:
        """Every call of one of Horovod's `functions`, under any name in the script."""
        if functions not in self._calls:
            sites = (*self._script.sites_named(*functions), *self._renamed) if self.is_used else ()
            found = {site for site in sites if self.is_call(site, *functions)}
            self._calls[functions] = tuple(sorted(found, key=self._script.code.site_places.__getitem__))
        return self._calls[functions]

    @cached_property
    def _renamed(self) -> list[Site]:
        """The calls of Horovod's functions under names that the script gives, or that have none."""
        sites = self._script.sites_calling(())
        return [site for site in sites if self._functions(site.node.func, site.scope, site.statement)]

    def _functions(self, node: ast.expr, scope: Scope, statement: Statement | None) -> frozenset[str]:
        """The names of the Horovod functions that an expression may refer to."""
        full = self._script.names.full_names(node, scope, statement) if self.is_used else ()
        return frozenset(name.rpartition(".")[2] for name in full if name.startswith("horovod."))

    @cached_property
    def starts_in_functions(self) -> bool:
        """Return whether the script starts Horovod only inside functions, as for ``horovod.run(main)``."""
        return all(site.scope.function() is not None for site in self._starts) and bool(self._starts)

    def is_started_below(self, site: Site) -> bool:
        """Return whether the script starts Horovod after a call: in functions, or further down in its own
        code.
        """
        function = site.scope.function()
        own = [each for each in self._starts if each.scope.function() is function]
        span = self._script.span
        above = any(span(site.node, site) < span(each.node, each) for each in own)
        return self.starts_in_functions and (function is None or above)

    @cached_property
    def _starts(self) -> tuple[Site, ...]:
        return self.calls("init")

    def sets_up(self, statement: Statement, above: Sequence[Statement]) -> bool:
        """Return whether the statement starts Horovod or gives a rank its GPU, and calls nothing else.

        A broadcast flag directly below, judged by the statements `above`, belongs to it.
        """
        if not self.is_used or isinstance(statement.node, ast.FunctionDef | ast.ClassDef):
            return False
        if _is_flag(statement):
            started = next((each for each in reversed(above) if not _is_flag(each)), None)
            return started is not None and self.sets_up(started, ())
        inside = set(statement.walk())
        sites = [site for site in statement.scope.facts.sites if site.statement in inside]
        names = [self._script.names.full_names(each.node.func, each.scope, each.statement) for each in sites]
        told = [each for each in names if each != {"builtins.len"}]  # Calls that count a process's GPUs.
        return bool(told) and all(each and all(map(_is_of_setup, each)) for each in told)

    def scaled(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether the value of `node` depends on ``hvd.size()``, through variables too.

        The step passed to a schedule only selects a position, and scales nothing; neither do numbers of
        steps.
        """
        return is_reached(self._script, self._scales, node, scope, statement)

    def divided(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether a number of steps depends on ``hvd.size()``, other than through an object that knows
        a rate.
        """
        return is_reached(self._script, self._sizes, node, scope, statement, through_objects=False)

    @cached_property
    def _sizes(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self.calls("size", "local_size")}

    @cached_property
    def _scales(self) -> dict[ast.Call, Site]:
        return {node: site for node, site in self._sizes.items() if not self.moves_step(site)}

    def moves_step(self, site: Site) -> bool:
        """Return whether a call stands in ``step * hvd.size()``, of a counter or of a parameter of
        `__call__`.

        The same holds for ``steps // hvd.size()``.
        """
        for above in expression_path(site.statement.node, site.node):
            if isinstance(above, ast.BinOp) and above.right is site.node:
                is_counter = isinstance(above.op, ast.Mult) and dotted(above.left) in self._counted
                if is_counter or isinstance(above.op, ast.FloorDiv):
                    return True
        node, function = site.statement.node, site.scope.function()
        if not isinstance(node, ast.Assign) or function is None or function.name != "__call__":
            return False
        assert isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
        taken = [*function.node.args.posonlyargs, *function.node.args.args][1:2]
        target, value = node.targets[0], node.value
        return (
            isinstance(target, ast.Name)
            and [each.arg for each in taken] == [target.id]
            and isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Mult)
            and isinstance(value.left, ast.Name)
            and value.left.id == target.id
        )

    @cached_property
    def _counted(self) -> set[str]:
        """The names that the script increments as counters."""
        return {counted_in(statement) for statement in self._script.statements} - {""}

    def sets_weights(self, site: Site) -> bool:
        """Return whether the values that a call broadcasts become weights."""
        wanted = {site.node: site}
        return any(
            is_reached(self._script, wanted, each, other.scope, other.statement)
            for other in self._script.sites_named(*_SETTING)
            for each in other.node.args[:1]
        )

    # Root rank only

    def on_root(self, statement: Statement) -> bool:
        """Return whether the statement runs on rank 0 only: under a test of the rank, or after a return."""
        if not self.is_used:
            return False
        flow = self._program.fact(ControlFlow)
        if flow.has_tests(statement):
            cfg = flow.graph(statement)
            if cfg not in self._elsewhere:
                cut = {edge for edge, test, holds in flow.decisions(cfg) if self._tells_root(test, holds)}
                self._elsewhere[cfg] = frozenset(reached([cfg.entry], cut=cut)) if cut else cfg.reachable
            starts = frozenset(cfg.starts(statement.node))
            # What no rank reaches (after a return, say) does not run on others either.
            if starts and self._elsewhere[cfg].isdisjoint(starts & cfg.reachable):
                return True
        around = flow.around(statement)
        if around is not None and isinstance(around.node, ast.ClassDef):
            return self.on_root(around)
        function = statement.scope.function()
        return function is not None and self._called_on_root(function)

    def site_on_root(self, site: Site) -> bool:
        """Like `on_root`, for a call: also under ``... if hvd.rank() == 0 else ...`` or ``and``, or in a
        comprehension that tests the rank.
        """
        return self.expression_on_root(site.node, site.statement)

    def expression_on_root(self, node: ast.expr, statement: Statement) -> bool:
        """Like `site_on_root`, for any expression of a statement."""
        if not self.is_used:
            return False
        if self.on_root(statement):
            return True
        path = expression_path(statement.node, node)
        for above, below in pairwise(path):
            if isinstance(above, ast.IfExp) and below is not above.test:
                if self._tells_root(_at(above.test, statement), below is above.body):
                    return True
            elif isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp) and below is above.elt:
                inside = statement.scope.facts.scope_of[above]
                conditions = [test for generator in above.generators for test in generator.ifs]
                tests = (Occurrence(test, inside, statement) for test in conditions)
                if any(self._tells_root(test, True) for test in tests):
                    return True
            elif isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And):
                earlier = above.values[: above.values.index(below)]  # type: ignore[arg-type]
                if any(self._tells_root(_at(value, statement), True) for value in earlier):
                    return True
            elif isinstance(above, ast.BoolOp):
                earlier = above.values[: above.values.index(below)]  # type: ignore[arg-type]
                if any(self._tells_root(_at(value, statement), False) for value in earlier):
                    return True
        return False

    def _called_on_root(self, function: Scope) -> bool:
        """Return whether a function is called on rank 0 only; recursive calls do not count."""
        if function in self._asked_of:
            return True
        sites, elsewhere = self._script.names.callers(function)
        if elsewhere or not sites:
            return False
        self._asked_of.add(function)
        try:
            return all(self.site_on_root(site) for site in sites)
        finally:
            self._asked_of.discard(function)

    def _tells_root(self, test: Occurrence, holds: bool) -> bool:
        """Return whether a test being true (or false, if not `holds`) implies that this is rank 0."""
        return self._answers.ask((id(test.node), id(test.scope), holds), self._implies_root, test, holds)

    def _implies_root(self, test: Occurrence, holds: bool) -> bool:
        node = test.node
        if self._is_rank(test):
            return not holds
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._tells_root(test.part(node.operand), not holds)
        if isinstance(node, ast.BoolOp):
            decisive = ast.And if holds else ast.Or
            parts = map(test.part, node.values)
            return isinstance(node.op, decisive) and any(self._tells_root(part, holds) for part in parts)
        if isinstance(node, ast.Compare):
            return self._compares_rank(node, test, holds)
        if isinstance(node, ast.IfExp) and isinstance(node.body, ast.Constant):
            if isinstance(node.orelse, ast.Constant) and bool(node.body.value) != bool(node.orelse.value):
                return self._tells_root(test.part(node.test), bool(node.body.value) == holds)
        return self._decides(test, lambda source: self._tells_root(source, holds))

    def _compares_rank(self, node: ast.Compare, test: Occurrence, holds: bool) -> bool:
        """Like `_tells_root`, for ``hvd.rank() == 0`` and similar comparisons."""
        if len(node.ops) != 1:
            return False
        sides = [node.left, node.comparators[0]]
        # ``hvd.rank == 0`` is meant as a test of the rank, and is never true.
        if not any(self._is_rank(test.part(side)) or self._names_rank(test.part(side)) for side in sides):
            return False
        if any(isinstance(side, ast.Constant) and side.value == 0 for side in sides):
            return isinstance(node.ops[0], ast.Eq | ast.LtE if holds else ast.NotEq | ast.Gt)
        one = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 1
        return one and isinstance(node.ops[0], ast.Lt if holds else ast.GtE)

    def _is_rank(self, at: Occurrence) -> bool:
        """Return whether an expression is the rank, under any name."""
        return self._answers.ask((id(at.node), id(at.scope)), self._gives_rank, at)

    def _gives_rank(self, at: Occurrence) -> bool:
        node = at.node
        if isinstance(node, ast.Call) and not node.args:
            if self._names_rank(at.part(node.func)):
                return True
        return self._decides(at, self._is_rank)

    def tells_rank(self, site: Site) -> bool:
        """Return whether the rank occurs in a call's arguments, so that they differ between ranks."""
        parts = (part for each in arguments(site.node) for part in ast.walk(each))
        named = (each for each in parts if isinstance(each, ast.Call | ast.Name | ast.Attribute))
        return self.is_used and any(self._is_rank(_at(each, site.statement)) for each in named)

    def _names_rank(self, at: Occurrence) -> bool:
        return not self._functions(at.node, at.scope, at.statement).isdisjoint(("rank", "local_rank"))

    def _decides(self, at: Occurrence, holds: Callable[[Occurrence], bool]) -> bool:
        """Return whether a property holds for all sources of an expression.

        Constants are exempt, since they stand for one process without Horovod: ``rank = 0``.
        """
        found: list[Occurrence] = []
        is_seen = True

        def behind(each: Occurrence) -> list[Occurrence]:
            nonlocal is_seen
            if each is not at and not self._hands_on(each):
                found.append(each)
                return []
            step = self._script.names.steps_back(each)
            sources = [] if step is None or step.unseen else step.sources
            asked = [source for source in sources if not isinstance(source.node, ast.Constant)]
            is_seen = is_seen and bool(asked)
            return asked

        # Through any number of names and functions.
        for _ in reachable([at], behind, lambda each: (id(each.node), id(each.scope))):
            if not is_seen:
                return False
        return is_seen and bool(found) and all(map(holds, found))

    def _hands_on(self, at: Occurrence) -> bool:
        node = at.node
        is_rank = isinstance(node, ast.Call) and self._names_rank(at.part(node.func))
        return isinstance(node, _HANDING) and not is_rank


def _stands_in_for(binding: Binding, imports: Sequence[Binding]) -> bool:
    """Return whether a name is bound as a replacement for a failed import: ``hvd = None``."""
    where = binding.statement
    handlers = (
        [each for each in where.path() if each.branch.startswith("except")] if where is not None else []
    )
    tried = [each.parent for each in handlers]
    return any(
        each.statement is not None and any(above in tried for above in each.statement.ancestors())
        for each in imports
    )


def _at(node: ast.expr, statement: Statement) -> Occurrence:
    return Occurrence(node, statement.scope, statement)


def _is_flag(statement: Statement) -> bool:
    return isinstance(statement.node, ast.Assign) and is_first_value(statement.node.value)


def is_first_value(node: ast.expr) -> bool:
    """Return whether an expression is the initial value of a broadcast flag: False, a set, or a variable."""
    text = ast.unparse(node)
    return text in _NONE_YET or text.endswith(_NO_VALUE_YET)


def _is_of_setup(name: str) -> bool:
    """Return whether a library function starts Horovod, or shows and chooses devices."""
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    return (root == "horovod" and last in _SETTING_UP) or name.startswith("tensorflow.config.")
