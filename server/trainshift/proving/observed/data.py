"""Record the data of a training, element by element, and the number of those for evaluation.

The elements are the inputs of the loss: those that a graph was fed or took from an iterator, or that an eager
tape saw without an operation that made them.  Each is identified by a digest of its row in the batch.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache, wraps
from itertools import takewhile, zip_longest
from typing import Any

from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.kerases import Keras
from trainshift.proving.observed.record import Column, Record

# A process with this variable records its data, and keeps the seeds that its script sets.
VARIABLE = "TRAINSHIFT_PROOF_DATA"
# ... or, with this value, only counts the rows of each batch.
ROWS = "rows"

# Operations that bring data into a graph.
SOURCES = ("Placeholder", "IteratorGetNext", "QueueDequeue")
# An iterator of a strategy returns an optional, from which a condition takes a batch.
OPTIONAL = "IteratorGetNextAsOptional"
CONDITIONS = ("If", "StatelessIf")
MOST_ROWS = 4096
# The arguments of operations that configure the computation and hold no data.
SETTINGS = {
    "axis", "begin", "block_shape", "concat_dim", "counter", "crops", "dim", "dims", "end", "input_sizes",
    "key", "multiples", "paddings", "perm", "reduction_indices", "seed", "shape", "size", "strides",
}  # fmt: skip


class Leaves:
    """The inputs of eager operations under a tape that no other operation has created."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.found: list[Any] = []

    def __call__(
        self, kind: Any, inputs: Any, attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """Ignore operations of a graph under construction, which get the same names but have no values."""
        if graph is not None:
            return
        for tensor, name in zip_longest(inputs, argument_names(kind)[: len(inputs)]):
            if id(tensor) not in self.known and name not in SETTINGS and holds_rows(tensor):
                self.found.append(tensor)
            self.known[id(tensor)] = tensor
        self.known.update((id(tensor), tensor) for tensor in outputs)


class DataHooks:
    """The hooks, which write into `record`; `observe` calls a function with the values of tensors."""

    def __init__(
        self, tf: Any, record: Record, observe: Callable[..., Any], kerases: Sequence[Keras] = ()
    ) -> None:
        self.tf = tf
        self.record = record
        self.observe = observe
        self.callbacks: Any = importlib.import_module("tensorflow.python.framework.op_callbacks")
        self.rows_only = os.environ.get(VARIABLE) == ROWS
        self.leaves: Leaves | None = None
        self.open_tapes = 0
        self.in_test_step = False
        self.splits = False
        self.evaluated = 0
        self.hook_tape()
        for keras in kerases:
            self.hook_evaluation(keras.api.Model)
        self.hook_iterators()

    def hook_tape(self) -> None:
        """Observe the operations that run eagerly while a tape records."""
        tape = self.tf.GradientTape
        enter, leave = tape.__enter__, tape.__exit__

        def observed_enter(this: Any) -> Any:
            if self.tf.executing_eagerly():
                if not self.open_tapes:
                    self.leaves = Leaves()
                    self.callbacks.add_op_callback(self.leaves)
                self.open_tapes += 1
            return enter(this)

        def observed_leave(this: Any, *args: Any) -> Any:
            if self.tf.executing_eagerly():
                self.open_tapes -= 1
                if not self.open_tapes:
                    self.callbacks.remove_op_callback(self.leaves)
            return leave(this, *args)

        tape.__enter__, tape.__exit__ = observed_enter, observed_leave

    def note(self, target: Any) -> Any:
        """Record the inputs from which `target`, whose gradients are taken, was computed.

        Returns the recording operation, or None when eager.
        """
        if self.tf.executing_eagerly():
            self.add(*[tensor.numpy() for tensor in self.leaves.found] if self.leaves else ())
            return None
        return self.observe(self.add, sources(self.tf.nest.flatten(target, expand_composites=True)))

    def add(self, *values: Any) -> None:
        """Record one step's data."""
        # Elements that are fed one by one have no rows.
        values = tuple(value for value in values if value.ndim) or tuple(value[None] for value in values)
        sizes = [len(value) for value in values]
        self.record.rows.append(max(sizes, key=sizes.count) if sizes else 0)
        if self.rows_only:
            return
        self.record.data.append([column(value) for value in values])

    def hook_evaluation(self, model: Any) -> None:
        """Count the elements that `evaluate` of this class of models iterates, also inside `fit`.

        Validation data that `fit` splits off a rank's share are not counted.
        """
        make, evaluate, fit = model.make_test_function, model.evaluate, model.fit
        signature = inspect.signature(fit)

        def count(values: Any) -> None:
            self.evaluated += len(values)

        def observed(original: Any) -> Any:
            @wraps(original)
            def test_step(this: Any, data: Any) -> Any:
                outer, self.in_test_step = self.in_test_step, True
                try:
                    if not outer:
                        self.observe(count, self.tf.nest.flatten(data)[:1])
                    return original(this, data)
                finally:
                    self.in_test_step = outer

            test_step.observed = True  # type: ignore[attr-defined]
            return test_step

        @wraps(make)
        def make_test_function(this: Any, *args: Any, **kwargs: Any) -> Any:
            owner = next(each for each in type(this).__mro__ if "test_step" in vars(each))
            if not hasattr(vars(owner)["test_step"], "observed"):
                type.__setattr__(owner, "test_step", observed(vars(owner)["test_step"]))
            return make(this, *args, **kwargs)

        @wraps(evaluate)
        def observed_evaluate(this: Any, *args: Any, **kwargs: Any) -> Any:
            self.evaluated = 0
            result = evaluate(this, *args, **kwargs)
            if not self.splits:
                self.record.evaluated.append(self.evaluated)
            return result

        @wraps(fit)
        def observed_fit(this: Any, *args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(this, *args, **kwargs).arguments
            splits = given.get("validation_split") and given.get("validation_data") is None
            outer, self.splits = self.splits, bool(splits)
            try:
                return fit(this, *args, **kwargs)
            finally:
                self.splits = outer

        model.make_test_function, model.evaluate, model.fit = (
            make_test_function,
            observed_evaluate,
            observed_fit,
        )

    def hook_iterators(self) -> None:
        """Count the elements of eager loops that take no gradient."""
        owner: Any = importlib.import_module("tensorflow.python.data.ops.iterator_ops").OwnedIterator
        original = owner._next_internal

        def next_internal(this: Any) -> Any:
            if not self.tf.executing_eagerly():
                return original(this)
            count, before, trained = getattr(this, "_proof_seen", (0, len(self.record.data), False))
            trained = trained or before != len(self.record.data)
            try:
                result = original(this)
            except (StopIteration, self.tf.errors.OutOfRangeError):
                if not trained:
                    self.record.evaluated.append(count)
                raise
            first = self.tf.nest.flatten(result, expand_composites=True)[0]
            count += int(first.shape[0] or 0) if first.shape.rank else 1
            this._proof_seen = count, len(self.record.data), trained
            return result

        owner._next_internal = next_internal


@cache
def argument_names(kind: str | bytes) -> list[str]:
    """The names of an operation's arguments, up to the first list; none for a function."""
    registry: Any = importlib.import_module("tensorflow.python.framework.op_def_registry")
    definition = registry.get(kind.decode() if isinstance(kind, bytes) else kind)
    given = definition.input_arg if definition else ()
    return [
        each.name for each in takewhile(lambda each: not (each.number_attr or each.type_list_attr), given)
    ]


def sources(targets: Sequence[Any]) -> list[Any]:
    """The tensors that feed data into the graph from which the targets are computed."""
    found: list[Any] = []
    waiting, seen = [tensor.op for tensor in targets if tensor is not None], set()
    while waiting:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if brings_data(operation):
            found += [tensor for tensor in operation.outputs if holds_rows(tensor)]
        waiting += [tensor.op for tensor in operation.inputs]
    return found


def brings_data(operation: Any) -> bool:
    """Return whether an operation feeds data into its graph."""
    if operation.type in CONDITIONS:
        return any(tensor.op.type == OPTIONAL for tensor in operation.inputs)
    return bool(operation.type.startswith(SOURCES))


def holds_rows(tensor: Any) -> bool:
    """Return whether a tensor may be a batch of numbers."""
    numeric = tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
    return bool(numeric and tensor.shape.rank != 0)


def column(values: Any) -> Column:
    """One tensor of a batch: the type of its rows, and a digest of each."""
    look = f"{values.dtype}{values.shape[1:]}"
    rows = values if len(values) <= MOST_ROWS else values[None]
    return look, [digest([row]) for row in rows]
