"""Target: which Keras a result is written for, and what of Horovod is spelled otherwise there.

On Keras 3 (TensorFlow 2.16 and later) Horovod's ops work on TensorFlow's tensors and variables.  Its tape
does not, nor a broadcast of Keras' own variables, whose `value` is what TensorFlow knows.
"""

from __future__ import annotations

from trainshift.core.choices import KERAS_3
from trainshift.core.program import Program


class Target:
    """What the result of one program is written for."""

    def __init__(self, program: Program) -> None:
        self._choices = program.choices

    @property
    def is_keras3(self) -> bool:
        """Whether it is Keras 3; else it is Keras 2."""
        return self._choices.keras == KERAS_3

    def of_model(self, model: str, tf: str) -> str:
        """The variables of a model that a broadcast is given; `tf` is the name of TensorFlow's module."""
        return self.known(f"{model}.weights", tf) if self.is_keras3 else f"{model}.variables"

    def of_optimizer(self, optimizer: str, tf: str) -> str:
        """The variables of an optimizer that a broadcast is given."""
        return self.known(f"{optimizer}.variables", tf) if self.is_keras3 else f"{optimizer}.variables()"

    def known(self, variables: str, tf: str) -> str:
        """The variables that TensorFlow knows of those that Keras may have made."""
        if not self.is_keras3:
            return variables
        return f"[v if isinstance(v, {tf}.Variable) else v.value for v in {variables.removesuffix('()')}]"

    def flag(self, tf: str) -> str:
        """The first value of a flag that is set once, by a step that may be traced.

        On Keras 3 an optimizer's variables have no value yet when a step is traced, so that the flag is a
        variable, which AutoGraph asks whenever the step runs.
        """
        return f"{tf}.Variable(False, trainable=False)" if self.is_keras3 else "False"
