"""The shape of a rewrite rule: one kind of edit, a pure function of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Rule
from trainshift.python.source.edit import Change, Remark, Withheld

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


class Guard(Struct, frozen=True):
    """A restriction that a rule relies on, and the consequence for a change if it does not hold."""

    code: str
    violated: Consequence = Consequence.NONE
    unknown: Consequence = Consequence.NONE


def relying_on(*codes: str) -> tuple[Guard, ...]:
    """The guards of a rule that copes with violations of some restrictions itself."""
    return tuple(map(Guard, codes))


@dataclass(frozen=True, slots=True)
class Transform(Rule):
    """A rewrite rule; its module has the function `propose`.

    `propose` yields the changes of a program, each with the edits of one statement, what it withholds with
    the reason, and remarks on what it leaves alone.
    `guards` name the restrictions that it relies on.  One that `sets_up` gives a file what its other changes
    need, and is only of use with them.  One that is `harmless` does nothing to a program that does without;
    without one that is `essential` its ranks may diverge.
    `choice` is the choice by which a program does without the rule and is right anyway.
    A change of one that `is_sure` fixes the hazards at its place, which need not be tried.  One that `asks`
    changes what somebody may want otherwise: how fast, and how long a program trains.
    Of one that `meets`, some changes suit all programs whose ranks all reach the statement.
    """

    guards: tuple[Guard, ...] = ()
    sets_up: bool = False
    harmless: bool = False
    essential: bool = False
    choice: str = ""
    is_sure: bool = False
    asks: bool = False
    meets: bool = False

    def propose(self, program: Program) -> Proposals:
        """Yield the changes of a program, what is withheld, and the remarks."""
        proposed: Proposals = self.module.propose(program, Report(program, self.code))
        return proposed
