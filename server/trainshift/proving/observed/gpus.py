"""Simulated GPUs for a script: record which it requests, and whether in time.

There are two, or one for each rank. The libraries do not know about them, because everything runs on the CPU.
If the machine has GPUs, the script gets these, and only its requests are recorded.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from itertools import takewhile
from typing import Any

FEWEST = 2
LIBRARIES = ("tensorflow", "keras", "tf_keras", "tensorflow_estimator", "horovod")
VARIABLE = "CUDA_VISIBLE_DEVICES"
# Set if the machine has a GPU for each rank.
REAL = "TRAINSHIFT_PROVE_GPUS"


class Gpus:
    """The hooks, and the GPUs asked for; one per process."""

    def __init__(self, tf: Any) -> None:
        self.listed: Any = tf.config.list_physical_devices
        self.context: Any = importlib.import_module("tensorflow.python.eager.context")
        self.hidden_at_first = os.environ.get(VARIABLE)
        self.hidden: list[str | None] = []
        self.are_real = REAL in os.environ
        self.count = 0 if self.are_real else max(FEWEST, int(os.environ.get("HOROVOD_SIZE", 1)))
        self.chosen: list[int] | None = None
        self.growing: dict[Any, bool] = {}
        self.sessions: set[str] = set()
        for module in (tf.config, tf.compat.v1.config, tf.compat.v2.config):
            for owner in (module, module.experimental):
                self.hook_devices(owner)
        self.hook_sessions()
        self.hook_runtime()

    def used(self) -> list[str]:
        """The GPU lists of sessions or, without any, of TensorFlow's runtime."""
        lists = sorted(self.sessions) or ([self.runtime_list()] if self.is_started() else [])
        names = self.asked()
        if names is None:
            return lists
        numbers = ([int(number) for number in each.split(",") if number] for each in lists)
        return [",".join(names[number] for number in own if number < len(names)) for own in numbers]

    def asked(self) -> list[str] | None:
        """The GPUs that the script has requested from CUDA, in time; None if it has not."""
        told = self.hidden[0] if self.hidden else os.environ.get(VARIABLE)
        if told == self.hidden_at_first:
            return None
        return list(takewhile(lambda name: name != "-1", filter(None, (told or "").split(","))))

    def runtime_list(self) -> str:
        """The GPU list of TensorFlow's runtime, now or later."""
        count = len(self.listed("GPU")) if self.are_real else len(self.there())
        return ",".join(map(str, range(count) if self.chosen is None else self.chosen))

    def there(self) -> list[Any]:
        """The GPUs that a process sees: fewer if it has requested some from CUDA."""
        asked = self.asked()
        count = self.count if asked is None else len(asked)
        device = self.context.PhysicalDevice
        return [device(f"/physical_device:GPU:{number}", "GPU") for number in range(min(count, self.count))]

    def is_started(self) -> bool:
        """Return whether the runtime runs, so that nothing can be chosen any more."""
        return self.context.context()._context_handle is not None

    def hook_devices(self, owner: Any) -> None:
        """Replace the functions of one module that list GPUs."""

        def wrapped(name: str) -> Callable[[Callable[..., Any]], None]:
            def put(make: Callable[..., Any]) -> None:
                original: Any = getattr(owner, name, None)

                def call(*args: Any, **kwargs: Any) -> Any:
                    caller = sys._getframe(1).f_globals.get("__name__", "")
                    if caller.partition(".")[0] in LIBRARIES:
                        return original(*args, **kwargs)
                    return make(original, *args, **kwargs)

                if original is not None:
                    setattr(owner, name, call)

            return put

        @wrapped("list_physical_devices")
        def list_physical_devices(original: Any, device_type: str | None = None) -> list[Any]:
            return [*original(device_type), *(self.there() if device_type in (None, "GPU") else ())]

        @wrapped("get_visible_devices")
        def get_visible_devices(original: Any, device_type: str | None = None) -> list[Any]:
            gpus = [gpu for gpu in self.there() if self.chosen is None or number_of(gpu) in self.chosen]
            return [*original(device_type), *(gpus if device_type in (None, "GPU") else ())]

        @wrapped("set_visible_devices")
        def set_visible_devices(original: Any, devices: Any, device_type: str | None = None) -> None:
            wanted = devices if isinstance(devices, list) else [devices]
            gpus = [device for device in wanted if device.device_type == "GPU"]
            others = [device for device in wanted if device.device_type != "GPU"]
            if self.are_real:
                original(devices, device_type)
            elif device_type != "GPU":
                original(others, device_type)
            if device_type in (None, "GPU"):
                numbers = [number_of(gpu) for gpu in gpus]
                self.refuse_late(numbers != self.chosen, "Visible devices")
                self.chosen = numbers

        @wrapped("set_memory_growth")
        def set_memory_growth(original: Any, device: Any, enable: bool) -> None:
            if device.device_type != "GPU" or self.are_real:
                original(device, enable)
                return
            self.refuse_late(self.growing.get(device) != enable, "Physical devices")
            self.growing[device] = enable

    def refuse_late(self, changes: bool, what: str) -> None:
        """Fail like TensorFlow if a setting changes after the runtime has started."""
        if changes and self.is_started():
            raise RuntimeError(f"{what} cannot be modified after being initialized")

    def hook_runtime(self) -> None:
        """Record the CUDA setting when TensorFlow looks for devices; later settings have no effect."""
        owner = self.context.Context
        original = owner._initialize_physical_devices

        def initialize(this: Any, *args: Any, **kwargs: Any) -> None:
            self.hidden.append(os.environ.get(VARIABLE))
            original(this, *args, **kwargs)

        owner._initialize_physical_devices = initialize

    def hook_sessions(self) -> None:
        """Record the GPUs in the configuration of each session."""
        base: Any = importlib.import_module("tensorflow.python.client.session").BaseSession
        original = base.__init__

        def init(this: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
            own = config.gpu_options.visible_device_list if config is not None else self.runtime_list()
            self.sessions.add(own or ",".join(str(number_of(gpu)) for gpu in self.there()))
            original(this, target, graph, config)

        base.__init__ = init


def number_of(gpu: Any) -> int:
    """The number of a simulated GPU."""
    return int(gpu.name.rpartition(":")[2])
