"""Edits, changes and their merge: the rules of disjointness and atomicity live here only.

Every edit is a span of the one baseline text and its replacement, so a change to one statement and the change
to a whole file consist of the same objects.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum

from msgspec import Struct
from msgspec.structs import replace

from trainshift.python.source.source import Span


class Side(IntEnum):
    """The neighbour that an insertion belongs to, which decides the order of insertions at one offset.

    Text inside a line, which may be the end of a statement, comes first; then lines that follow the
    statement, those of deeper blocks before those of outer ones; then lines that precede one.
    """

    WITHIN = 0
    AFTER = 1
    BEFORE = 2


class Edit(Struct, frozen=True):
    """Replace the code points `start`..`end` of the baseline by `text` (an insertion if equal).

    Insertions at one place are in the order of `rank`, then of `nest`: frames around expressions that begin
    or end together enclose each other as these do.
    """

    start: int
    end: int
    text: str
    side: Side = Side.WITHIN
    rank: int = 0
    nest: int = 0

    def moved(self, distance: int) -> Edit:
        """The same edit `distance` code points further on."""
        nest = self.nest and self.nest - distance
        return replace(self, start=self.start + distance, end=self.end + distance, nest=nest)

    @property
    def _key(self) -> tuple[int, int, int, int, int]:
        """Text order; an insertion sorts before a replacement that starts at the same offset."""
        return (self.start, self.end, self.side, self.rank, self.nest)


class Suits(Enum):
    """The programs that a change of a shared statement suits: only the ONE converted, or more.

    ALL: it harms no program. MEETING: it suits programs whose ranks all reach the statement, since they
    communicate there.
    """

    ONE = "one"
    MEETING = "meeting"
    ALL = "all"


class Change(Struct, frozen=True):
    """One rule applied to one statement: kept or dropped as a whole.

    `target` is the statement's span.  `requires` are the edits that this change shares with others (the
    Horovod import, a flag, a line split); equal ones collapse in a merge.  `doubts` are assumptions that the
    script does not confirm, `causes` the codes of the restrictions that they come from, and `because` where
    these were found; `decisions` are choices that the user may want to change. With `optional`, all other
    changes are valid without it.  `suits` are the programs running the statement to which the change does no
    harm.  `former` is the statement's span in the user's text, if the rules read another one.
    """

    rule: str
    title: str
    target: Span
    edits: tuple[Edit, ...]
    requires: tuple[Edit, ...] = ()
    doubts: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    optional: bool = False
    suits: Suits = Suits.ONE
    former: Span | None = None
    causes: tuple[str, ...] = ()
    because: Span | None = None


class Withheld(Struct, frozen=True):
    """A change that was not made.

    `causes` are the codes of the restrictions that it is withheld for, if it names any.  With `essential`,
    the ranks would diverge without it, so that nothing else in the file may be rewritten either.
    """

    rule: str
    target: Span
    reason: str
    essential: bool = False
    causes: tuple[str, ...] = ()


class Remark(Struct, frozen=True):
    """Code that a rule leaves alone on purpose, with the consequence.

    With `is_doubt`, the ranks may diverge or wait for each other because of it.
    """

    rule: str
    target: Span
    text: str
    is_doubt: bool = False


class Plan(Struct, frozen=True):
    """The result of a merge: disjoint edits in text order, and their changes."""

    edits: tuple[Edit, ...]
    changes: tuple[Change, ...]
    dropped: tuple[Change, ...]


def innermost(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return the edits of a frame so that they enclose an expression before all others at its ends do.

    A rate that is multiplied where rank 0 draws it becomes ``broadcast(draw()) * size``.
    """
    *starts, end = edits
    return (*(replace(edit, rank=2) for edit in starts), replace(end, rank=-2))


