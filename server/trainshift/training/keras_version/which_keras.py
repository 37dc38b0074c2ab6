"""Find the Keras that a program runs on, and the reason for it."""

from __future__ import annotations

from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_AUTO, KERAS_LEGACY, KERAS_NAMES
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.training.keras_version.keras_signs import KerasSigns


class WhichKeras:
    """The Keras of one program: chosen by a person, required by the project, or shown by the script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._choices = program.choices

    @property
    def keras(self) -> str:
        """The version, as options name it."""
        return self._found[0]

    @property
    def why(self) -> str:
        """The evidence for it; "" if it was chosen, or if there is none."""
        return self._found[1]

    @property
    def name(self) -> str:
        """The name that messages use."""
        return KERAS_NAMES[self.keras]

    @property
    def because(self) -> str:
        """The reason, as a clause: "because requirements.txt:1 asks for tensorflow 2.18"."""
        if not self.why and not self.is_chosen:
            return "as nothing asks for 3"
        _, but, against = self._choices.doubt_keras.partition(", but ")
        return (f"because {self.why}" if self.why else "as was chosen") + but + against

    @property
    def is_chosen(self) -> bool:
        """Return whether a person chose it."""
        return self._choices.keras != KERAS_AUTO and not self._choices.why_keras

    @property
    def is_demanded(self) -> bool:
        """Return whether a person, the project or the script itself requires it, so that it runs on no other
        version.
        """
        if self._choices.keras != KERAS_AUTO:
            return True
        signs = self._signs
        sign = signs.of_3 or (signs.of_backend if not self._choices.installed[0] else None)
        return signs.of_2 is None and sign is not None

    @property
    def is_guessed(self) -> bool:
        """Return whether the only evidence is the names of files and of a few methods."""
        return not self.is_demanded and not self._choices.installed[0]

    @property
    def is_open(self) -> bool:
        """Return whether there is no evidence, so that it counts as Keras 2."""
        return self._choices.is_open and self._found == (KERAS_2, "")

    @property
    def _signs(self) -> KerasSigns:
        """The signs in the original text, since edits do not turn it into a program for another Keras."""
        program = self._program.whole
        while program.origin is not None:
            program = program.origin[0].whole
        return program.fact(KerasSigns)

    @cached_property
    def _found(self) -> tuple[str, str]:
        """The Keras version, and the evidence for it."""
        asked, why = self._choices.keras, self._choices.why_keras
        if self.is_chosen:
            return asked, ""
        signs = self._signs
        if signs.of_legacy is not None:
            return KERAS_LEGACY, signs.of_legacy.told
        if asked == KERAS_LEGACY and signs.bare is not None and not signs.names_tensorflows:
            return KERAS_3, signs.bare.told
        if asked != KERAS_AUTO:
            return asked, why
        if signs.of_2 is None and signs.of_3 is not None:
            return KERAS_3, signs.of_3.told
        if self._choices.installed[0]:
            return self._choices.installed
        if signs.of_2 is None and signs.of_backend is not None:
            return KERAS_3, signs.of_backend.told
        if self._choices.is_open:
            return self._open(signs)
        return KERAS_2, ""

    def _open(self, signs: KerasSigns) -> tuple[str, str]:
        """The Keras if none is required or installed: decided by the names of files, otherwise 2."""
        if (sign := signs.of_2 or signs.of_names) is not None:
            return sign.keras, sign.told
        return KERAS_2, ""
