"""Random edits of a buffer, from typing to vandalism: the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from e2e.lsp.session import Json
from e2e.lsp.soak_client import Buffer, units_of

_TYPED = (
    "import tensorflow as tf\n",
    "adam = tf.keras.optimizers.Adam\n",
    "    print(losses.pop())\n",
    "x = '🚂é\u2028'  # 👩‍👩‍👧\n",
    "optimizer = tf.keras.optimizers.SGD(0.1)\r\n",
    "# trainshift: ignore[TF03]\n",
    "with tf.GradientTape() as tape:\n    pass\n",
)
_PASTED = (
    "\0" * 20,
    "\x7fELF\x02\x01\x01\0\0\ufffd\ufffd\x1b[31m\x00\x01",
    "x" * 30_000,
    "(" * 200,
    "\f",
    "\u2028\u2029\x85\x0b\x0c",
    "\r",
    "\r\n\r\n\n\r",
    "\ufeff",
    "\ud83d",
    "\ude82",
    "🚂" * 50,
    "'''",
    "\t\t\t  \t",
    "a = [\n" + "    1,\n" * 200 + "]\n",
)
_SMALLEST = 400


class Vandal:
    """A user who edits buffers randomly, and undoes edits that go too far."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._deeds: tuple[Callable[[Buffer], list[Json]], ...] = (
            *[self._type] * 6,
            *[self._cut] * 4,
            *[self._back_and_forth] * 3,
            self._paste,
            self._half,
            self._split,
            self._several,
            self._swap_line_ends,
        )

    def edit(self, buffer: Buffer, base: str) -> list[Json]:
        """The changes of one notification; `base` is the initial text."""
        size = len(buffer.units)
        chance = self.random.random()
        if size > 2 * len(base) + 20_000 or size < min(_SMALLEST, len(base) // 2) or chance < 0.02:
            return [buffer.replace(base)]
        return self.random.choice(self._deeds)(buffer)

    def _at(self, buffer: Buffer) -> int:
        return self.random.randint(0, len(buffer.units))

    def _type(self, buffer: Buffer) -> list[Json]:
        at = self._at(buffer)
        new = units_of(self.random.choice(_TYPED))
        return [buffer.change(at, at, new[: self.random.randint(1, len(new))])]

    def _cut(self, buffer: Buffer) -> list[Json]:
        start = self._at(buffer)
        return [buffer.change(start, min(start + self.random.choice((1, 1, 3, 60)), len(buffer.units)), "")]

    def _paste(self, buffer: Buffer) -> list[Json]:
        start = self._at(buffer)
        end = min(start + self.random.choice((0, 0, 10)), len(buffer.units))
        return [buffer.change(start, end, units_of(self.random.choice(_PASTED)))]

    def _back_and_forth(self, buffer: Buffer) -> list[Json]:
        """An undo storm: a change is made and undone, many times."""
        changes = []
        for _ in range(self.random.randint(1, 5)):
            before = buffer.units
            start = buffer.settle(self._at(buffer))
            end = buffer.settle(min(start + self.random.randint(0, 5), len(before)))
            new = "y" * self.random.randint(0, 3)
            changes.append(buffer.change(start, end, new))
            # A line feed typed after a carriage return makes one line break with it.
            if buffer.settle(start) == start and buffer.settle(start + len(new)) == start + len(new):
                changes.append(buffer.change(start, start + len(new), before[start:end]))
        return changes

    def _half(self, buffer: Buffer) -> list[Json]:
        """Insert a half of a surrogate pair at a wrong, or the right, place."""
        at = self._at(buffer)
        return [buffer.change(at, at, self.random.choice(("\ud83d", "\ude82")))]

    def _split(self, buffer: Buffer) -> list[Json]:
        """Split a surrogate pair, and perhaps join it again."""
        high = buffer.units.find("\ud83d", self._at(buffer))
        if high < 0:
            return self._type(buffer)
        changes = [buffer.change(high + 1, high + 1, "-")]
        if self.random.random() < 0.7:
            changes.append(buffer.change(high + 1, high + 2, ""))
        return changes

    def _several(self, buffer: Buffer) -> list[Json]:
        """Make several changes in one notification, like several cursors."""
        return [change for _ in range(self.random.randint(2, 8)) for change in self._type(buffer)]

    def _swap_line_ends(self, buffer: Buffer) -> list[Json]:
        at = buffer.units.find("\n", self._at(buffer))
        if at < 0:
            return self._type(buffer)
        start = at - 1 if buffer.units[at - 1 : at] == "\r" else at
        return [buffer.change(start, at + 1, self.random.choice(("\r", "\r\n", "\n", "\f\n")))]