def merge(changes: Iterable[Change]) -> Plan:
    """Combine changes to one baseline; a change that overlaps an earlier one is dropped whole."""
    placed: list[Edit] = []
    shared: set[Edit] = set()
    kept: list[Change] = []
    dropped: list[Change] = []
    for change in changes:
        fresh = [edit for edit in dict.fromkeys(change.requires) if edit not in shared]
        if _place(placed, [*change.edits, *fresh]):
            shared.update(fresh)
            kept.append(change)
        else:
            dropped.append(change)
    return Plan(tuple(placed), tuple(kept), tuple(dropped))


def _place(placed: list[Edit], edits: Sequence[Edit]) -> bool:
    """Insert `edits` into the sorted disjoint list `placed`, all of them or none."""
    done: list[Edit] = []
    for edit in edits:
        at = bisect_right(placed, edit._key, key=lambda other: other._key)
        before = placed[at - 1] if at else None
        after = placed[at] if at < len(placed) else None
        if (before and before.end > edit.start) or (after and after.start < edit.end):
            for undone in done:
                placed.remove(undone)
            return False
        placed.insert(at, edit)
        done.append(edit)
    return True


def composed(first: Sequence[Edit], second: Sequence[Edit], size: int) -> tuple[Edit, ...]:
    """One list of edits with the effect of two, one after the other, on a text of `size` code points.

    Both are disjoint and in text order.  Edits that the second list does not touch are unchanged.
    """
    done: list[Edit] = []
    group: list[Edit | str] = []
    before = 0
    for piece in (*_pieces(first, second, size), Span(size, size)):
        if not isinstance(piece, Span):
            group.append(piece)
            continue
        kept = [each for each in group if isinstance(each, Edit)]
        if len(kept) == len(group) and sum(each.end - each.start for each in kept) == piece.start - before:
            done += kept
        else:
            text = "".join(each.text if isinstance(each, Edit) else each for each in group)
            side = group[0].side if group and isinstance(group[0], Edit) else Side.WITHIN
            if text or before < piece.start:
                done.append(Edit(before, piece.start, text, side))
        group, before = [], piece.end
    return tuple(done)


def _pieces(first: Sequence[Edit], second: Sequence[Edit], size: int) -> Iterator[Span | Edit | str]:
    """Yield the pieces of the text after two lists of edits: spans of the first text, edits, other text."""
    placed: list[tuple[int, int, Span | Edit | str]] = [(each.start, 1, each.text) for each in second]
    ends = [each.end for each in second]
    for start, end, source in _segments(first, size):
        at = start
        near = second[bisect_left(ends, start) :]
        if start == end:
            if not (near and near[0].start < start < near[0].end):
                placed.append((start, 0, source))
            continue
        for each in near:
            if each.start > end:
                break
            if each.start > at:
                placed.append((at, 2, _part(source, start, at, min(each.start, end))))
            at = max(at, min(each.end, end))
        if end > at:
            placed.append((at, 2, _part(source, start, at, end)))
    placed.sort(key=lambda each: each[:2])
    yield from (piece for _, _, piece in placed)


def _segments(edits: Sequence[Edit], size: int) -> Iterator[tuple[int, int, Span | Edit]]:
    """Yield the pieces of the text after edits, in text order: the bounds of each, and its origin."""
    old = new = 0
    for edit in edits:
        if edit.start > old:
            yield new, new + edit.start - old, Span(old, edit.start)
        new += edit.start - old
        yield new, new + len(edit.text), edit
        old, new = edit.end, new + len(edit.text)
    if size > old:
        yield new, new + size - old, Span(old, size)


def _part(source: Span | Edit, start: int, first: int, last: int) -> Span | Edit | str:
    """The part `first`..`last` of a piece that begins at `start` in the text after edits."""
    if isinstance(source, Span):
        return Span(source.start + first - start, source.start + last - start)
    whole = first == start and last - first == len(source.text)
    return source if whole else source.text[first - start : last - start]


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after disjoint edits in text order."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)
