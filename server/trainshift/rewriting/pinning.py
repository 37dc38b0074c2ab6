"""Pinning: whether a program gives each rank a GPU of its own already, in whichever of its files."""

from __future__ import annotations

import ast

from trainshift.core.lazy import cached_property
from trainshift.core.program import Program
from trainshift.core.text.facts import arguments
from trainshift.core.training.horovod import Horovod

# What a configuration of TensorFlow 1 names the GPUs by.
DEVICES = "visible_device_list"
# What is given one for all that runs without a session of the script's own.
_CONFIGURING = ("set_session", "enable_eager_execution")


class Pinning:
    """How a program chooses the GPU of a rank."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._horovod = program.fact(Horovod)

    @cached_property
    def is_done(self) -> bool:
        """Whether the program gives each rank its own GPU."""
        for site in self._script.sites_named("set_visible_devices"):
            given = arguments(site.node)
            if any(self._horovod.pinned(each, site.scope, site.statement) for each in given[:1]):
                return True
        return self.by_environment or self._by_configuration

    @cached_property
    def _by_configuration(self) -> bool:
        """Whether a configuration names the rank's GPU, by which TensorFlow 1 is set up as a whole."""
        if next(self._script.sites_named(*_CONFIGURING), None) is None:
            return False
        pinned = self._horovod.pinned
        return any(
            each.binding.value is not None
            and pinned(each.binding.value, each.binding.scope, each.binding.statement)
            for each in self._script.attribute_bindings(DEVICES)
        ) or any(
            word.arg == DEVICES and pinned(word.value, site.scope, site.statement)
            for site in self._script.sites_named("GPUOptions")
            for word in site.node.keywords
        )

    @cached_property
    def by_environment(self) -> bool:
        """Whether the program sets the variable that hides other ranks' GPUs from everything it does."""
        return any(
            isinstance(item.key, ast.Constant)
            and item.key.value == "CUDA_VISIBLE_DEVICES"
            and item.binding.value is not None
            and self._horovod.pinned(item.binding.value, item.binding.scope, item.binding.statement)
            for item in self._script.item_bindings("environ")
        )
