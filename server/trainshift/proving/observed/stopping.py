"""End a training after some steps, if possible as if its data were exhausted.

`fit` and code that checks `should_stop` are told to stop, a loop of the script ends after its iteration
(`loops`), and any other over a dataset finds no more data; so the code after the training is observed too.
Code that takes as many steps again is left by an exception that no script catches, and code that never
returns to Python by the end of its process.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

from trainshift.proving.observed.kerases import Keras

# The number of times that a loop may find no more data before it is left.
MOST_EPOCHS = 20


class Stopped(BaseException):
    """The exception that the training has taken all of its steps."""


class Stopping:
    """Counts the steps of one process; `finish` writes its record."""

    def __init__(
        self, tf: Any, limit: int, finish: Callable[[], None], kerases: Sequence[Keras] = ()
    ) -> None:
        self.tf = tf
        self.limit = limit
        self.finish = finish
        # Called where this process may have waited for others.
        self.waited: Callable[[], None] = lambda: None
        self.counts: dict[int, int] = {}
        self.last = 0
        self.is_due = False
        self.beyond = 0
        self.told = False
        # The number of steps before a boundary, and the thread that reached the last one.
        self.trained = 0
        self.thread = 0
        self.bounded = 0
        self.turns: list[int] = []
        self.is_left = False
        self.depth = 0
        self.fits = 0
        self.sessions = 0
        self.unfed = 1 << 30
        self.feeding: Any = None
        self.ended: list[Any] = []
        self.epochs = 0
        self.known: list[Any] = []
        self.batches: list[int] = []
        self.hook_functions()
        for keras in kerases:
            self.hook_fits(keras.api.callbacks.CallbackList)
        self.hook_monitored_sessions()
        self.hook_iterators()

    def step(self, optimizer: int) -> None:
        """Record one more executed step, on any thread."""
        self.last = optimizer
        self.counts[optimizer] = self.counts.get(optimizer, 0) + 1
        self.unfed += 1
        if self.unfed == 1:
            self.note_epoch(self.feeding)
        if self.is_due:
            self.beyond += 1
            # This one takes its steps without running the script's Python in between.
            if self.beyond > 2 * self.limit + 2:
                self.is_left = True
                self.finish()
                os._exit(0)
            return
        most, fewest = max(self.counts.values()), min(self.counts.values())
        self.is_due = bool(self.limit) and (fewest >= self.limit or most >= 2 * self.limit)

    def boundary(self) -> None:
        """Leave the training here, on the script's thread, if it is time and nothing else ends it."""
        taken = sum(self.counts.values())
        if taken > self.bounded:
            self.bounded, self.thread = taken, threading.get_ident()
            self.trained += 1
        if not self.is_due:
            return
        if not self.told:
            self.told = True
            self.finish()
            if self.is_fed():
                self.ended.append(self.feeding)
        # A broadcast after the first step of an optimizer would not be seen.
        if self.fits or self.sessions or self.counts.get(self.last, 0) == 1:
            return
        if self.beyond > max(self.limit, len(self.counts)):
            raise Stopped

    def is_fed(self) -> bool:
        """Return whether the last steps were taken with data from a loop over a dataset."""
        return self.feeding is not None and self.unfed <= len(self.counts)

    def note_epoch(self, dataset: Any) -> None:
        """Record the number of batches of a training dataset, if it is known."""
        if any(dataset is each for each in self.known) or not hasattr(dataset, "cardinality"):
            return
        self.known.append(dataset)
        with suppress(Exception), self.tf.init_scope():
            self.note_batches(int(dataset.cardinality()))

    def note_batches(self, count: int | None) -> None:
        """Keep the number of batches of one epoch; negative if it is unknown."""
        if count is not None and count > 0:
            self.batches.append(count)

    def hook_functions(self) -> None:
        """Make the end of each call of a `tf.function` a boundary."""
        functions: Any = importlib.import_module(
            "tensorflow.python.eager.polymorphic_function.polymorphic_function"
        )
        original = functions.Function.__call__

        @wraps(original)
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.tf.executing_eagerly():
                return original(this, *args, **kwargs)
            self.depth += 1
            try:
                result = original(this, *args, **kwargs)
            finally:
                self.depth -= 1
            if not self.depth:
                self.waited()
                self.boundary()
            return result

        functions.Function.__call__ = call

    def hook_fits(self, owner: Any) -> None:
        """End `fit` after the batch at which it is time; `owner` is Keras' list of callbacks."""

        def hook(name: str, note: Callable[[Any], None]) -> None:
            original = getattr(owner, name)

            @wraps(original)
            def call(this: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(this, *args, **kwargs)
                note(this)
                return result

            setattr(owner, name, call)

        def begin(callbacks: Any) -> None:
            self.fits += 1
            self.note_batches((getattr(callbacks, "params", None) or {}).get("steps"))

        def end(_: Any) -> None:
            self.fits = max(0, self.fits - 1)

        def stop(callbacks: Any) -> None:
            if self.is_due and callbacks.model is not None:
                callbacks.model.stop_training = True

        hook("on_train_begin", begin)
        hook("on_train_end", end)
        for name in ("on_train_batch_end", "on_epoch_end"):
            hook(name, stop)

    def hook_monitored_sessions(self) -> None:
        """End loops that train until `should_stop`."""
        monitored: Any = importlib.import_module("tensorflow.python.training.monitored_session")
        owner = monitored._MonitoredSession
        run, should_stop = owner.run, owner.should_stop

        def observed_run(this: Any, *args: Any, **kwargs: Any) -> Any:
            self.sessions += 1
            try:
                result = run(this, *args, **kwargs)
            finally:
                self.sessions -= 1
            if self.beyond:
                self.boundary()
            return result

        def observed_should_stop(this: Any) -> bool:
            return self.is_due or bool(should_stop(this))

        owner.run, owner.should_stop = observed_run, observed_should_stop

    def hook_iterators(self) -> None:
        """Make a loop over a training dataset find no more data."""
        owner: Any = importlib.import_module("tensorflow.python.data.ops.iterator_ops").OwnedIterator
        original, create = owner.__next__, owner.__init__

        def init(this: Any, dataset: Any = None, *args: Any, **kwargs: Any) -> None:
            create(this, dataset, *args, **kwargs)
            this._proof_dataset = dataset

        def following(this: Any) -> Any:
            if not self.tf.executing_eagerly():
                return original(this)
            dataset = getattr(this, "_proof_dataset", None)
            if self.told and not self.fits and any(dataset is each for each in self.ended):
                self.epochs += 1
                if self.epochs > MOST_EPOCHS:
                    raise Stopped
                raise StopIteration
            result = original(this)
            self.unfed, self.feeding = 0, dataset
            return result

        owner.__init__, owner.__next__ = init, following
