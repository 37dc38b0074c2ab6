"""Cells: the Python cells of a notebook as one program, and each edit of the program as one cell's.

Syntax of notebooks (magics, shell lines, help requests) is replaced in the program by code of the same
length, so that every offset stays the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trainshift.python.lazy import cached_property
from trainshift.python.source.edit import Edit, Side, apply
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunks import ParseFailure, parse

B = TypeVar("B", bound="Body")

# Magics whose cells, or lines, are Python anyway.
_PYTHON_CELLS = frozenset({"capture", "debug", "memit", "prun", "time", "timeit", "wandb"})
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_TIMED = r"%time[ \t]+(?=[^\s-])"
_ASSIGNED = r"[ \t]*[\w.,* \t()\[\]]+=[ \t]*"
# Commands that a notebook takes without a sign before them; others could as well be mistakes.
_BARE = r"(?:pip|conda|mamba|cd|ls|cp|mv|rm|mkdir)[ \t]+[\w./~\"'-][^\r\n]*"

_NEWLINE_AT_END = re.compile(r"(\r\n|\n|\r)\Z")
_ANY_LINE = re.compile(r"[^\r\n]+")
_TIMED_LINE = re.compile(rf"(?m)^([ \t]*)({_TIMED})")
_TIMED_VALUE = re.compile(rf"(?m)^({_ASSIGNED})({_TIMED})")
# A shell command goes on where a line ends with a backslash.
_COMMAND = r"(?:[^\r\n]*\\\r?\n)*[^\r\n]*"
_LINE = re.compile(
    rf"(?m)^(?:({_ASSIGNED})([%!]{_COMMAND})|([ \t]*)([%!?]{_COMMAND}|[\w.]+\?{{1,2}}[ \t]*|{_BARE}))$"
)


class Spot(NamedTuple):
    """A 1-based line and column; in a notebook, relative to a cell, which is also counted from 1."""

    line: int
    column: int
    cell: int | None = None


class Body(Protocol):
    """The text of a program with an interface to edit it: a script, or the cells of a notebook."""

    @property
    def text(self) -> str:
        """The program."""

    @property
    def starts(self) -> Sequence[int]:
        """The offsets at which its cells begin; none for a script."""

    def edited(self: B, edits: Iterable[Edit]) -> B:
        """A copy with disjoint edits of the program applied, which are in text order."""


class Plain(Struct, frozen=True):
    """The text of a script."""

    text: str

    @property
    def starts(self) -> Sequence[int]:
        """The offsets of cells: a script has none."""
        return ()

    def edited(self, edits: Iterable[Edit]) -> Plain:
        """The script after edits."""
        return replace(self, text=apply(self.text, edits))


class Cells(Struct, frozen=True, dict=True):
    """The texts of Python cells, in order; `numbers` are their numbers among all cells of the notebook, from
    1.
    """

    texts: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    @cached_property
    def text(self) -> str:
        """The program."""
        return "\n".join(map(covered, self.texts))

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each cell in the program."""
        starts, at = [], 0
        for text in self.texts:
            starts.append(at)
            at += len(text) + 1
        return starts

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The cells with their lines."""
        return tuple(map(Source, self.texts))

    @cached_property
    def source(self) -> Source:
        """The program with its lines."""
        return Source(self.text)

    def at(self, offset: int) -> tuple[int, int]:
        """The index of the cell at an offset of the program (its end included), and the offset in it."""
        index = max(bisect_right(self.starts, offset) - 1, 0)
        return index, min(offset - self.starts[index], len(self.texts[index]))

    def spot(self, line: int, column: int) -> Spot:
        """The cell, and the place in it, of a 1-based place in the program."""
        if not self.texts:
            return Spot(line, column)
        starts = self.source.line_starts
        index, offset = self.at(min(starts[min(line, len(starts)) - 1] + column - 1, len(self.text)))
        return Spot(*self.sources[index].position(offset), self.numbers[index])

    def line(self, cell: int, line: int) -> int:
        """The 1-based line of the program for a line of a cell; both must exist."""
        return self.source.line_of(self.starts[self.numbers.index(cell)]) + line

    def home(self, edit: Edit) -> tuple[int, Edit]:
        """The index of the cell of an edit, and the edit in its text, which ends at the end of the cell."""
        index, start = self.at(edit.start)
        length = len(self.texts[index])
        text = edit.text
        if edit.side is Side.AFTER and start == length and index + 1 < len(self.texts):
            text = _NEWLINE_AT_END.sub("", text)  # It would separate the lines from those of the next cell.
        return index, replace(edit, start=start, end=min(start + edit.end - edit.start, length), text=text)

    def edited(self, edits: Iterable[Edit]) -> Cells:
        """The cells after edits of the program."""
        inside: dict[int, list[Edit]] = {}
        for index, edit in map(self.home, edits):
            inside.setdefault(index, []).append(edit)
        texts = [apply(text, inside.get(index, ())) for index, text in enumerate(self.texts)]
        return replace(self, texts=tuple(texts))

    def spoilt(self, edits: Iterable[Edit]) -> Edit | None:
        """The first of the edits that would change a magic."""
        covers = list(map(covered, self.texts))
        for edit in edits:
            index, inside = self.home(edit)
            where = slice(inside.start, inside.end)
            if self.texts[index][where] != covers[index][where]:
                return edit
        return None

    def dependent(self) -> int | None:
        """The offset of the first cell that is valid Python only together with the text before it.

        A notebook would not run it, or would run an indented cell as if it were not indented.
        """
        starts = zip(self.starts, self.texts, strict=True)
        return next((start for start, text in starts if not _is_python(covered(text))), None)

    def as_script(self) -> str:
        """A script equivalent to the cells, one after another, without their magics."""
        texts = (_read(text, _COMMENTED).strip("\r\n") for text in self.texts)
        return "".join(f"{text}\n\n" for text in texts if text.strip())[:-1]


class _Manner(Struct, frozen=True):
    """The replacements for magics and shell lines; each is a function of the line and the text before it.

    `cell`: a line of a cell in another language; `timed`: the magic before a statement or a value that it
    measures; `line`: a line; `assigned`: the value assigned to a name.
    """

    cell: Callable[[str], str]
    timed: Callable[[str, str], str]
    line: Callable[[str, str], str]
    assigned: Callable[[str, str], str]


def _commented(lead: str, rest: str) -> str:
    """The line as a comment that leaves no block empty."""
    indentation = lead[: len(lead) - len(lead.lstrip())]
    return f"{indentation}{'pass  ' if indentation else ''}# {lead[len(indentation) :]}{rest}"


def _zero(lead: str, rest: str) -> str:
    """A number, so that no block and no assignment is empty; elsewhere nothing."""
    return lead + ("0" if lead else "").ljust(len(rest))


_COVERED = _Manner(
    cell=lambda line: " " * len(line),
    timed=lambda lead, magic: lead + ("" if lead.strip() else "0;").ljust(len(magic)),
    line=_zero,
    assigned=_zero,
)
_COMMENTED = _Manner(
    cell=lambda line: f"# {line}",
    timed=lambda lead, magic: lead,
    line=_commented,
    assigned=_commented,
)


def covered(cell: str) -> str:
    """A cell's code with magics and shell lines replaced by text of the same length."""
    return _read(cell, _COVERED)


