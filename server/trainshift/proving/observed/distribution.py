"""Hooks on Horovod: wrappers and broadcasts."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from functools import wraps
from typing import Any

from trainshift.proving.observed.kerases import known_to_tensorflow
from trainshift.proving.observed.steps import Steps
from trainshift.proving.observed.values import Executed


class Distribution(Steps):
    """Hooks on the calls that connect the ranks of a training."""

    def hook_horovod(self, hvd: Any) -> None:
        """Count Horovod's wrappers, and record its broadcasts."""
        autograph = self.tf.__internal__.autograph
        wrap, broadcast = hvd.DistributedGradientTape, hvd.broadcast_variables

        def staged(function: Any) -> Any:
            # AutoGraph converts Horovod's functions when a traced function calls them.  It leaves this
            # module alone, so the hook has to pass the conversion on.
            return autograph.tf_convert(function, autograph.control_status_ctx())

        def distributed_gradient_tape(gradtape: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.wraps += 1
            self.record.double_wraps += hasattr(gradtape, "_allreduce_grads")
            tape = staged(wrap)(gradtape, *args, **kwargs)
            self.hook_local(type(tape), "register_local_source")
            return tape

        def broadcast_variables(variables: Any, *args: Any, **kwargs: Any) -> Any:
            # An iterator is not read here: Horovod gets the script's own argument.
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
            with self.not_by_script():
                result = staged(broadcast)(variables, *args, **kwargs)
            self.observe(note)
            return result

        for module in ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"):
            self.hook_distributed_optimizer(importlib.import_module(module))
        self.hook_reductions(hvd)
        self.hook_operations()
        hvd.DistributedGradientTape = distributed_gradient_tape
        name = "broadcast_variables"
        for path, importer in [*sys.modules.items()]:
            if path.startswith("horovod.") and vars(importer).get(name) is broadcast:
                setattr(importer, name, broadcast_variables)

    def hook_reductions(self, hvd: Any) -> None:
        """Record how Horovod's reductions combine values: average, sum or other."""
        autograph = self.tf.__internal__.autograph

        def hook(name: str) -> None:
            original = getattr(hvd, name)

            @wraps(original)
            def reduce(values: Any, *args: Any, **kwargs: Any) -> Any:
                given = signature.bind(values, *args, **kwargs)
                given.apply_defaults()
                how = manner(hvd, given.arguments)
                is_several = isinstance(values, (list, tuple))
                listed = values if is_several else (values,)
                for value in listed:
                    shape = self.tf.TensorShape(getattr(value, "shape", None))
                    self.reduced.add((how, None if shape.rank is None else tuple(shape.as_list())))
                staged = autograph.tf_convert(original, autograph.control_status_ctx())
                result = staged(values, *args, **kwargs)
                self.record.double_averages += any(map(self.averaged.has, listed))
                for value, mean in zip(listed, result if is_several else (result,)):
                    if how == "average" and self.taken.has(value):
                        self.averaged.of(mean)
                return result

            signature = inspect.signature(original)
            setattr(hvd, name, reduce)

        for name in ("allreduce", "grouped_allreduce"):
            hook(name)

    def hook_operations(self) -> None:
        """Record the Horovod operations that are used."""
        operations: Any = importlib.import_module("horovod.tensorflow.mpi_ops").MPI_LIB

        def hook(name: str) -> None:
            original = getattr(operations, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                self.collectives.add(name.removeprefix("horovod_"))
                return original(*args, **kwargs)

            setattr(operations, name, call)

        for name in dir(operations):
            if name.startswith("horovod_") and callable(getattr(operations, name)):
                hook(name)

    def hook_local(self, owner: Any, name: str) -> None:
        """Record the variables that belong to each rank alone, and may differ."""
        original = getattr(owner, name, None)

        def register(this: Any, variable: Any) -> Any:
            self.local.add(self.numbers.of(known_to_tensorflow(variable)))
            return original(this, variable)  # type: ignore[misc]

        if original is not None:
            setattr(owner, name, register)

    def hook_distributed_optimizer(self, module: Any) -> None:
        """Count the optimizers that this module of Horovod wraps."""
        wrap = module.DistributedOptimizer
        adasum = importlib.import_module("horovod.tensorflow").Adasum  # Not every module has it.

        def distributed_optimizer(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.wraps += 1
            self.record.double_wraps += hasattr(optimizer, "_allreduce_grads")
            self.record.adasum |= kwargs.get("op") is not None and kwargs["op"] == adasum
            wrapped = wrap(optimizer, *args, **kwargs)
            self.hook_local(type(wrapped), "register_local_var")
            return wrapped

        module.DistributedOptimizer = distributed_optimizer


def manner(hvd: Any, arguments: dict[str, Any]) -> str:
    """The way in which a reduction combines values: `average`, `adasum`, or another operation."""
    operation, average = arguments["op"], arguments["average"]
    if operation is None:
        operation = hvd.Sum if average is False else hvd.Average
    factors = [arguments["prescale_factor"], arguments["postscale_factor"]]
    factor = math.prod(float(each) for each in factors) if all(map(is_number, factors)) else math.nan
    if operation == hvd.Sum and math.isclose(factor * hvd.size(), 1.0):
        return "average"
    if operation == hvd.Average and not math.isclose(factor, 1.0):
        return "scaled average"
    names = {hvd.Average: "average", hvd.Sum: "sum", hvd.Adasum: "adasum"}
    return names.get(operation, "another reduction")


def is_number(value: Any) -> bool:
    """Return whether a value is a plain number."""
    return isinstance(value, (int, float))
