"""The shape of a rewrite rule: one kind of edit, a pure function of the program."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from trainshift.core.program import Program
from trainshift.python.source.edit import Change, Remark, Withheld
from trainshift.python.source.source import one_line

Proposals: TypeAlias = Iterator[Change | Withheld | Remark]


class Consequence(Enum):
    """The consequence of a finding for a change that relies on the restriction.

    NONE: the rule sees the very thing and copes, or withholds the change with a reason of its own.
    DOUBT: the change is offered, and says what it assumes.  WITHHOLD: it is not made; REFUSE: without
    it nothing else in the file may be rewritten either.
    """

    NONE = "handles it"
    DOUBT = "says so"
    WITHHOLD = "is withheld"
    REFUSE = "refuses the file"


@dataclass(frozen=True, slots=True)
class Guard:
    """A restriction that a rule relies on, and the consequence for a change if it does not hold."""

    code: str
    violated: Consequence = Consequence.NONE
    unknown: Consequence = Consequence.NONE


@dataclass(frozen=True, slots=True)
class Transform:
    """A rule: its code, its name in kebab-case, and its function.

    The docstring of its module is its page, whose first sentence is its title.  `propose` yields the
    changes of a program, each with the edits of one statement, what it withholds with the reason, and remarks
    on what it leaves alone.
    `guards` name the restrictions that it relies on.  One that `sets_up` gives a file what its other changes
    need, and is only of use with them.  One that is `harmless` does nothing to a program that does without;
    without one that is `essential` its ranks may diverge.
    `choice` is the choice by which a program does without the rule and is right anyway.
    A change of one that `is_sure` fixes the hazards at its place, which need not be tried.  One that `asks`
    changes what somebody may want otherwise: how fast, and how long a program trains.
    """

    code: str
    name: str
    propose: Callable[[Program], Proposals]
    guards: tuple[Guard, ...] = ()
    sets_up: bool = False
    harmless: bool = False
    essential: bool = False
    choice: str = ""
    is_sure: bool = False
    asks: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"HV\d\d", self.code) or not re.fullmatch(r"[a-z]+(-[a-z]+)*", self.name):
            raise ValueError(f"not a rule: {self.code} {self.name}")

    @property
    def title(self) -> str:
        """The rule in one sentence: the first paragraph of its page."""
        return one_line(self.doc.partition("\n\n")[0])

    @property
    def doc(self) -> str:
        """The rule's page: the docstring of its module, Markdown."""
        return (sys.modules[self.propose.__module__].__doc__ or "").strip() + "\n"
