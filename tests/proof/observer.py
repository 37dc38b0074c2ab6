"""Runs one script or module unmodified and writes down what TensorFlow and Horovod did in it.

    python -c "from proof.observer import main; main()" DIRECTORY RANK (SCRIPT | -m MODULE) [ARGUMENT...]

The hooks are laid on TensorFlow, Keras and Horovod before the script starts.  They add observations
(plain calls when eager, `tf.numpy_function` nodes in a graph) and change no value that the script
computes, except that every seed which a script sets is moved by the rank, so that the ranks differ; not where
data are noted, which seeds often decide.
XLA can compile no observation: an original runs without `jit_compile`, a conversion that keeps it fails,
as Horovod 0.28.1 does by itself.
"""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import importlib.util
import inspect
import os
import runpy
import signal
import sys
import tempfile
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from proof.data import VARIABLE, DataHooks
from proof.gpus import Gpus
from proof.record import OptimizerRecord, Record
from proof.surroundings import drop_xla, route_logs, set_seeds, shift_seeds, show_warning

TESTS = str(Path(__file__).parent.parent)
CACHES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KERAS_HOME", "MPLCONFIGDIR")
SCHEDULE_STEPS = (0, *sorted({round(1.12**power) for power in range(82)}))

# TensorFlow's native writers, which Python's audit events do not show: module, name, and the place or
# the name of the argument that holds the path.
NATIVE_WRITERS: tuple[tuple[str, str, int | str], ...] = (
    ("tensorflow.python.lib.io._pywrap_file_io", "WritableFile", 0),
    ("tensorflow.python.lib.io._pywrap_file_io", "CopyFile", 1),
    ("tensorflow.python.lib.io._pywrap_file_io", "RenameFile", 1),
    ("tensorflow.python.client._pywrap_events_writer", "EventsWriter", 0),
    ("tensorflow.python.ops.gen_summary_ops", "create_summary_file_writer", "logdir"),
    ("tensorflow.python.ops.io_ops", "save_v2", 0),
    ("tensorflow.python.ops.gen_io_ops", "write_file", 0),
    ("tensorflow.io", "write_file", 0),
)


class Numbers:
    """Gives every object a number of its own, without keeping the object alive.

    That matters: Horovod's broadcast fails in scripts that have dropped a model, which the
    observer must not hide.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.count = 0

    def of(self, thing: Any) -> int:
        """The number of `thing`; never one that a dead object had."""
        reference, number = self.known.get(id(thing), (None, 0))
        if reference is None or reference() is not thing:
            self.count = number = self.count + 1
            self.known[id(thing)] = weakref.ref(thing), number
        return number


class Kept(NamedTuple):
    """What outlives a variable: its value can be read through the handle when the variable is gone."""

    name: str
    handle: Any
    dtype: Any


class Executed(NamedTuple):
    """A step or a broadcast that a session's run executed: what to read when the run is over.

    `watch` is the optimizer that took the step, `trained` the variables that it trained in it.
    """

    reads: dict[int, Any]
    watch: Watch | None = None
    trained: Sequence[int] = ()


class Watch:
    """One optimizer, and the numbers of the variables that it trained and of its own."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.record = OptimizerRecord(type(optimizer).__name__)
        rate = getattr(optimizer, "_hyper", {}).get(
            "learning_rate", getattr(optimizer, "_learning_rate", None)
        )
        self.schedule = rate if callable(rate) else None
        self.loss_scaled = False
        self.trained: dict[int, None] = {}
        self.slots: dict[int, None] = {}

    def variables(self) -> list[Any]:
        """The optimizer's own variables: a list for new Keras optimizers, a method for all others."""
        variables = getattr(self.optimizer(), "variables", ())
        return list(variables() if callable(variables) else variables)


