"""Pinning: check whether a program already gives each rank its own GPU, in any of its files."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries.devices import DEVICE_VARIABLES
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import Binding, Statement, argument, arguments
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loops import Loops
from trainshift.training.uniformity.uniformity import Uniformity

# The attributes that name the GPUs in a TensorFlow 1 configuration.
DEVICES = "visible_device_list"
# Calls that apply a configuration globally, without a session of the script.
_CONFIGURING = ("set_session", "enable_eager_execution")
# The values of the variable that hide all GPUs.
NO_GPU = ("-1", "")


class Pinning:
    """The way in which a program chooses the GPU of a rank."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)

    @cached_property
    def is_done(self) -> bool:
        """Return whether the program gives each rank its own GPU, or hides them all."""
        return self._is_by_rank or self.hides_all

    @cached_property
    def hides_all(self) -> bool:
        """Return whether a program that starts Horovod itself trains on the CPU, regardless of GPUs."""
        if self._is_by_rank or not self._horovod.calls("init") or not self._program.fact(Loops).runs_eagerly:
            return False
        return any(not any(isinstance(each.node, ast.If) for each in at.ancestors()) for at in self._hiding())

    def _hiding(self) -> Iterator[Statement]:
        """The statements that hide all GPUs."""
        for site in self._script.sites_named("set_visible_devices"):
            shown, kind = argument(site.node, 0, "devices"), argument(site.node, 1, "device_type")
            none = isinstance(shown, ast.List | ast.Tuple) and not shown.elts
            if none and (kind is None or getattr(kind, "value", "") in ("GPU", None)):
                yield site.statement
        for binding in self._environment():
            if isinstance(binding.value, ast.Constant) and binding.value.value in NO_GPU:
                assert binding.statement is not None
                yield binding.statement

    @cached_property
    def _is_by_rank(self) -> bool:
        for site in self._script.sites_named("set_visible_devices"):
            given = arguments(site.node)
            if any(self._program.fact(Uniformity).on_rank(of_call(site).part(each)) for each in given[:1]):
                return True
        return self.by_environment or self._by_configuration

    @cached_property
    def _by_configuration(self) -> bool:
        """Return whether a configuration for all of TensorFlow 1 names the rank's GPU."""
        if next(self._script.sites_named(*_CONFIGURING), None) is None:
            return False
        on_rank = self._program.fact(Uniformity).on_rank
        return any(
            each.binding.value is not None
            and on_rank(Occurrence(each.binding.value, each.binding.scope, each.binding.statement))
            for each in self._script.attribute_bindings(DEVICES)
        ) or any(
            word.arg == DEVICES and on_rank(of_call(site).part(word.value))
            for site in self._script.sites_named("GPUOptions")
            for word in site.node.keywords
        )

    @cached_property
    def by_environment(self) -> bool:
        """Return whether the program sets the variable that hides the GPUs of other ranks from all of its
        code.
        """
        return any(
            binding.value is not None
            and self._program.fact(Uniformity).on_rank(
                Occurrence(binding.value, binding.scope, binding.statement)
            )
            for binding in self._environment()
        )

    def _environment(self) -> Iterator[Binding]:
        """Yield the bindings by which the program sets the variable that hides GPUs."""
        for item in self._script.item_bindings("environ"):
            if isinstance(item.key, ast.Constant) and item.key.value in DEVICE_VARIABLES:
                yield item.binding
