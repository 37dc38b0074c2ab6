"""Global batch: whether a script gives each rank its part of one process's batch.

    dataset.batch(256 // hvd.size())

A step of all ranks together is then one of the original's: neither its rate nor the number of steps changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.uses import parts_of
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument
from trainshift.python.values.backward_slice import sliced
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.fits import method_argument
from trainshift.training.uniformity.uniformity import Uniformity

# Methods of a dataset whose first argument is the batch size; others take it by this name.
_BATCHING = ("batch", "padded_batch", "ragged_batch")
_FITTING = ("fit", "train_on_batch")
_SIZE = "batch_size"


class GlobalBatch:
    """The batch sizes in one program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._uniformity = program.fact(Uniformity)

    @cached_property
    def is_kept(self) -> bool:
        """Return whether the size of a batch is divided by the number of ranks."""
        if not self._horovod.calls("size"):
            return False
        return any(
            size is not None and self._is_part(Occurrence(size, site.scope, site.statement))
            for site in self._script.sites
            for size in [self._size(site)]
        )

    def is_cut(self, loop: Statement | None) -> bool:
        """Return whether each iteration of a loop takes its rank's part of its data: ``x[rank * 16:...]``."""
        if loop is None or not isinstance(loop.node, ast.For):
            return False
        bound = {each.id for each in ast.walk(loop.node.target) if isinstance(each, ast.Name)}
        return any(
            isinstance(each, ast.Subscript)
            and any(isinstance(part, ast.Name) and part.id in bound for part in ast.walk(each.value))
            and self._uniformity.on_rank(Occurrence(each.slice, scope, statement))
            for statement in loop.walk()
            if statement is not loop
            for each, scope, _ in parts_of(statement)
        )

    def _size(self, site: Site) -> ast.expr | None:
        """The batch size argument of a call."""
        if site.name in _BATCHING:
            return argument(site.node, 0, _SIZE)
        if site.name in _FITTING:
            return method_argument(site, _SIZE)
        return argument(site.node, None, _SIZE)

    def _is_part(self, size: Occurrence) -> bool:
        """Return whether a number is the result of a division by the number of ranks, or computed from
        one.
        """

        def behind(at: Occurrence) -> Iterable[Occurrence]:
            node = at.node
            if isinstance(node, ast.BinOp):
                return map(at.part, (node.left, node.right))
            if (step := self._names.steps_back(at)) is not None:
                return step.sources
            if isinstance(node, ast.Call) and not self._horovod.is_call(self._script.site_of(node), "size"):
                return map(at.part, node.args)
            return ()

        return any(
            isinstance(at.node, ast.BinOp)
            and isinstance(at.node.op, ast.Div | ast.FloorDiv)
            and self._horovod.divided(at.node.right, at.scope, at.statement)
            for at in sliced(size, behind)
        )
