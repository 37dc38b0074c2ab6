"""The variables, optimizers and steps of one process: their numbers and their values."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trainshift.proving.observed.data import VARIABLE, DataHooks
from trainshift.proving.observed.details import Details
from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.gpus import Gpus
from trainshift.proving.observed.kerases import kerases, known_to_tensorflow
from trainshift.proving.observed.record import OptimizerRecord, Record
from trainshift.proving.observed.stopping import Stopping

# A sparse gradient with at most this many numbers is made dense for the comparison.
MOST_DENSE = 1 << 22


class Numbers:
    """Gives every object a unique number, without keeping the object alive.

    Otherwise the observer would hide that Horovod's broadcast fails in scripts that have dropped a model.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.count = 0

    def of(self, thing: Any) -> int:
        """The number of `thing`, never that of a deleted object."""
        number = self.known.get(id(thing), (None, 0))[1]
        if not self.has(thing):
            self.count = number = self.count + 1
            self.known[id(thing)] = weakref.ref(thing), number
        return number

    def has(self, thing: Any) -> bool:
        """Return whether `thing` has a number."""
        reference, _ = self.known.get(id(thing), (None, 0))
        return reference is not None and reference() is thing


class Kept(NamedTuple):
    """A handle that outlives its variable: the value can still be read through it."""

    name: str
    handle: Any
    dtype: Any


class Executed(NamedTuple):
    """A step or a broadcast that a session's run executed, and the values to read after the run.

    `watch` is the optimizer of the step, `trained` are the variables that the step trained.
    """

    reads: dict[int, Any]
    watch: Watch | None = None
    trained: Sequence[int] = ()
    step: int = 0


class Watch:
    """One optimizer, and the numbers of the variables that it trained and of its own."""

    def __init__(self, optimizer: Any, number: int) -> None:
        self.number = number
        self.optimizer = weakref.ref(optimizer)
        self.record = OptimizerRecord(type(optimizer).__name__, given=True)
        rate = getattr(optimizer, "_hyper", {}).get(
            "learning_rate", getattr(optimizer, "_learning_rate", None)
        )
        self.schedule = rate if callable(rate) else None
        self.loss_scaled = False
        self.has_local = False
        self.trained: dict[int, None] = {}
        self.stepped = set[int]()
        self.own = 0
        self.slots: dict[int, None] = {}

    def note_step(self, variables: Collection[int]) -> None:
        """Note a step of these variables that is about to be recorded; it may be the first of some."""
        if self.stepped and not self.stepped.issuperset(variables):
            self.record.began.append(len(self.record.gradients))
        self.stepped.update(variables)

    def variables(self) -> list[Any]:
        """The optimizer's own variables: a list for new Keras optimizers, a method for all others."""
        own = getattr(self.optimizer(), "_variables", None)
        if isinstance(own, list):  # On Keras 3 Horovod's wrap fails when they are read.
            return list(own)
        variables = getattr(self.optimizer(), "variables", ())
        return list(variables() if callable(variables) else variables)


