"""Input functions: the training data of Estimators, and their division.

An Estimator calls the function itself, within a graph.  If it returns a dataset, the dataset is divided; if a
TensorFlow function creates it from arrays, the arrays are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.data.arrays import Arrays, read_given
from trainshift.training.data.loop_iterables import Iteration
from trainshift.training.data.step_counts import StepCounts
from trainshift.training.datasets.generators import Generators
from trainshift.training.datasets.pipelines import Node, Pipelines
from trainshift.training.datasets.readers import Readers
from trainshift.training.loops.loop_kinds import told_what_to_train_on
from trainshift.training.loops.loops import Loops
from trainshift.training.uniformity.verdict import Uniform, Unknown, Verdict, divergent

# Functions of TensorFlow that make an input function from arrays, and whether their argument can certainly
# be sliced: `numpy_input_fn` also takes dictionaries.
_OF_ARRAYS = {"numpy_input_fn": False, "pandas_input_fn": True}
# The arguments of hooks that end training after a number of steps.
_STOPPING = ("last_step", "num_steps")


class InputFn(Struct, frozen=True, eq=False):
    """An input function of a training call, and its data.

    With `counted`, the training has a number of steps. `root` is the pipeline of its result, `maker` the call
    that creates it from arrays.
    """

    iteration: Iteration
    counted: bool
    root: Node
    maker: Site | None

    @property
    def at(self) -> Occurrence:
        """The expression of the input function."""
        return self.iteration.at


class InputFns:
    """The input functions of the Estimators that one program trains."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._pipelines = program.fact(Pipelines)

    @cached_property
    def all(self) -> list[InputFn]:
        """Every input function of a training call, in text order."""
        counts = self._program.fact(StepCounts).given
        counted = {each.site for each in counts if getattr(each.node, "value", ...) is not None}
        stopped = any(each.what in _STOPPING for each in counts)
        found = []
        for site in self._given():
            node = argument(site.node, 0, "input_fn")
            if node is not None:
                at = Occurrence(node, site.scope, site.statement, site)
                root = self._pipelines.given_by(at)
                maker = self._maker(root)
                iteration = Iteration(at, site.statement)
                found.append(InputFn(iteration, stopped or site in counted, root, maker))
        return found

    def _given(self) -> Iterable[Site]:
        """The calls that get an input function for training."""
        loops = self._program.fact(Loops).own
        return dict.fromkeys(site for loop in loops for site in told_what_to_train_on(self._script, loop))

    def _maker(self, root: Node) -> Site | None:
        """The only call that creates an input function from arrays."""
        ends = [node for node in self._pipelines.upstream(root) if not node.inputs]
        node = ends[0].at.node if len(ends) == 1 else None
        if isinstance(node, ast.Call):
            site = self._script.site_of(node)
            names = self._program.names.full_names(node.func, site.scope, site.statement)
            if any(name.startswith("tensorflow.") and name.endswith(tuple(_OF_ARRAYS)) for name in names):
                return site
        return None

    def of(self, iteration: Iteration) -> InputFn | None:
        """The input function of a training; None for other trainings."""
        return next((each for each in self.all if each.iteration is iteration), None)

    def gives_datasets(self, each: InputFn) -> bool:
        """Return whether an input function certainly returns a dataset."""
        return any(node.is_dataset and node.operation for node in self._pipelines.upstream(each.root))

    def order(self, each: InputFn) -> Verdict:
        """Return whether all ranks have the data of an input function in one order, which returns no
        dataset.
        """
        if each.maker is not None:
            shuffle = argument(each.maker.node, None, "shuffle")
            fixed = isinstance(shuffle, ast.Constant) and not shuffle.value
            return Uniform() if fixed else divergent(CauseKind.DRAW, each.maker)
        order = self._program.fact(Generators).likeness(each.at)
        values = self._program.names.values(*each.at[:3])
        seen = bool(values) and all(isinstance(value, Function) for value in values)
        return Unknown() if order.is_uniform and not seen else order

    def arrays(self, each: InputFn) -> Arrays | None:
        """The arrays behind an input function, if it reads nothing else."""
        maker = each.maker
        if maker is None:
            return None
        read = {id(other.root.at.node) for other in self.all}
        nodes = list(self._pipelines.upstream(each.root))
        other = next(
            self._program.fact(Readers).others(nodes[-1], read | {id(up.at.node) for up in nodes}), None
        )
        if other is not None and other.statement is not None:
            line = self._script.line_at(self._script.statement_span(other.statement).start)
            return Arrays((), reason=f"it is also read elsewhere (line {line})")
        given = [argument(maker.node, 0, "x"), argument(maker.node, 1, "y")]
        certain = _OF_ARRAYS[maker.name] or isinstance(given[0], ast.Dict)
        return read_given(self._program, maker, [part for part in given if part is not None], certain)
