"""Target: the Keras that a result is written for, and the names that differ there.

On Keras 3 (TensorFlow 2.16 and later) Horovod's ops work on TensorFlow's tensors and variables.  Its tape
does not, nor does a broadcast of Keras variables, whose `value` is the TensorFlow variable.  With `tf_keras`,
Keras 2 runs there, on which Horovod's wraps work, but not its hook, nor the callbacks' use of Keras' backend.
"""

from __future__ import annotations

from trainshift.core.choices import KERAS_3, KERAS_LEGACY
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.training.keras_version.keras_signs import KerasSigns
from trainshift.training.keras_version.which_keras import WhichKeras


class Target:
    """The Keras that the result of one program is written for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._choices = program.choices
        self._which = program.fact(WhichKeras)

    @cached_property
    def is_keras3(self) -> bool:
        """Return whether the result is for Keras 3 rather than Keras 2."""
        return self._which.keras == KERAS_3

    @property
    def is_legacy(self) -> bool:
        """Return whether it is Keras 2 by `tf_keras`, on TensorFlow 2.16 and later."""
        return self._which.keras == KERAS_LEGACY

    @property
    def is_newer(self) -> bool:
        """Return whether it runs on TensorFlow 2.16 and later, with either Keras."""
        return self._which.keras in (KERAS_3, KERAS_LEGACY)

    @property
    def has_own_hook(self) -> bool:
        """Return whether a session's broadcast is a hook of the script's own: Horovod has one only up to
        2.15.
        """
        return self.is_newer

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return self._which.name

    @property
    def why(self) -> str:
        """The reason for the target; "" if the user chose it, or there is none."""
        return self._which.why

    @property
    def told(self) -> str:
        """The target and the reason, as a clause: "for Keras 3, because ..."."""
        return f"for {self.name}, {self._which.because}"

    @property
    def is_chosen(self) -> bool:
        """Return whether a person chose the Keras."""
        return self._which.is_chosen

    @property
    def against(self) -> str:
        """The evidence against the target; "" if there is none."""
        signs = self._program.fact(KerasSigns)
        sign = signs.of_2 if self.is_keras3 else signs.of_3 or signs.of_backend
        installed, told = self._choices.installed
        if sign is None and installed not in ("", self._which.keras) and self._choices.is_open:
            return told
        return sign.told if sign is not None else ""

    @property
    def is_open(self) -> bool:
        """Return whether there is no evidence, so that the result is for Keras 2."""
        return self._which.is_open

    def of_model(self, model: str, tf: str) -> str:
        """The variables of a model to broadcast; `tf` is the name of TensorFlow's module."""
        return self.known(f"{model}.weights", tf) if self.is_keras3 else f"{model}.variables"

    def of_optimizer(self, optimizer: str, tf: str) -> str:
        """The variables of an optimizer to broadcast."""
        return self.known(f"{optimizer}.variables", tf) if self.is_keras3 else f"{optimizer}.variables()"

    def known(self, variables: str, tf: str) -> str:
        """The TensorFlow variables behind variables that Keras may have created."""
        if not self.is_keras3:
            return variables
        return f"[v if isinstance(v, {tf}.Variable) else v.value for v in {variables.removesuffix('()')}]"

    def flag(self, tf: str) -> str:
        """The initial value of a flag that is set once, by a step that may be traced.

        On Keras 3 an optimizer's variables have no value yet when a step is traced, so the flag is a
        variable, which AutoGraph reads whenever the step runs.
        """
        return f"{tf}.Variable(False, trainable=False)" if self.is_keras3 else "False"
