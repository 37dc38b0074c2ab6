"""The shape of a restriction: one condition that makes a rewrite safe, a pure function of the program."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.core.text.source import one_line

Findings: TypeAlias = Iterator[Finding]


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction: its code, its name in kebab-case, and what breaks it.

    The docstring of its module is its page, whose first sentence is its title.  `check` yields what
    it finds in a program; a script that keeps to the restriction gives nothing.
    """

    code: str
    name: str
    check: Callable[[Program], Findings]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"T[FL]\d\d", self.code) or not re.fullmatch(r"[a-z]+(-[a-z]+)*", self.name):
            raise ValueError(f"not a restriction: {self.code} {self.name}")

    @property
    def title(self) -> str:
        """What must hold, in one sentence: the first paragraph of its page."""
        return one_line(self.doc.partition("\n\n")[0])

    @property
    def doc(self) -> str:
        """The restriction's page: the docstring of its module, Markdown."""
        return (sys.modules[self.check.__module__].__doc__ or "").strip() + "\n"
