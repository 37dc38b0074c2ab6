"""The hooks on TensorFlow, Keras and Horovod in one process, and their observations.

They add observations (plain calls when eager, `tf.numpy_function` nodes in a graph) and change no computed
value, except that every seed which a script sets is offset by the rank, so that the ranks differ; this is off
if data are recorded, because seeds often decide them. XLA cannot compile observations: an original runs
without `jit_compile`, and a conversion that keeps it fails, as Horovod 0.28.1 does by itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.files import Files
from trainshift.proving.observed.kerases import Keras
from trainshift.proving.observed.surroundings import choose_xla, drop_xla

# Neighbours differ by at most an eighth.  Each number comes with its double, and mostly its triple: the
# values of two or three ranks are compared with the original's at the same step.
SCHEDULE_STEPS = sorted(
    {times * (step << power) for times in (1, 3) for step in range(16) for power in range(11)}
)


class Observer(Files):
    """All hooks and their observations; one per process, and not shared with a fork."""

    pid = 0

    def hook_training(self) -> None:
        """Record callbacks that steer the training by a metric, and the number of steps run at a time."""
        tf = self.tf

        def after(owner: Any, name: str, note: Callable[..., None]) -> None:
            # Where it is defined: Keras 3 does not compile a loaded model whose class has its own
            # `compile`.
            owner = next(each for each in owner.__mro__ if name in vars(each))
            original = vars(owner)[name]

            @wraps(original)
            def call(this: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(this, *args, **kwargs)
                note(this, *args, **kwargs)
                return result

            setattr(owner, name, call)

        def note_callbacks(callbacks: Any, *_: Any, **__: Any) -> None:
            for callback in callbacks.callbacks:
                if not isinstance(callback, harmless):
                    self.record.stops |= mentions(type(callback), "stop_training")
                self.record.warms_up |= "Warmup" in type(callback).__name__
                self.record.adapts |= isinstance(callback, adapting)

        def note_hooks(session: Any, *_: Any, **__: Any) -> None:
            for hook in session._hooks:
                self.record.stops |= mentions(type(hook), "request_stop")

        def note_model(keras: Keras) -> Callable[..., None]:
            def note(model: Any, *_: Any, **__: Any) -> None:
                steps = keras.steps_per_execution(model) if tf.executing_eagerly() else 1
                self.record.steps_per_execution = max(self.record.steps_per_execution, steps)

            return note

        def note_metric(callback: Any, epoch: int, logs: Any = None) -> None:
            self.record.monitored.append(str(float((logs or {}).get(callback.monitor, "nan"))))

        monitored: Any = importlib.import_module("tensorflow.python.training.monitored_session")
        after(monitored._MonitoredSession, "__init__", note_hooks)
        callbacks = [keras.api.callbacks for keras in self.kerases]
        harmless = tuple(each.TerminateOnNaN for each in callbacks)
        adapting = tuple(each.ReduceLROnPlateau for each in callbacks)
        for keras in self.kerases:
            own = keras.api.callbacks
            after(own.CallbackList, "__init__", note_callbacks)
            after(keras.api.Model, "compile", note_model(keras))
            for callback in (own.EarlyStopping, own.ReduceLROnPlateau):
                after(callback, "on_epoch_end", note_metric)

    def finish(self, directory: Path) -> None:
        """Write record.json, and the values of the trained variables and slots as values.npz."""
        if os.getpid() != self.pid:
            return
        values: dict[str, Any] = {}
        self.end_all_begun()
        self.record.optimizers = []
        stepped = [watch for watch in self.watches.values() if watch.record.steps]
        for place, watch in enumerate(stepped):
            record = replace(watch.record, number=watch.number, made_at=self.made.get(watch.number, ""))
            for name in (
                "variables",
                "slots",
                "initial",
                "born",
                "final",
                "unbroadcast_variables",
                "unbroadcast_slots",
            ):
                setattr(record, name, [])
            for index, number in enumerate(watch.trained):
                value = self.value(number)
                record.variables.append(self.kept[number].name)
                record.initial.append(self.initial[number])
                record.born.append(self.born.get(number))
                record.final.append("" if value is None else digest([value]))
                if value is not None:
                    values[f"{place}/variables/{index}"] = value
                if number not in self.broadcast:
                    record.unbroadcast_variables.append(self.kept[number].name)
            for number in () if watch.has_local else watch.slots:
                value = self.value(number)
                if value is not None and number not in watch.trained:
                    values[f"{place}/slots/{len(record.slots)}"] = value
                    record.slots.append(self.kept[number].name)
                    if number not in self.broadcast:
                        record.unbroadcast_slots.append(self.kept[number].name)
            record.schedule = self.sample(watch.schedule)
            self.record.optimizers.append(record)
        self.np.savez(directory / "values.npz", **values)
        self.record.gpus = self.gpus.used()
        self.finish_details(directory)
        self.record.save(directory / "record.json")

    def finish_details(self, directory: Path) -> None:
        """Add the details for the report to the record, and write the samples as details.npz."""
        if self.details and self.stopping:
            self.record.reduced = self.reductions()
            self.record.collectives = sorted(self.collectives)
            self.record.stopped = self.stopping.is_due
            self.record.epochs, self.record.turns = self.stopping.batches, self.stopping.turns
            self.record.losses = self.details.losses
            self.record.printed_at, self.record.wrote_at = self.details.printed, self.details.wrote
            self.np.savez(directory / "details.npz", **self.details.arrays)

    def reductions(self) -> list[str]:
        """Return how Horovod combined the values with the shape of a trained variable."""
        trained = {number for watch in self.watches.values() for number in watch.trained}
        shapes = [value.shape for number in trained if (value := self.value(number)) is not None]
        found = {
            how
            for how, shape in self.reduced
            if any(self.tf.TensorShape(shape).is_compatible_with(each) for each in shapes)
        }
        return sorted(found)

    def sample(self, schedule: Any) -> dict[str, float]:
        """The values of an optimizer's schedule at a few steps; empty if the rate is constant."""
        if not isinstance(schedule, self.schedules()):
            return {}
        if not self.tf.executing_eagerly():
            return {}
        # Keras 2.15 passes its counter to a schedule; for a legacy optimizer, as a floating-point number.
        for dtype in (self.tf.int64, self.tf.float32):
            with suppress(TypeError, ValueError, self.tf.errors.InvalidArgumentError):
                return {str(step): float(schedule(self.tf.constant(step, dtype))) for step in SCHEDULE_STEPS}
        return {}