class Observer:
    """The hooks and what they have seen; one per process."""

    def __init__(self, tf: Any, np: Any) -> None:
        self.tf = tf
        self.np = np
        self.record = Record()
        self.gpus = Gpus(tf)
        self.numbers = Numbers()
        self.kept: dict[int, Kept] = {}
        self.watches: dict[int, Watch] = {}
        self.broadcast: set[int] = set()
        self.initial: dict[int, str | None] = {}
        self.session_values: dict[int, Any] = {}
        self.executed: list[Executed] = []
        self.in_jacobian = False
        self.data = DataHooks(tf, self.record, self.observe) if VARIABLE in os.environ else None

    def in_session_graph(self) -> bool:
        """Whether operations are now being added to a TensorFlow 1 graph, run later by a session."""
        if self.tf.executing_eagerly():
            return False
        return not self.tf.compat.v1.get_default_graph().building_function

    def observe(self, act: Callable[..., None], tensors: Sequence[Any] = ()) -> Any:
        """Call `act` with the tensors' values each time that this point of the program is executed.

        Returns the operation that does it, or None when eager.
        """
        if self.tf.executing_eagerly():
            act(*[self.np.asarray(tensor) for tensor in tensors])
            return None

        def call(*values: Any) -> Any:
            act(*values)
            return self.np.int64(0)

        return self.tf.numpy_function(call, list(tensors), self.tf.int64)

    def see(self, variable: Any) -> int:
        """The variable's number; on first sight keep its handle, and a digest of the value it has."""
        number = self.numbers.of(variable)
        if number not in self.kept:
            with self.tf.init_scope():
                eager = self.tf.executing_eagerly()
                handle = getattr(variable, "handle", None) if eager else None
                self.kept[number] = Kept(variable.name, handle, variable.dtype)
                value = self.value(number)
            self.initial[number] = None if value is None else digest([value])
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
        """Note the first values that variables of a session's graph are seen to have."""
        for number, value in zip(numbers, values, strict=True):
            if self.initial[number] is None:
                self.initial[number] = digest([value])

    def reads(self, variables: Sequence[Any]) -> dict[int, Any]:
        """Tensors of a session's graph that give the values of variables whenever they are run."""
        with self.tf.control_dependencies(None):
            return {self.see(variable): variable.read_value() for variable in variables}

    def watch(self, optimizer: Any) -> Watch:
        """The watch on this optimizer; made on its first use."""
        return self.watches.setdefault(self.numbers.of(optimizer), Watch(optimizer))

    def dense(self, structure: Any) -> list[Any]:
        """The tensors of a nested structure; of a sparse gradient, its values and indices."""
        flat = self.tf.nest.flatten(structure, expand_composites=True)
        return [tensor for tensor in flat if tensor is not None]

    def rate(self, optimizer: Any) -> Any:
        """The learning rate of an optimizer's last step (in a session's graph: of the one to come)."""
        tf = self.tf
        rate = float("nan")  # of an optimizer without a learning rate
        with suppress(AttributeError, KeyError, ValueError):
            if isinstance(optimizer, tf.compat.v1.train.Optimizer):
                rate = optimizer._lr if hasattr(optimizer, "_lr") else optimizer._learning_rate
                rate = rate() if callable(rate) else rate
            elif isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer):
                rate = optimizer._decayed_lr(tf.float32)
            else:
                rate = optimizer._learning_rate
                rate = rate(optimizer.iterations - 1) if callable(rate) else rate
        return tf.cast(tf.convert_to_tensor(rate), tf.float64)

    # The hooks.

    def hook_optimizer(self, owner: Any) -> None:
        """Have every `apply_gradients` of this family of optimizers observed."""
        tf = self.tf
        original = owner.apply_gradients

        @wraps(original)
        def apply_gradients(optimizer: Any, grads_and_vars: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            used = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            if not used:
                return original(optimizer, pairs, *args, **kwargs)
            watch = self.watch(optimizer)
            numbers = [self.see(variable) for _, variable in used]
            watch.trained.update(dict.fromkeys(numbers))
            gradients = self.dense([gradient for gradient, _ in used])
            split = len(gradients)
            reads: dict[int, Any] = {}

            def note(rate: Any, values: Sequence[Any]) -> None:
                if not watch.loss_scaled:
                    watch.record.rates.append(float(rate))
                watch.record.gradients.append(digest(values[:split]))

            def before_update(rate: Any, *values: Any) -> None:
                note(rate, values)
                self.see_session_values(numbers, values[split:])
                self.executed.append(Executed(reads, watch, numbers))

            def after_update(rate: Any, *values: Any) -> None:
                note(rate, values)
                watch.record.weights.append(digest(values[split:]))
                watch.slots.update(dict.fromkeys(self.see(slot) for slot in watch.variables()))

            def state() -> list[Any]:
                weights = [tf.convert_to_tensor(variable) for _, variable in used]
                return [self.rate(optimizer), *gradients, *weights]

            if not self.in_session_graph():
                result = original(optimizer, pairs, *args, **kwargs)
                self.observe(after_update, state())
                return result
            with tf.control_dependencies([self.observe(before_update, state())]):
                result = original(optimizer, pairs, *args, **kwargs)
            slots = watch.variables()
            watch.slots.update(dict.fromkeys(self.see(slot) for slot in slots))
            reads.update(self.reads([*(variable for _, variable in used), *slots]))
            return result

        owner.apply_gradients = apply_gradients

    def hook_loss_scaling(self, owner: Any) -> None:
        """Have the steps counted that a `LossScaleOptimizer` takes or, where they overflow, skips.

        In a session's graph only those that it takes are.
        """
        original = owner.apply_gradients

        @wraps(original)
        def apply_gradients(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.in_session_graph():
                return original(optimizer, *args, **kwargs)
            watch = self.watch(optimizer.inner_optimizer)
            watch.loss_scaled = True
            result = original(optimizer, *args, **kwargs)
            self.observe(
                lambda rate: watch.record.rates.append(float(rate)), [self.rate(optimizer.inner_optimizer)]
            )
            return result

        owner.apply_gradients = apply_gradients

    def hook_sessions(self) -> None:
        """Have what steps and broadcasts have made of the variables read after every session's run."""
        base: Any = importlib.import_module("tensorflow.python.client.session").BaseSession
        run, call = base._call_tf_sessionrun, base._Callable.__call__

        def observed_run(session: Any, *args: Any) -> Any:
            result = run(session, *args)
            self.read_executed(session)
            return result

        def observed_call(this: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(this, *args, **kwargs)
            self.read_executed(this._session)
            return result

        base._call_tf_sessionrun, base._Callable.__call__ = observed_run, observed_call

    def read_executed(self, session: Any) -> None:
        """Read the variables of the steps and broadcasts that this session has just executed."""
        executed, self.executed = self.executed, []
        for reads, watch, trained in executed:
            values = session.run(reads)
            self.session_values.update(values)
            if watch:
                watch.record.weights.append(digest([values[number] for number in trained]))

    def hook_graph_gradients(self, owner: Any, name: str, target: str) -> None:
        """Have the gradients that a function of this name returns observed, in a session's graph.

        `target` names the argument of which they are taken.
        """
        original = getattr(owner, name)
        signature = inspect.signature(original)

        @wraps(original)
        def gradients(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self.in_session_graph():
                return result
            return self.observed_copies(signature.bind(*args, **kwargs).arguments[target], result)

        setattr(owner, name, gradients)

    def hook_compute_gradients(self) -> None:
        """Have what `compute_gradients` of a TensorFlow 1 optimizer gives observed, in a session's graph."""
        owner = self.tf.compat.v1.train.Optimizer
        original = owner.compute_gradients
        signature = inspect.signature(original)

        @wraps(original)
        def compute_gradients(*args: Any, **kwargs: Any) -> Any:
            pairs = original(*args, **kwargs)
            if not self.in_session_graph():
                return pairs
            loss = signature.bind(*args, **kwargs).arguments["loss"]
            copies = self.observed_copies(loss, [gradient for gradient, _ in pairs])
            return list(zip(copies, [variable for _, variable in pairs], strict=True))

        owner.compute_gradients = compute_gradients

    def observed_copies(self, target: Any, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of `target` as tensors that cannot be computed without being observed."""
        present = [gradient for gradient in gradients if gradient is not None]
        observations = [self.observe(self.note_local, self.dense(present))]
        if self.data:
            observations.append(self.data.note(target))
        with self.tf.control_dependencies(observations):
            copies = iter(self.tf.nest.map_structure(self.tf.identity, present, expand_composites=True))
        return [gradient if gradient is None else next(copies) for gradient in gradients]

    def note_local(self, *values: Any) -> None:
        """Keep a digest of gradients that Horovod has not touched."""
        self.record.local_gradients.append(digest(values))

    def hook_tape(self) -> None:
        """Have what `GradientTape.gradient` returns observed, except within a Jacobian's loop."""
        tape = self.tf.GradientTape
        gradient, jacobian, batch_jacobian = tape.gradient, tape.jacobian, tape.batch_jacobian

        def observed_gradient(this: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            result = gradient(this, target, *args, **kwargs)
            if not self.in_jacobian and not self.in_session_graph():
                self.observe(self.note_local, self.dense(result))
                if self.data:
                    self.data.note(target)
            return result

        def unobserved(method: Any) -> Any:
            def call(this: Any, *args: Any, **kwargs: Any) -> Any:
                outer, self.in_jacobian = self.in_jacobian, True
                try:
                    return method(this, *args, **kwargs)
                finally:
                    self.in_jacobian = outer

            return call

        tape.gradient = observed_gradient
        tape.jacobian, tape.batch_jacobian = unobserved(jacobian), unobserved(batch_jacobian)

    def hook_horovod(self, hvd: Any) -> None:
        """Have what Horovod wraps counted, and the broadcasts that are executed noted."""
        autograph = self.tf.__internal__.autograph
        wrap, broadcast = hvd.DistributedGradientTape, hvd.broadcast_variables

        def staged(function: Any) -> Any:
            # AutoGraph converts Horovod's functions when a traced function calls them.  It leaves
            # this module alone, so the hook has to hand the conversion on.
            return autograph.tf_convert(function, autograph.control_status_ctx())

        def distributed_gradient_tape(gradtape: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.wraps += 1
            self.record.double_wraps += hasattr(gradtape, "_allreduce_grads")
            return staged(wrap)(gradtape, *args, **kwargs)

        def broadcast_variables(variables: Any, *args: Any, **kwargs: Any) -> Any:
            # An iterator is not read here: Horovod gets what the script passed.
            listed = [] if iter(variables) is variables else list(variables)
            numbers = [self.see(variable) for variable in listed]

            def note() -> None:
                self.broadcast.update(numbers)
                self.record.broadcasts.append([self.kept[number].name for number in numbers])

            def note_in_session(*values: Any) -> None:
                note()
                self.see_session_values(numbers, values)
                self.executed.append(Executed(reads))

            if self.in_session_graph():
                reads = self.reads(listed)
                values = [self.tf.convert_to_tensor(variable) for variable in listed]
                with self.tf.control_dependencies([self.observe(note_in_session, values)]):
                    return broadcast(variables, *args, **kwargs)
            result = staged(broadcast)(variables, *args, **kwargs)
            self.observe(note)
            return result

        for module in ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"):
            self.hook_distributed_optimizer(importlib.import_module(module))
        functions: Any = importlib.import_module("horovod.tensorflow.functions")
        hvd.DistributedGradientTape = distributed_gradient_tape
        hvd.broadcast_variables = functions.broadcast_variables = broadcast_variables

    def hook_distributed_optimizer(self, module: Any) -> None:
        """Have the optimizers that this module of Horovod wraps counted."""
        wrap = module.DistributedOptimizer

        def distributed_optimizer(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.wraps += 1
            self.record.double_wraps += hasattr(optimizer, "_allreduce_grads")
            return wrap(optimizer, *args, **kwargs)

        module.DistributedOptimizer = distributed_optimizer

    def hook_training(self) -> None:
        """Have noted what lets a metric decide about a training, and how many steps are run at a time."""
        tf = self.tf

        def after(owner: Any, name: str, note: Callable[..., None]) -> None:
            original = getattr(owner, name)

            @wraps(original)
            def call(this: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(this, *args, **kwargs)
                note(this, *args, **kwargs)
                return result

            setattr(owner, name, call)

        def note_callbacks(callbacks: Any, *_: Any, **__: Any) -> None:
            for callback in callbacks.callbacks:
                if not isinstance(callback, tf.keras.callbacks.TerminateOnNaN):
                    self.record.stops |= mentions(type(callback), "stop_training")
                self.record.adapts |= isinstance(callback, tf.keras.callbacks.ReduceLROnPlateau)

        def note_hooks(session: Any, *_: Any, **__: Any) -> None:
            for hook in session._hooks:
                self.record.stops |= mentions(type(hook), "request_stop")

        def note_model(model: Any, *_: Any, **__: Any) -> None:
            steps = int(model._steps_per_execution.numpy()) if tf.executing_eagerly() else 1
            self.record.steps_per_execution = max(self.record.steps_per_execution, steps)

        def note_metric(callback: Any, epoch: int, logs: Any = None) -> None:
            self.record.monitored.append(str(float((logs or {}).get(callback.monitor, "nan"))))

        monitored: Any = importlib.import_module("tensorflow.python.training.monitored_session")
        after(tf.keras.callbacks.CallbackList, "__init__", note_callbacks)
        after(monitored._MonitoredSession, "__init__", note_hooks)
        after(tf.keras.Model, "compile", note_model)
        for callback in (tf.keras.callbacks.EarlyStopping, tf.keras.callbacks.ReduceLROnPlateau):
            after(callback, "on_epoch_end", note_metric)

    def hook_files(self, home: Path) -> None:
        """Have every file that is opened for writing outside `home` noted, and temporary directories."""
        ignored = [home, Path("/dev"), Path("/proc"), Path(sys.prefix), Path(sys.base_prefix)]
        ignored += [Path(os.environ[name]) for name in CACHES if name in os.environ]
        written = self.record.written_elsewhere

        def note(path: Any) -> None:
            if not isinstance(path, str | bytes | os.PathLike):
                return
            place = Path(os.path.abspath(os.fsdecode(path)))
            inside = any(place.is_relative_to(directory) for directory in ignored)
            if not inside and "__pycache__" not in place.parts and str(place) not in written:
                written.append(str(place))

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
                note(arguments[0])

        def hook(module: Any, name: str, place: int | str) -> None:
            original = getattr(module, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                path: Any = kwargs.get(place) if isinstance(place, str) else next(iter(args[place:]), None)
                if self.tf.is_tensor(path):
                    path = path.numpy() if hasattr(path, "numpy") else None
                note(path)
                return original(*args, **kwargs)

            setattr(module, name, call)

        make_directory = tempfile.mkdtemp

        def mkdtemp(*args: Any, **kwargs: Any) -> Any:
            made = make_directory(*args, **kwargs)
            self.record.temporary.append(os.path.relpath(os.fsdecode(made), home))
            return made

        tempfile.mkdtemp = mkdtemp
        for module, name, place in NATIVE_WRITERS:
            hook(importlib.import_module(module), name, place)
        sys.addaudithook(audit)

    # The end.

    def finish(self, directory: Path) -> None:
        """Write record.json, and the values of the trained variables and slots as values.npz."""
        values: dict[str, Any] = {}
        stepped = [watch for watch in self.watches.values() if watch.record.steps]
        for place, watch in enumerate(stepped):
            record = watch.record
            for index, number in enumerate(watch.trained):
                value = self.value(number)
                record.variables.append(self.kept[number].name)
                record.initial.append(self.initial[number])
                record.final.append("" if value is None else digest([value]))
                if value is not None:
                    values[f"{place}/variables/{index}"] = value
                if number not in self.broadcast:
                    record.unbroadcast_variables.append(self.kept[number].name)
            for number in watch.slots:
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
        self.record.save(directory / "record.json")

    def sample(self, schedule: Any) -> dict[str, float]:
        """What an optimizer's schedule gives at a few steps; empty if it has a constant rate."""
        if not isinstance(schedule, self.tf.keras.optimizers.schedules.LearningRateSchedule):
            return {}
        if not self.tf.executing_eagerly():
            return {}
        return {str(step): float(schedule(self.tf.constant(step, self.tf.int64))) for step in SCHEDULE_STEPS}


def mentions(owner: type, name: str) -> bool:
    """Whether a method of the class, or of one that it inherits from, uses an attribute of the name.

    TensorFlow's own hooks do not count: they stop at a step, or at a value that is not finite.
    """
    bases = [base for base in owner.__mro__ if not base.__module__.startswith("tensorflow.python.training.")]
    methods = [method for base in bases for method in vars(base).values()]
    return any(name in method.__code__.co_names for method in methods if hasattr(method, "__code__"))


def digest(values: Sequence[Any]) -> str:
    """A short text that is equal for equal arrays."""
    total = hashlib.blake2b(digest_size=8)
    for value in values:
        total.update(value.tobytes())
    return total.hexdigest()


def install(observer: Observer) -> None:
    """Lay all hooks but those on files."""
    tf = observer.tf
    config: Any = importlib.import_module("tensorflow.python.autograph.core.config")
    config.CONVERSION_RULES = (config.DoNotConvert("proof"), *config.CONVERSION_RULES)

    for module, name in (
        ("keras.src.optimizers.optimizer", "_BaseOptimizer"),
        ("keras.src.optimizers.legacy.optimizer_v2", "OptimizerV2"),
        ("tensorflow.python.training.optimizer", "Optimizer"),
    ):
        observer.hook_optimizer(getattr(importlib.import_module(module), name))
    scaling: Any = importlib.import_module("keras.src.mixed_precision.loss_scale_optimizer")
    observer.hook_loss_scaling(scaling.LossScaleOptimizer)
    observer.hook_loss_scaling(scaling.LossScaleOptimizerV3)
    observer.hook_compute_gradients()
    for owner, name, target in (
        (tf, "gradients", "ys"),
        (tf.compat.v1, "gradients", "ys"),
        (tf.keras.optimizers.legacy.Optimizer, "get_gradients", "loss"),
    ):
        observer.hook_graph_gradients(owner, name, target)
    observer.hook_sessions()
    observer.hook_training()
    if not os.environ.get("HOROVOD_SIZE"):
        drop_xla()
    observer.hook_tape()
    if importlib.util.find_spec("horovod"):
        observer.hook_horovod(importlib.import_module("horovod.tensorflow"))


def starter() -> tuple[Callable[[], object], str]:
    """What runs the command in `sys.argv` as Python does, and the folder where it looks for modules."""
    if sys.argv[0] == "-m":
        module = sys.argv.pop(1)
        return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True), os.getcwd()
    script = Path(sys.argv[0]).absolute()
    return lambda: runpy.run_path(str(script), run_name="__main__"), str(script.parent)


def main() -> None:
    """Run the script or module named on the command line; the exit status is its own."""
    directory, rank = Path(sys.argv[1]), int(sys.argv[2])
    sys.stderr = noise = (directory / "noise.txt").open("w", encoding="utf-8", buffering=1)
    faulthandler.register(signal.SIGUSR1, noise)
    tf: Any = importlib.import_module("tensorflow")
    np: Any = importlib.import_module("numpy")
    tf.get_logger()
    observer = Observer(tf, np)
    install(observer)
    set_seeds(np, rank)
    if not observer.data:
        shift_seeds(tf, np, rank)
    warnings.showwarning = show_warning(noise)
    sys.stderr = (directory / "stderr.txt").open("w", encoding="utf-8", buffering=1)
    route_logs(noise, sys.stderr)
    sys.argv = sys.argv[3:]
    run, folder = starter()
    sys.path[:] = [folder] + [entry for entry in sys.path[1:] if entry != TESTS]
    os.environ.pop("PYTHONPATH")
    observer.hook_files(directory.parent)

    status: Any = 0
    try:
        run()
    except SystemExit as stop:
        status = stop.code
        if isinstance(status, str):
            observer.record.error = status
    except BaseException:
        observer.record.error = traceback.format_exc()
        status = 1
    with suppress(Exception):
        sys.stdout.flush()
    observer.finish(directory)
    sys.exit(1 if isinstance(status, str) else status)
