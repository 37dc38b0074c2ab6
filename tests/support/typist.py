"""The edits that people make to scripts while they type: random, and the same for the same seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

_WORD = re.compile(r"[A-Za-z_]\w*")
_LINES = (
    "import tensorflow as tf",
    "from tensorflow import keras as k",
    "import tensorflow.keras.optimizers as opts",
    "tf = None",
    "adam = tf.keras.optimizers.Adam",
    "optimizer = tf.keras.optimizers.Adam(1e-3)",
    "optimizer2 = optimizer",
    "dataset = tf.data.Dataset.range(10)",
    "if flag:",
    "    optimizer = tf.keras.optimizers.SGD(0.1)",
    "    print(model.pop())",
    "print(next(iterator))",
    "# trainshift: ignore[TF03]",
    "x = 1  # trainshift: ignore",
    "",
    "é = '🚂\u2028'",
)
_SNIPPETS = ("(", ")", '"', "'", "\n", "    ", "#", ".", "tf.", "x", "=", ":", "é", "🚂", "\r\n", "\f", "\\")


class Typist:
    """Somebody who edits a text; `versions` yields the text after every keystroke."""

    def __init__(self, text: str, seed: int) -> None:
        self.text = text
        self._random = Random(seed)
        self._past: list[str] = []

    def versions(self, number: int) -> Iterator[str]:
        """Yield versions of the text, one after the other."""
        left = number
        while left:
            for text in self._deed():
                self._past.append(self.text)
                self.text = text
                yield text
                left -= 1
                if not left:
                    return

    def _deed(self) -> Iterator[str]:
        deeds = (
            self._rename,
            self._rename_here,
            self._delete_lines,
            self._insert_line,
            self._move_lines,
            self._type,
            self._retype,
            self._change_import,
            self._undo,
            self._garble,
        )
        yield from self._random.choice(deeds)()

    def _lines(self) -> list[str]:
        return self.text.splitlines(keepends=True) or [""]

    def _rename(self) -> Iterator[str]:
        """A name gets another one everywhere."""
        words = sorted(set(_WORD.findall(self.text)))
        if words:
            word = self._random.choice(words)
            yield re.sub(rf"\b{word}\b", f"{word}_x", self.text)

    def _rename_here(self) -> Iterator[str]:
        """A name gets another one in one place."""
        places = list(_WORD.finditer(self.text))
        if places:
            place = self._random.choice(places)
            other = self._random.choice(places)[0]
            yield self.text[: place.start()] + other + self.text[place.end() :]

    def _delete_lines(self) -> Iterator[str]:
        lines = self._lines()
        first = self._random.randrange(len(lines))
        yield "".join(lines[:first] + lines[first + self._random.choice((1, 1, 2, 5)) :])

    def _insert_line(self) -> Iterator[str]:
        lines = self._lines()
        at = self._random.randrange(len(lines) + 1)
        line = self._random.choice((*_LINES, self._random.choice(lines).rstrip("\r\n")))
        yield "".join([*lines[:at], f"{line}\n", *lines[at:]])

    def _move_lines(self) -> Iterator[str]:
        lines = self._lines()
        first = self._random.randrange(len(lines))
        moved = lines[first : first + self._random.choice((1, 2, 4))]
        del lines[first : first + len(moved)]
        at = self._random.randrange(len(lines) + 1)
        yield "".join([*lines[:at], *moved, *lines[at:]])

    def _type(self) -> Iterator[str]:
        """A line is typed, character by character."""
        lines = self._lines()
        at = len("".join(lines[: self._random.randrange(len(lines) + 1)]))
        typed = self._random.choice(_LINES) + "\n"
        base = self.text
        for size in range(1, len(typed) + 1):
            yield base[:at] + typed[:size] + base[at:]

    def _retype(self) -> Iterator[str]:
        """A word is taken back and typed anew."""
        places = list(_WORD.finditer(self.text))
        if places:
            place = self._random.choice(places)
            before, after = self.text[: place.start()], self.text[place.end() :]
            for size in (*range(len(place[0]) - 1, -1, -1), *range(1, len(place[0]) + 1)):
                yield before + place[0][:size] + after

    def _change_import(self) -> Iterator[str]:
        places = list(re.finditer(r"(?m)^[ \t]*(?:from|import)\b.*$", self.text))
        if places:
            place = self._random.choice(places)
            yield self.text[: place.start()] + self._random.choice(_LINES[:3]) + self.text[place.end() :]

    def _undo(self) -> Iterator[str]:
        for _ in range(self._random.choice((1, 3, 20))):
            if not self._past:
                return
            text = self._past[-1]
            yield text
            del self._past[-2:]  # The undone edit, and the undo itself.

    def _garble(self) -> Iterator[str]:
        at = self._random.randint(0, len(self.text))
        snippet = self._random.choice(_SNIPPETS)
        yield self.text[:at] + snippet + self.text[at + self._random.choice((0, 0, 1)) :]
