"""Equal shares: the iterables whose batches have the same sizes on all ranks.

They are batched after each rank has taken an equal share of the rows.  Shares of whole batches may hold the
smaller last one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import argument, last_name
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import SIZE

NO_PLACES: Mapping[ast.AST, bool] = {}
_BATCHING = frozenset({"batch", "padded_batch"})
# What makes as many rows of each rank's as of another's, if it gets as many.
_PASSING = _BATCHING | {
    "as_numpy_iterator", "cache", "enumerate", "from_tensor_slices", "iter",
    "make_one_shot_iterator", "map", "next", "prefetch", "repeat", "shuffle", "skip", "take", "with_options",
    "zip",
}  # fmt: skip
_OF_BATCHES = ("map", "shuffle")
_FUNCTIONS = frozenset({"enumerate", "from_tensor_slices", "iter", "next", "zip"})


class EqualShares:
    """The batches of one program that are taken from equal shares."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names

    def batches_are_equal(
        self, at: Occurrence, is_fit: bool = False, places: Mapping[ast.AST, bool] = NO_PLACES
    ) -> bool:
        """Return whether the batches of an iterable have the same sizes on all ranks.

        With `is_fit`, a model batches what it gets, unless it is a dataset.  Each of `places` is going to be
        divided equally, and tells whether it is an array.
        """
        return self._is_equal(at, False, is_fit, places, frozenset())

    def _is_equal(
        self,
        at: Occurrence,
        is_batched: bool,
        is_fit: bool,
        places: Mapping[ast.AST, bool],
        seen: frozenset[int],
    ) -> bool:
        node = at.node
        if id(node) in seen:
            return False
        if self._is_share(node) or node in places:
            is_array = places.get(node, isinstance(node, ast.Subscript))
            return is_batched or (is_fit and is_array)
        parts = self._parts(at)
        if isinstance(node, ast.Call):
            # The smaller last batch gets another place on each rank, or a function picks rows of a batch.
            if last_name(node.func) in _OF_BATCHES and not is_batched:
                return False
            is_batched = is_batched or last_name(node.func) in _BATCHING
            is_fit = is_fit and last_name(node.func) not in _FUNCTIONS
        seen |= {id(node)}
        return bool(parts) and all(self._is_equal(each, is_batched, is_fit, places, seen) for each in parts)

    def _parts(self, at: Occurrence) -> list[Occurrence]:
        """The iterables from which another one takes its rows, one for one."""
        node = at.node
        if isinstance(node, ast.Tuple | ast.List):
            return [at.part(each) for each in node.elts]
        if isinstance(node, ast.Dict):
            return [at.part(each) for each in node.values]
        if not isinstance(node, ast.Call):
            step = self._names.steps_back(at)
            return list(step.sources) if step is not None and not step.unseen else []
        name = last_name(node.func)
        if name not in _PASSING:
            return []
        if isinstance(node.func, ast.Attribute) and not self._names.full_names(*at.part(node.func)[:3]):
            return [at.part(node.func.value)]
        return [at.part(each) for each in (node.args if name == "zip" else node.args[:1])]

    def _is_share(self, node: ast.expr) -> bool:
        """Return whether an expression cuts a share off that is as long on all ranks."""
        return any(self._divides(each) for each in _bounds(node))

    def _divides(self, number: ast.expr) -> bool:
        """Return whether a number is divided by the number of ranks, without a rest."""
        return (
            isinstance(number, ast.BinOp)
            and isinstance(number.op, ast.FloorDiv)
            and number.right in self._sizes
        )

    @cached_property
    def _sizes(self) -> frozenset[ast.AST]:
        return frozenset(site.node for site in self._program.fact(Horovod).calls(*SIZE))


def _bounds(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the numbers of rows that an expression takes: ``x[:n]``, ``ds.take(n)``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        if node.slice.lower is None and node.slice.upper is not None:
            yield node.slice.upper
    if not isinstance(node, ast.Call):
        return
    if last_name(node.func) == "take" and (given := argument(node, 0, "count")) is not None:
        yield given
    if last_name(node.func) == "apply" and node.args and isinstance(node.args[0], ast.Lambda):
        yield from _bounds(node.args[0].body)