def _read(cell: str, manner: _Manner) -> str:
    """The text of a cell with its magics and shell lines replaced."""
    if _is_python(cell):
        return cell
    magic = _CELL_MAGIC.match(cell)
    if magic and magic[1] not in _PYTHON_CELLS:
        return _ANY_LINE.sub(lambda match: manner.cell(match[0]), cell)
    if "%time" in cell and _is_python(_lines(_timed(cell, _COVERED), _COVERED)):
        cell = _timed(cell, manner)
    return _lines(cell, manner)


def _timed(cell: str, manner: _Manner) -> str:
    for pattern in (_TIMED_LINE, _TIMED_VALUE):
        cell = pattern.sub(lambda match: manner.timed(match[1], match[2]), cell)
    return cell


def _lines(cell: str, manner: _Manner) -> str:
    def put(match: re.Match[str]) -> str:
        assigned = match[1] is not None
        first, end, others = (match[2] if assigned else match[4]).partition("\n")
        carriage = "\r" if first.endswith("\r") else ""
        first = first.removesuffix("\r")
        put_first = manner.assigned(match[1], first) if assigned else manner.line(match[3], first)
        return f"{put_first}{carriage}{end}{_ANY_LINE.sub(lambda line: manner.cell(line[0]), others)}"

    return _LINE.sub(put, cell)


def _is_python(cell: str) -> bool:
    return not isinstance(parse(cell), ParseFailure)