def mentions(owner: type, name: str) -> bool:
    """Return whether a method of the class, or an inherited one, uses an attribute of the name.

    TensorFlow's own hooks do not count: they stop at a step, or at a value that is not finite.
    """
    bases = [base for base in owner.__mro__ if not base.__module__.startswith("tensorflow.python.training.")]
    methods = [method for base in bases for method in vars(base).values()]
    return any(name in method.__code__.co_names for method in methods if hasattr(method, "__code__"))


def install(observer: Observer) -> None:
    """Install all hooks except those on files."""
    tf = observer.tf
    observer.pid = os.getpid()
    config: Any = importlib.import_module("tensorflow.python.autograph.core.config")
    config.CONVERSION_RULES = (config.DoNotConvert("trainshift"), *config.CONVERSION_RULES)

    observer.hook_variables()
    observer.hook_optimizers()
    observer.hook_compute_gradients()
    for owner in (tf, tf.compat.v1):
        observer.hook_graph_gradients(owner, "gradients", "ys")
    for keras in observer.kerases:
        if not keras.is_3:
            observer.hook_graph_gradients(keras.optimizers[1], "get_gradients", "loss")
    observer.hook_sessions()
    observer.hook_shards()
    observer.hook_training()
    if not os.environ.get("HOROVOD_SIZE"):
        drop_xla()
    else:
        for keras in observer.kerases:
            choose_xla(keras)
    observer.hook_tape()
    if importlib.util.find_spec("horovod"):
        observer.hook_horovod(importlib.import_module("horovod.tensorflow"))
