"""Dividing: check that each training loop iterates over shares of its data, or all of them, exactly once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Site,
    alternatives,
    argument,
    arguments,
    children,
    expression_path,
)
from trainshift.python.values.call_chains import calls_leading_to
from trainshift.training.horovod.defects import Flaw, at
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loop_kinds import Loop, Pattern, told_what_to_train_on
from trainshift.training.loops.loops import Loops
from trainshift.training.uniformity.uniformity import Uniformity

# The data arguments of `fit`, by position and by name.
_GIVEN = {"x": 0, "y": 1, "sample_weight": None}
_JOINING = ("zip", "concatenate")
# A value is followed through at most this many steps; beyond, it counts as divided arbitrarily often.
_DEEPEST = 60
_MANY = 1_000_000


class Dividing:
    """The division of one program's data among the ranks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._divisions = Questions(0, _MANY, deepest=_DEEPEST)

    def flaws(self) -> Iterator[Flaw]:
        """The loops whose data are divided more than once, or in part."""
        for loop in self._program.fact(Loops).own:
            site = loop.sites[0]
            fits = loop.pattern is Pattern.OPTIMIZER and loop.is_call
            data = self._given(site) if fits else [*self._iterated(site), *self._returned(loop)]
            given = [self._times(each) for each in data]
            if any(times >= _MANY for times in given):
                yield Flaw(
                    "Trainshift cannot tell how often the data of this loop are divided", site, certain=False
                )
            elif any(times > 1 for times in given):
                yield Flaw("the data of this loop are divided twice", site)
            elif fits and len(set(given)) > 1:
                yield Flaw("this fit gets both divided and undivided data", site, certain=False)

    def _given(self, site: Site) -> list[Occurrence]:
        nodes = (argument(site.node, position, name) for name, position in _GIVEN.items())
        return [at(each, site) for each in nodes if each is not None and not isinstance(each, ast.Constant)]

    def _returned(self, loop: Loop) -> Iterator[Occurrence]:
        """Yield the datasets that an Estimator's input functions return, and the datasets from which they are
        built.
        """
        for site in told_what_to_train_on(self._script, loop):
            node = argument(site.node, 0, "input_fn")
            if node is not None:
                yield at(node, site)
                for value in self._names.site_values(node, site):
                    if isinstance(value, Function):
                        for returned, where in value.scope.returns:
                            yield Occurrence(returned, value.scope, where or value.scope.statement)

    def _iterated(self, site: Site) -> list[Occurrence]:
        """The iterables of the loops around a step, in its function or around a call of that function."""
        found: list[Occurrence] = []
        for each in calls_leading_to(self._names, site):
            loops = (above for above in each.statement.path() if isinstance(above.node, ast.For))
            found += (Occurrence(above.node.iter, above.scope, above) for above in loops)  # type: ignore[attr-defined]
            for part in expression_path(each.statement.node, each.node):
                if isinstance(part, COMPREHENSIONS):
                    found += (Occurrence(one.iter, each.scope, each.statement) for one in part.generators)
        return found

    def _times(self, of: Occurrence) -> int:
        """The largest number of times that the data of an expression are divided, on any path."""
        return self._divisions.ask((id(of.node), id(of.scope)), self._times_of, of)

    def _times_of(self, of: Occurrence) -> int:
        node = of.node
        if isinstance(node, ast.Call):
            step = self._names.steps_back(of)
            if step is not None:
                return max((self._times(each) for each in step.sources), default=0)
            if isinstance(node.func, ast.Attribute):
                parts = [node.func.value, *(arguments(node) if node.func.attr in _JOINING else ())]
                own = max(self._times(of.part(each)) for each in parts)
                return own + self._shards(node, of)
            return max((self._times(of.part(each)) for each in arguments(node)), default=0)
        if isinstance(node, ast.Subscript) and self._depends(_chosen_by(node.slice), of):
            return 1 + self._times(of.part(node.value))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
            own = self._horovod.divided(node.right, of.scope, of.statement)
            return own + self._times(of.part(node.left))
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or alternatives(node):
            step = self._names.steps_back(of)
            return max((self._times(each) for each in step.sources), default=0) if step else 0
        # A comprehension or a lambda has names of its own.
        here = of._replace(scope=of.scope.facts.scope_of.get(node, of.scope))
        inside = (here.part(each) for each in children(node) if isinstance(each, ast.expr))
        return max((self._times(each) for each in inside), default=0)

    def _shards(self, call: ast.Call, of: Occurrence) -> int:
        """The number of divisions by rank in a dataset's method."""
        assert isinstance(call.func, ast.Attribute)
        if call.func.attr == "shard":
            return int(any(self._depends(each, of) for each in arguments(call)))
        if call.func.attr == "apply" and call.args and isinstance(call.args[0], ast.Lambda):
            inner = (each for each in ast.walk(call.args[0].body) if isinstance(each, ast.Call))
            return sum(self._shards(each, of) for each in inner if isinstance(each.func, ast.Attribute))
        return 0

    def _depends(self, node: ast.expr, of: Occurrence) -> bool:
        return self._program.fact(Uniformity).on_rank(of.part(node))


def _chosen_by(rows: ast.expr) -> ast.expr:
    """Return what chooses rows: a slice that only ends somewhere, by a length, gives no rank its own."""
    if isinstance(rows, ast.Slice) and rows.lower is None and rows.step is None:
        return ast.Constant(None)
    return rows
