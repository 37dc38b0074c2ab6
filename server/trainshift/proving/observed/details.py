"""Details of each step for the page of a proof: times, losses, places, samples of values.

Values are samples, every so many elements of each array, so that a large model costs no more than a
small one.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

# The number of values kept per step, for all gradients and all weights, and the number of such steps.
MOST_NUMBERS = 32768
MOST_STEPS = 400
# The number of recent gradients to remember, and of gradients of equal shapes to keep per step.
MOST_TAKEN, MOST_ALIKE = 64, 4
# The number of distinct places of prints and writes to report.
MOST_PLACES = 20
# Beside the progress file: the threads of a process that do not compute.
THREADS = "threads"

Signature = tuple[tuple[int, ...], ...]


class Details:
    """The samples of one process, and the lines of the script that it executed.

    `roots` are the folders of the script; `progress` is a file that always holds the number of the step.
    """

    def __init__(self, np: Any, roots: Sequence[str], progress: Path) -> None:
        self.np = np
        self.roots = tuple(os.path.join(root, "") for root in roots)
        self.arrays: dict[str, Any] = {}
        self.local: deque[tuple[int, Signature, Any]] = deque(maxlen=MOST_TAKEN)
        self.taken = 0
        self.since: dict[int, int] = {}
        self.losses: list[float] = []
        self.rows: list[int] = []
        self.printed: dict[str, str] = {}
        self.wrote: dict[str, str] = {}
        self.steps = 0
        self.threads = progress.with_name(THREADS)
        self.progress = os.open(progress, os.O_WRONLY | os.O_CREAT, 0o644)
        self.looking = False
        self.hook_horovod()

    def hook_horovod(self) -> None:
        """Mark Horovod's threads for the watchers of the process: they only poll."""

        def hook(module: Any) -> None:
            init = module.init

            @wraps(init)
            def observed_init(*args: Any, **kwargs: Any) -> Any:
                before = threads()
                result = init(*args, **kwargs)
                if own := threads() - before:
                    self.threads.write_text(" ".join(own))
                return result

            module.init = observed_init

        for name in ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"):
            with suppress(ImportError):
                hook(importlib.import_module(name))

    def note_local(self, loss: Any, gradients: Sequence[Any]) -> Any:
        """Keep the gradients that a rank computed itself; return their sample."""
        if loss is not None and len(self.losses) < MOST_STEPS * 4:
            self.losses.append(float(loss))
        sample = self.sample(gradients)
        if gradients:
            self.taken += 1
            self.local.append((self.taken, signature(gradients), sample))
        return sample

    def note_step(self, optimizer: int, step: int, gradients: Sequence[Any]) -> float:
        """Keep the gradients that reached an optimizer, with the rank's own; return the time."""
        self.steps += 1
        os.pwrite(self.progress, b"%08d" % self.steps, 0)
        if step < MOST_STEPS:
            self.arrays[f"{optimizer}/gradients/{step}"] = self.sample(gradients)
            own = self.own(optimizer, signature(gradients))
            for index, sample in enumerate(own[:MOST_ALIKE]):
                self.arrays[f"{optimizer}/local/{step}{f'/{index}' * (index > 0)}"] = sample
            if len(own) > 1:
                self.arrays[f"{optimizer}/local/{step}/sum"] = sum(own)
        self.since[optimizer] = self.taken
        return time.time()

    def note_weights(self, optimizer: int, step: int, weights: Sequence[Any]) -> None:
        """Keep the weights after a step."""
        if step < MOST_STEPS:
            self.arrays[f"{optimizer}/weights/{step}"] = self.sample(weights)

    def own(self, optimizer: int, shapes: Signature) -> list[Any]:
        """The gradients of these shapes that this rank computed since the optimizer's last step, latest
        first.

        There are several if gradients are accumulated before a step, or if two networks have equal shapes.
        """
        since = self.since.get(optimizer, 0)
        return [sample for number, known, sample in self.local if number > since and known == shapes][::-1]

    def sample(self, values: Sequence[Any]) -> Any:
        """Samples of some arrays, equally many of each."""
        share = max(1, MOST_NUMBERS // max(1, len(values)))
        parts = [self.np.ravel(value) for value in values]
        taken = [part[:: -(-len(part) // share)] if len(part) > share else part for part in parts]
        numbers = [
            part.astype("f4") for part in taken if part.dtype.kind in "fiub" or part.dtype.name == "bfloat16"
        ]
        return self.np.concatenate(numbers) if numbers else self.np.zeros(0, "f4")

    def place(self) -> str:
        """The current line of the script, as FILE:LINE; empty if it is unknown."""
        frame: Any | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if "__autograph_generated_file" in name:
                return self.traced_place()
            if name.startswith(self.roots):
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def traced_place(self) -> str:
        """The current line in a function that AutoGraph has rewritten."""
        tf_stack: Any = importlib.import_module("tensorflow.python.util.tf_stack")
        for frame in reversed(list(tf_stack.extract_stack())):
            if frame.filename.startswith(self.roots) and "__autograph_generated_file" not in frame.filename:
                return f"{frame.filename}:{frame.lineno}"
        return ""

    def note_place(self, places: dict[str, str], what: str) -> None:
        """Record the first time that a line prints or writes."""
        if self.looking or len(places) >= MOST_PLACES:
            return
        self.looking = True
        try:
            place = self.place()
            if place:
                places.setdefault(place, what)
        finally:
            self.looking = False


class Told:
    """A text stream that records the lines of the script that write to it."""

    def __init__(self, stream: Any, details: Details) -> None:
        self._stream = stream
        self._details = details

    def write(self, text: str) -> int:
        """Write, and record the line."""
        if text.strip():
            self._details.note_place(self._details.printed, text.strip()[:200])
        written: int = self._stream.write(text)
        return written

    def writelines(self, lines: Any) -> None:
        """Write lines, and record the line of the script."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def threads() -> set[str]:
    """The threads of this process; none if they are unknown."""
    with suppress(OSError):
        return {*os.listdir("/proc/self/task")}
    return set()


def signature(values: Sequence[Any]) -> Signature:
    """The shapes of some arrays."""
    return tuple(tuple(value.shape) for value in values)
