"""Pinning: whether a program gives each rank a GPU of its own already, in whichever of its files."""

from __future__ import annotations

import ast

from trainshift.core.lazy import cached_property
from trainshift.core.program import Program
from trainshift.core.text.facts import arguments
from trainshift.core.training.horovod import Horovod


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
        return self.by_environment

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
