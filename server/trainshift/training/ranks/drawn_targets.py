"""Drawn targets: labels that a rank computes from its rows by draws of its own, such as those of clusters.

Ranks with other clusters, or with other true weights of made data, average gradients towards different
targets. Noise on each row only differs as the rows do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import argument, arguments, last_name
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.loops.loops import Loops
from trainshift.training.ranks.training_data import TrainingData
from trainshift.training.uniformity.draws import BY_SHAPE
from trainshift.training.uniformity.one_axis import ELEMENTWISE
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause

_PAIRED = frozenset({"from_tensor_slices", "from_tensors"})
_DRAWN = (CauseKind.DRAW, CauseKind.PERHAPS)
_SIZE = 2


class DrawnTargets:
    """The draws of one program that decide what its models are to learn."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names
        self._uniformity = program.fact(Uniformity)

    @property
    def all(self) -> Iterator[tuple[Occurrence, Cause]]:
        """Yield the targets with each draw that their inputs do not share."""
        for inputs, targets in self._pairs if self._uniformity.asks_any else ():
            drawn = [each for each in self._uniformity.causes(targets) if each.kind in _DRAWN]
            if drawn and self._is_computed_of(targets, inputs):
                shared = {each.at.node for each in self._uniformity.causes(inputs)}
                noise = {each.node for each in reachable([targets], self._row_by_row, _place)}
                for each in drawn:
                    is_noise = each.at.node in noise and self._is_of_rows(each)
                    if each.at.node not in shared and not is_noise:
                        yield targets, each

    @property
    def _pairs(self) -> Iterator[tuple[Occurrence, Occurrence]]:
        """The inputs of models with their targets."""
        for loop in self._program.fact(Loops).own:
            for site in loop.sites if loop.is_call else ():
                inputs, targets = argument(site.node, 0, "x"), argument(site.node, 1, "y")
                if inputs is not None and targets is not None:
                    yield of_call(site).part(inputs), of_call(site).part(targets)
        for at in self._program.fact(TrainingData).trained:
            for each in self._uniformity.behind(at):
                if isinstance(each.node, ast.Call) and last_name(each.node.func) in _PAIRED:
                    given = each.node.args[0] if each.node.args else None
                    if isinstance(given, ast.Tuple) and len(given.elts) == 2:
                        yield each.part(given.elts[0]), each.part(given.elts[1])

    def _is_computed_of(self, targets: Occurrence, inputs: Occurrence) -> bool:
        """Return whether targets are computed from what their inputs are, not drawn for themselves."""
        return not self._calls_behind(targets).isdisjoint(self._calls_behind(inputs))

    def _calls_behind(self, at: Occurrence) -> set[ast.AST]:
        """The calls that decide a value, and those behind the rows whose predictions do."""
        starts = reachable([at], self._judged, _place)
        found = (part.node for each in starts for part in self._uniformity.computed_from(each))
        return {each for each in found if isinstance(each, ast.Call)}

    def _judged(self, at: Occurrence) -> Iterator[Occurrence]:
        """The rows for which models predict what an expression is computed from."""
        for each in self._uniformity.computed_from(at):
            if isinstance(each.node, ast.Call):
                if self._uniformity.judges(self._program.script.site_of(each.node)):
                    yield from map(each.part, each.node.args)

    def _row_by_row(self, at: Occurrence) -> Iterable[Occurrence]:
        """The parts of an expression from which it is computed element by element."""
        node = at.node
        if isinstance(node, ast.Name | ast.Attribute):
            step = self._names.steps_back(at)
            return step.sources if step is not None else ()
        if isinstance(node, ast.Call):
            if last_name(node.func) not in ELEMENTWISE:
                return ()
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            return map(at.part, [*owner, *arguments(node)])
        if isinstance(node, ast.BinOp):
            return () if isinstance(node.op, ast.MatMult) else map(at.part, (node.left, node.right))
        if isinstance(node, ast.Compare):
            return map(at.part, (node.left, *node.comparators))
        if isinstance(node, ast.Subscript):
            return [at.part(node.value)]
        return [at.part(node.operand)] if isinstance(node, ast.UnaryOp) else ()

    def _is_of_rows(self, cause: Cause) -> bool:
        """Return whether a draw gives a number for each row, not one for all of them."""
        site = cause.site
        if site is None:
            return False
        if site.deferred or self._program.fact(ControlFlow).repeats(site.statement):
            return True
        if self._program.script.called_name(site) in BY_SHAPE:
            return bool(arguments(site.node))
        return (
            argument(site.node, _SIZE, "size") is not None or argument(site.node, None, "shape") is not None
        )


def _place(at: Occurrence) -> tuple[ast.expr, object]:
    return at.node, at.scope
