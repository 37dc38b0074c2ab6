"""Find uses of Horovod that work on Keras 2 and not on Keras 3.

Horovod's optimizer runs there and averages nothing; its tape, its callbacks and its broadcasts of Keras
variables raise an error.  Its ops work on TensorFlow's tensors and variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core.choices import KERAS_3, KERAS_LEGACY
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.training.horovod.defects import at
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import AVERAGE, BROADCAST, HOOK, RATE_CALLBACKS
from trainshift.training.keras_version.which_keras import WhichKeras
from trainshift.training.loops.steps import VARIABLE_LISTS, Steps

# Calls that return an averaging optimizer on Keras 2, but not on Keras 3.
WRAPS = ("DistributedOptimizer", "create_distributed_optimizer", "load_model")
_OF_GRAPHS = ("tensorflow.compat.v1.train.", "tensorflow.train.")
_OWNERS = (*api.MODEL, *api.LAYER, *api.OPTIMIZERS)
_NO_REF = "AttributeError: 'Variable' object has no attribute 'ref'"
FAILING = {
    BROADCAST: _NO_REF,
    **dict.fromkeys(RATE_CALLBACKS, "AttributeError: module 'keras.backend' has no attribute 'get_value'"),
    "SyncBatchNormalization": "ValueError: Unrecognized keyword arguments",
    **dict.fromkeys(("KerasState", "TensorFlowKerasState"), "TypeError: 'list' object is not callable"),
}
"""The names that fail on Keras 3 wherever they are used, with their errors."""
_NO_CONSTANT = "AttributeError: module 'keras.backend' has no attribute 'constant'"
_NO_ASSIGN = "AttributeError: 'SymbolicTensor' object has no attribute 'assign'"
_NO_HOOK = "AttributeError: module 'horovod.tensorflow' has no attribute 'BroadcastGlobalVariablesHook'"
_FAILS = "does not work on Keras 3"
_KNOWS_NOT = "does not take the variables of Keras 3"
_GONE = "is gone from TensorFlow 2.16 on"
_BACKEND = "K"


class Failing(NamedTuple):
    """A call of a Horovod function of this `name` that fails with an `error`; `told` completes the
    message.
    """

    site: Site
    name: str
    error: str
    told: str = _FAILS


class ForKeras2:
    """The uses of Horovod in one program that fail on the Keras that it runs on."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._which = program.fact(WhichKeras)
        self._lists = Questions(False, False)

    @cached_property
    def is_keras3(self) -> bool:
        """Return whether the program runs on Keras 3, which is required or installed."""
        return self._horovod.is_used and self._which.keras == KERAS_3 and not self._which.is_guessed

    @property
    def is_certain(self) -> bool:
        """Return whether Keras 3 is required; otherwise it is merely installed."""
        return self._which.is_demanded

    @property
    def because(self) -> str:
        """The target Keras and the reason for it, as a clause."""
        return f"for {self._which.name}, {self._which.because}"

    @cached_property
    def unheeded(self) -> frozenset[ast.Call]:
        """The calls whose optimizer averages nothing on Keras 3, if Keras 3 is required."""
        return frozenset(each.node for each in self.silent) if self.is_certain else frozenset()

    @cached_property
    def silent(self) -> list[Site]:
        """The calls that return an optimizer that silently averages nothing."""
        if not self.is_keras3:
            return []
        return [site for site in self._horovod.calls(*WRAPS) if not self.is_of_graph(site)]

    def is_of_graph(self, site: Site) -> bool:
        """Return whether a call wraps a TensorFlow 1 optimizer, which works on all versions."""
        wrapped = argument(site.node, 0, "optimizer")
        values = self._names.site_values(wrapped, site) if wrapped is not None else ()
        return bool(values) and all(
            isinstance(value, Instance) and value.cls.startswith(_OF_GRAPHS) for value in values
        )

    @cached_property
    def failing(self) -> list[Failing]:
        """The calls that end with an error."""
        is_newer = self.is_keras3 or (self._horovod.is_used and self._which.keras == KERAS_LEGACY)
        if not is_newer:
            return []
        hooks = [Failing(site, HOOK, _NO_HOOK, _GONE) for site in self._horovod.calls(HOOK)]
        return [*hooks, *(self._failing() if self.is_keras3 else ())]

    def _failing(self) -> Iterator[Failing]:
        for name, error in FAILING.items():
            yield from (Failing(site, name, error) for site in self._horovod.calls(name))
        # With the backend under Keras 2's names, which TensorFlow still has, it averages.
        if not any(True for _ in self._script.attribute_bindings(_BACKEND)):
            yield from (Failing(site, AVERAGE, _NO_CONSTANT) for site in self._horovod.calls(AVERAGE))
        for gradient in self._program.fact(Steps).gradients:
            given = argument(gradient.site.node, 1, "sources")
            if gradient.wrapped and given is not None and self._has_keras_own(at(given, gradient.site)):
                yield Failing(gradient.site, "DistributedGradientTape", _NO_REF, _KNOWS_NOT)
        for site in self._horovod.calls("broadcast_variables"):
            given = argument(site.node, 0, "variables")
            if given is not None and self._has_keras_own(at(given, site)):
                yield Failing(site, "broadcast_variables", _NO_ASSIGN, _KNOWS_NOT)

    def _has_keras_own(self, listed: Occurrence) -> bool:
        """Return whether a list is known to contain Keras variables rather than their values."""
        return self._lists.ask((id(listed.node), id(listed.scope)), self._lists_keras_own, listed)

    def _lists_keras_own(self, listed: Occurrence) -> bool:
        node = listed.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._has_keras_own(listed.part(node.func))
        if isinstance(node, ast.BinOp):
            return any(self._has_keras_own(listed.part(each)) for each in (node.left, node.right))
        if isinstance(node, ast.Attribute) and node.attr in VARIABLE_LISTS:
            values = self._names.values(node.value, listed.scope, listed.statement)
            return bool(values) and all(map(self._is_of_keras, values))
        if isinstance(node, ast.Name):
            step = self._names.steps_back(listed)
            sources = step.sources if step is not None and not step.unseen else ()
            return bool(sources) and all(self._has_keras_own(each) for each in sources)
        return False

    def _is_of_keras(self, value: Value) -> bool:
        """Return whether an object is one of Keras', whose variables it makes."""
        if isinstance(value, UserInstance):
            bases = self._names.library_bases(value.scope)
            return any(api.is_subclass(base, *_OWNERS) for base in bases)
        if isinstance(value, Instance) and value.cls.startswith(_OF_GRAPHS):
            return False
        return self._names.is_a(value, *_OWNERS)
