"""Examples: the cases of a fixture file as data, for the tests and for the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```([^\n`]+)\n(.*?)^```\n", re.M | re.S)
_VERDICT = re.compile(r"^\d+:\d+ \w+ (\w+) ", re.M)


@dataclass(frozen=True)
class Example:
    """One ``## heading`` of a fixture: its sentence, and its code blocks by info string."""

    heading: str
    prose: str
    blocks: Mapping[str, str]


def files_of(fixture: Path) -> list[Path]:
    """The files of a fixture: its own, and one a subject (`hv15_divide_data.arrays.md`)."""
    return [fixture, *sorted(fixture.parent.glob(f"{fixture.stem}.*.md"))]


def fixture_of(path: Path) -> str:
    """The name of the fixture that a file belongs to."""
    return path.name.partition(".")[0]


def read_examples(fixture: Path) -> list[Example]:
    """The examples of a fixture file, in order."""
    sections = re.split(r"^## ", fixture.read_text(encoding="utf-8"), flags=re.M)[1:]
    return [
        Example(
            section.partition("\n")[0],
            section.partition("\n")[2].partition("```")[0].strip(),
            dict(_BLOCK.findall(section)),
        )
        for section in sections
    ]


def verdicts(findings: str) -> set[str]:
    """The verdicts of a ```` ```findings ```` block."""
    return set(_VERDICT.findall(findings))
