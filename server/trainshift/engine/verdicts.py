"""Verdicts: the diagnostics of files and their evidence, kept for a later run.

A verdict is valid as long as all of its observations have the same results.  Observations are rows of one
table, because files of a project share most of them.  Loaded data are never trusted: a malformed table counts
as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from trainshift.engine.checking import CheckReport
from trainshift.engine.evidence import TEXT, Noted, Observation, digest
from trainshift.engine.packing import field_names, is_record, packed, unpacked
from trainshift.engine.workspace import ParsedFiles
from trainshift.python.flow.traversal import reachable

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
"""An observation and what it came to, as texts; or the numbers of earlier rows, all of which have to hold."""

_FORMAT = 2


class Verdict(Struct, frozen=True):
    """The diagnostics of a file, and the absolute paths of the start files of its other programs."""

    report: CheckReport
    programs: tuple[str, ...] = ()


class Entry(Struct, frozen=True):
    """A packed verdict, its settings `under`, its evidence, and the day of its last use.

    `demand` are the required versions, if the check needed them.
    """

    under: str
    rows: tuple[int, ...]
    demand: str | None
    packed: Any
    day: int


class Verdicts:
    """Verdicts by the absolute paths of their files, and the table of their observations."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._numbers: dict[Row, int] = {}
        self.entries: dict[str, Entry] = {}

    def add(
        self,
        path: str,
        under: str,
        noted: Noted,
        files: ParsedFiles,
        demand: str | None,
        found: Verdict,
        day: int,
    ) -> None:
        """Keep the verdict on a file, with the observations of `files` behind it."""
        rows = self._rows_of(noted, files, {})
        self.entries[path] = Entry(under, rows, demand, packed(found), day)

    def _rows_of(self, noted: Noted, files: ParsedFiles, known: dict[Hashable, int]) -> tuple[int, ...]:
        own = [self._number((*asked, files.observe(asked))) for asked in noted.observations]
        for question, others in noted.once.items():
            if question not in known:
                known[question] = self._number(self._rows_of(others, files, known))
            own.append(known[question])
        return tuple(own)

    def _number(self, row: Row) -> int:
        number = self._numbers.get(row)
        if number is None:
            number = self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return number

    def take(self, other: Verdicts, paths: Iterable[str] | None = None) -> None:
        """Add the verdicts of another table: those of some paths, if any are given."""
        moved: dict[int, int] = {}

        def number(of: int) -> int:
            if of not in moved:
                row = other._rows[of]
                moved[of] = self._number(row if _is_observation(row) else tuple(map(number, row)))
            return moved[of]

        for path in other.entries if paths is None else paths:
            entry = other.entries[path]
            rows = tuple(map(number, entry.rows))
            self.entries[path] = Entry(entry.under, rows, entry.demand, entry.packed, entry.day)

    def texts_behind(self, path: str) -> frozenset[str]:
        """The paths of the files whose texts are evidence for the verdict on a file."""
        rows = reachable(
            (self._rows[number] for number in self.entries[path].rows),
            lambda row: () if _is_observation(row) else map(self._rows.__getitem__, row),
        )
        return frozenset(row[1] for row in rows if _is_observation(row) and row[0] == TEXT)

    def as_json(self) -> dict[str, Any]:
        """The table in JSON form."""
        entries = {path: packed(each) for path, each in self.entries.items()}
        return {"format": _FORMAT, "rows": self._rows, "entries": entries}

    @classmethod
    def from_json(cls, data: Any) -> Verdicts:
        """Read the table from JSON data; raises ValueError if they do not fit."""
        found = cls()
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise ValueError("it has another format")
        rows, entries = data.get("rows"), data.get("entries")
        if not isinstance(rows, list) or not isinstance(entries, dict):
            raise ValueError("it has no rows or entries")
        for row in rows:
            if not isinstance(row, list) or not (_is_observation(row) or _leads_back(row, len(found._rows))):
                raise ValueError(f"{row!r} is no row")
            found._rows.append(tuple(row))
        found._numbers = {row: number for number, row in enumerate(found._rows)}
        for path, each in entries.items():
            under, numbers, demand, body, day = each
            if not _leads_back(numbers, len(rows)):
                raise ValueError(f"{path} rests on rows that are not there")
            found.entries[path] = Entry(str(under), tuple(numbers), demand, body, int(day))
        return found


def _is_observation(row: Row | list[Any]) -> bool:
    return len(row) == len(Observation._fields) + 1 and all(isinstance(each, str) for each in row)


def _leads_back(numbers: Any, end: int) -> bool:
    return all(type(each) is int and 0 <= each < end for each in numbers)


class Holding:
    """The `verdicts` that are still valid for the current `files`; each observation is made once."""

    def __init__(self, verdicts: Verdicts, files: ParsedFiles) -> None:
        self.verdicts = verdicts
        self._files = files
        self._turns = files.turns
        self._known: dict[int, bool] = {}

    def of(self, path: str, under: str, demanded: Callable[[], str]) -> Verdict | None:
        """The verdict on the file at `path`, if it has the same settings `under` and no evidence changed."""
        entry = self.verdicts.entries.get(path)
        if entry is None or entry.under != under:
            return None
        if self._files.turns != self._turns:
            self._known, self._turns = {}, self._files.turns
        if not all(map(self._holds, entry.rows)) or entry.demand not in (None, demanded()):
            return None
        try:
            return unpacked(Verdict, entry.packed)
        except (ValueError, TypeError):
            return None

    def _holds(self, number: int) -> bool:
        known = self._known.get(number)
        if known is None:
            row = self.verdicts._rows[number]
            if _is_observation(row):
                *asked, answer = row
                try:
                    known = self._files.observe(Observation(*asked)) == answer
                except KeyError:
                    known = False
            else:
                known = all(map(self._holds, row))
            self._known[number] = known
        return known


def fingerprint(value: object) -> str:
    """A short key for a settings value, the same in every process."""
    return digest(_spelled(value))


def _spelled(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_record(value):
        own = [(each, getattr(value, each)) for each in field_names(type(value))]
        return f"{type(value).__name__}({_spelled(tuple(own))})"
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{_spelled(key)}:{_spelled(each)}' for key, each in value.items()))}}}"
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(map(_spelled, value)))}}}"
    if isinstance(value, tuple | list):
        return f"({','.join(map(_spelled, value))})"
    return repr(value)
