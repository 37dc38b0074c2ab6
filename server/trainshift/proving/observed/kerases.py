"""The Keras packages of a process, of either version, and the places of the observed functions in each.

On TensorFlow 2.16 and later `keras` is Keras 3, and `tf_keras` is Keras 2; a script may use both.  A flag
decides which of them is `tf.keras` when TensorFlow is imported; a script may set it before.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("keras", "tf_keras")
# The variable that selects Keras 2 where both are installed, and its values.
FLAG = "TF_USE_LEGACY_KERAS"
SET = ("1", "true", "True")


@dataclass(frozen=True)
class Keras:
    """One Keras: its package, and whether it is Keras 3."""

    package: str
    is_3: bool

    def part(self, module: str) -> Any:
        """A module of the package, by its name inside it."""
        return importlib.import_module(f"{self.package}.src.{module}")

    @property
    def api(self) -> Any:
        """The module that scripts import."""
        return importlib.import_module(self.package)

    @property
    def optimizers(self) -> tuple[Any, ...]:
        """The class in each family of optimizers that applies gradients."""
        if self.is_3:
            return (self.part("optimizers.base_optimizer").BaseOptimizer,)
        return (
            self.part("optimizers.optimizer")._BaseOptimizer,
            self.part("optimizers.legacy.optimizer_v2").OptimizerV2,
        )

    @property
    def applies(self) -> str:
        """The method of an optimizer that performs all of its steps."""
        return "apply" if self.is_3 else "apply_gradients"

    @property
    def loss_scaling(self) -> tuple[Any, ...]:
        """The classes that scale losses around an optimizer."""
        if self.is_3:
            return (self.part("optimizers.loss_scale_optimizer").LossScaleOptimizer,)
        scaling = self.part("mixed_precision.loss_scale_optimizer")
        return (scaling.LossScaleOptimizer, scaling.LossScaleOptimizerV3)

    @property
    def schedule(self) -> Any:
        """The class of schedules of a rate."""
        return self.api.optimizers.schedules.LearningRateSchedule

    def steps_per_execution(self, model: Any) -> int:
        """Return how many steps a compiled model runs at a time."""
        return int(model.steps_per_execution if self.is_3 else model._steps_per_execution.numpy())


def kerases() -> Iterator[Keras]:
    """Yield the installed packages, the usual one first."""
    for package in PACKAGES:
        if find_spec(package):
            with suppress(ImportError):
                version = importlib.import_module(package).__version__
                yield Keras(package, int(version.partition(".")[0]) >= 3)


def known_to_tensorflow(variable: Any) -> Any:
    """The TensorFlow variable behind a variable of Keras 3; any other one unchanged."""
    own = type(variable).__module__.startswith("keras.") and getattr(variable, "_value", None)
    return variable if own is None or own is False else own


def follow_flag(command: Sequence[str]) -> None:
    """Set the flag for Keras 2 if the script does, above its first import of TensorFlow.

    `command` is the script with its arguments, or `-m` with a module and its arguments.  The observer imports
    TensorFlow before the script can set the flag.
    """
    path = Path(*command[1].split(".")).with_suffix(".py") if command[0] == "-m" else Path(command[0])
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    for statement in body:
        names = imported(statement)
        if any(name.partition(".")[0] == "tensorflow" for name in names):
            return
        if (value := flag_set_by(statement)) is not None:
            os.environ[FLAG] = value


def imported(statement: ast.stmt) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []


def flag_set_by(statement: ast.stmt) -> str | None:
    """The value that a statement sets the flag to, by an assignment or a call that names it; else None."""
    constants = [each.value for each in ast.walk(statement) if isinstance(each, ast.Constant)]
    if not isinstance(statement, (ast.Assign, ast.Expr)) or FLAG not in constants:
        return None
    return next((each for each in constants if each in SET), None)