class Values:
    """The objects observed so far, and the way to read them; one per process."""

    def __init__(self, tf: Any, np: Any) -> None:
        self.tf = tf
        self.np = np
        self.record = Record()
        self.kerases = tuple(kerases())
        self.gpus = Gpus(tf)
        self.numbers = Numbers()
        self.taken, self.averaged = Numbers(), Numbers()
        self.kept: dict[int, Kept] = {}
        self.watches: dict[int, Watch] = {}
        self.made: dict[int, str] = {}
        self.broadcast: set[int] = set()
        self.reduced: set[tuple[str, tuple[int | None, ...] | None]] = set()
        self.initial: dict[int, str | None] = {}
        self.born: dict[int, str] = {}
        self.local: set[int] = set()
        self.collectives: set[str] = set()
        self.session_values: dict[int, Any] = {}
        self.executed: list[Executed] = []
        self.in_jacobian = False
        self.data = DataHooks(tf, self.record, self.observe, self.kerases) if VARIABLE in os.environ else None
        self.details: Details | None = None
        self.stopping: Stopping | None = None

    def in_session_graph(self) -> bool:
        """Return whether operations are now being added to a TensorFlow 1 graph, run later by a session."""
        if self.tf.executing_eagerly():
            return False
        return not self.tf.compat.v1.get_default_graph().building_function

    def observe(self, act: Callable[..., None], tensors: Sequence[Any] = ()) -> Any:
        """Call `act` with the tensors' values whenever this point of the program runs.

        Returns the observing operation, or None when eager.
        """
        if self.tf.executing_eagerly():
            act(*[self.np.asarray(tensor) for tensor in tensors])
            return None

        def call(*values: Any) -> Any:
            act(*values)
            return self.np.int64(0)

        return self.tf.numpy_function(call, list(tensors), self.tf.int64)

    def see(self, variable: Any) -> int:
        """The variable's number; on first sight, keep its handle and a digest of its current value."""
        own = known_to_tensorflow(variable)
        # Keras 3 has many variables of one name, and distinguishes them by their paths.
        name = variable.name if own is variable else variable.path
        number = self.numbers.of(own)
        if number not in self.kept:
            with self.tf.init_scope():
                eager = self.tf.executing_eagerly()
                handle = getattr(own, "handle", None) if eager else None
                self.kept[number] = Kept(name, handle, own.dtype)
                value = self.value(number)
            self.initial[number] = None if value is None else digest([value])
        elif own is not variable and self.kept[number].name != name:
            self.kept[number] = self.kept[number]._replace(name=name)
        return number

    def value(self, number: int) -> Any:
        """The value of a variable (a session's: when last read), or None if it has none yet."""
        _, handle, dtype = self.kept[number]
        if handle is None:
            return self.session_values.get(number)
        try:
            return self.tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy()
        except self.tf.errors.FailedPreconditionError:
            return None

    def see_session_values(self, numbers: Sequence[int], values: Sequence[Any]) -> None:
        """Record the first observed values of a session graph's variables."""
        for number, value in zip(numbers, values, strict=True):
            if self.initial[number] is None:
                self.initial[number] = digest([value])

    def reads(self, variables: Sequence[Any]) -> dict[int, Any]:
        """Tensors in a session's graph that read the variables whenever they are run."""
        with self.tf.control_dependencies(None):
            known = map(known_to_tensorflow, variables)
            return {self.see(variable): variable.read_value() for variable in known}

    def watch(self, optimizer: Any) -> Watch:
        """The watch on this optimizer; made on its first use."""
        number = self.numbers.of(optimizer)
        if number not in self.watches:
            self.watches[number] = Watch(optimizer, number)
        return self.watches[number]

    def place(self) -> str:
        """The current line of the script, if a report needs it."""
        return self.details.place() if self.details else ""

    def stepped(self, watch: Watch, gradients: Sequence[Any]) -> None:
        """Keep the details of a step in progress for the report."""
        if self.details:
            step = len(watch.record.gradients) - 1
            watch.record.ended.append(self.details.note_step(watch.number, step, gradients))

    def changed(self, watch: Watch, step: int, weights: Sequence[Any]) -> None:
        """Keep the weights after a step, which may have been the last."""
        if self.details:
            self.details.note_weights(watch.number, step, weights)
        if self.stopping:
            self.stopping.step(watch.number)

    def dense(self, structure: Any) -> list[Any]:
        """The tensors of a nested structure; of a sparse gradient, its values and indices."""
        flat = self.tf.nest.flatten(structure, expand_composites=True)
        return [tensor for tensor in flat if tensor is not None]

    def whole(self, gradients: Any) -> list[Any]:
        """The gradients, with sparse ones as arrays unless these are huge."""
        tf = self.tf
        return self.dense(
            [
                tf.convert_to_tensor(each)
                if isinstance(each, tf.IndexedSlices) and 0 < (each.shape.num_elements() or 0) <= MOST_DENSE
                else each
                for each in tf.nest.flatten(gradients)
            ]
        )

    def rate(self, optimizer: Any) -> Any:
        """The learning rate of an optimizer's last step (in a session's graph: of the next one)."""
        tf = self.tf
        rate = float("nan")  # of an optimizer without a learning rate
        with suppress(AttributeError, KeyError, ValueError):
            if isinstance(optimizer, tf.compat.v1.train.Optimizer):
                rate = optimizer._lr if hasattr(optimizer, "_lr") else optimizer._learning_rate
                rate = rate() if callable(rate) else rate
            elif hasattr(optimizer, "_decayed_lr"):  # A legacy one of Keras 2.
                rate = optimizer._decayed_lr(tf.float32)
            else:
                rate = optimizer._learning_rate
                if isinstance(rate, self.schedules()):
                    rate = rate(known_to_tensorflow(optimizer.iterations) - 1)
                elif callable(rate):
                    rate = rate() if self.is_of_keras3(optimizer) else rate(optimizer.iterations - 1)
        return tf.cast(tf.convert_to_tensor(known_to_tensorflow(rate)), tf.float64)

    def is_of_keras3(self, optimizer: Any) -> bool:
        """Return whether an optimizer is Keras 3's."""
        return any(isinstance(optimizer, keras.optimizers) for keras in self.kerases if keras.is_3)

    def schedules(self) -> tuple[Any, ...]:
        """The classes of schedules of a rate."""
        return tuple(keras.schedule for keras in self.kerases)
