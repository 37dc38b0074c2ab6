"""Choices: the options of a conversion, as data for settings, command-line options and their help.

The default of a field applies if nothing was chosen; its metadata describe the option and its other values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias

from trainshift.libraries.entries import Table

Value: TypeAlias = "bool | int | str"

AVERAGE, ADASUM = "average", "adasum"
NONE, FP16 = "none", "fp16"
KERAS_AUTO, KERAS_2, KERAS_3, KERAS_LEGACY = "auto", "2", "3", "tf_keras"
KERAS_NAMES = {
    KERAS_2: "Keras 2",
    KERAS_3: "Keras 3",
    KERAS_LEGACY: "Keras 2 by tf_keras",
}
"""The names for users of the Keras that a result is written for."""


_COMPARED = r"(~=|==|!=|<=|>=|<|>) *\d+(\.\d+)*(\.\*)?"
_VERSION = rf"\d+(\.\d+){{1,2}}|{_COMPARED}(, *{_COMPARED})*"


def _choice(default: Any, says: str, **values: str) -> Any:
    """A field for an option: its description and, for an option with named values, that of each value."""
    return field(default=default, metadata={"says": says, "values": values})


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of one conversion (spec.md 8)."""

    compression: str = _choice(
        NONE,
        "Data type of the gradients sent between ranks.",
        none="Gradients are sent unchanged.",
        fp16="Gradients are sent as 16-bit floats: half the traffic, less precision.",
    )
    op: str = _choice(
        AVERAGE,
        "How the gradients of all ranks are combined.",
        average="They are averaged, and the learning rate is multiplied by the number of ranks.",
        adasum=(
            "By Horovod's Adasum, for tapes; the learning rate is not scaled. It needs 2, 4, 8, "
            "... ranks and a Horovod built with MPI: with Gloo alone, it stops at the first step."
        ),
    )
    backward_passes_per_step: int = _choice(
        1,
        (
            "Number of batches that a rank averages before the ranks exchange gradients, for "
            "`fit`: less traffic, fewer updates."
        ),
    )
    warmup_epochs: int = _choice(
        0, ("Number of epochs over which `fit` raises the learning rate to the scaled one; 0 for none.")
    )
    sync_batch_norm: bool = _choice(
        False, "Compute `BatchNormalization` statistics over the batches of all ranks."
    )
    seed_by_rank: bool = _choice(False, "Give each rank its own random numbers if a script fixes its seeds.")
    keras: str = _choice(
        KERAS_AUTO,
        "The Keras that results are written for.",
        **{
            KERAS_AUTO: "The one that the project's requirements or the script ask for, else Keras 2.",
            KERAS_2: "TensorFlow 2.12 to 2.15.",
            KERAS_3: "TensorFlow 2.16 to 2.21.",
            KERAS_LEGACY: "Keras 2 on TensorFlow 2.16 to 2.21, through the package `tf_keras`.",
        },
    )
    tensorflow: str = _choice(
        "",
        (
            "The TensorFlow that results run on, such as `2.21` or `>=2.16`; it decides the Keras. "
            "By default, the project's requirements decide."
        ),
    )
    divide_data: bool = _choice(
        True, "Divide the data among the ranks, so that an epoch still reads all of it once."
    )
    why_keras: str = ""
    """The origin of the automatically chosen target Keras; not an option."""
    doubt_keras: str = ""
    """A conflict in the requirements, or ""; not an option."""
    is_open: bool = False
    """True if the requirements were searched without a result; not an option."""
    installed: tuple[str, str] = ("", "")
    """The installed Keras if nothing requires one, with its environment, or ""; not an option."""
    libraries: Mapping[str, Table] = field(default_factory=dict, hash=False)
    """The entries of the user's own libraries, by package or module; not an option."""
    line_length: int = 0
    """The line length of the project's formatter or linter, or 0; not an option."""
    backend: tuple[str, str] = ("", "")
    """The Keras 3 backend that the project sets, and the setting's origin, or ""; not an option."""


class Choice(NamedTuple):
    """One option of a conversion, as settings and commands show it.

    `key` is its key in settings, `name` that of its field.  `values` are its allowed words, with
    descriptions; without any it is a Boolean, a version or a number of at least `least`, by the type of its
    `default`.
    """

    key: str
    name: str
    default: Value
    says: str
    values: Mapping[str, str]

    @property
    def is_switch(self) -> bool:
        """Return whether it is on or off."""
        return isinstance(self.default, bool)

    @property
    def is_version(self) -> bool:
        """Return whether it is a version, or a constraint as pip reads it."""
        return isinstance(self.default, str) and not self.values

    @property
    def least(self) -> int:
        """The smallest value allowed for a number: its default."""
        return int(self.default)

    def problem(self, value: object) -> str:
        """The problem with a value for the option; empty if there is none."""
        if self.is_switch:
            return "" if isinstance(value, bool) else f"must be true or false, not {value!r}."
        if self.values:
            listed = " or ".join(f'"{each}"' for each in self.values)
            return "" if value in tuple(self.values) else f"must be {listed}, not {value!r}."
        if self.is_version:
            fits = value == "" or (isinstance(value, str) and re.fullmatch(_VERSION, value))
            return "" if fits else f'must be a version such as "2.21" or ">=2.16", not {value!r}.'
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
        return "" if is_number else f"must be a whole number of at least {self.least}, not {value!r}."


def _all() -> Iterator[Choice]:
    for each in fields(Choices):
        if not each.metadata:
            continue
        key, default = each.name.replace("_", "-"), getattr(Choices(), each.name)
        yield Choice(key, each.name, default, each.metadata["says"], each.metadata["values"])


CHOICES = {each.key: each for each in _all()}
"""Every choice by its key in settings."""
