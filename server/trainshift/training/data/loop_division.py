"""Loop division: the division of one training loop's data, and the messages about it."""

from __future__ import annotations

import ast
from enum import Enum

from msgspec import Struct

from trainshift.python.syntax.chunk_syntax import Site, Statement
from trainshift.training.data.division_places import Form, Place
from trainshift.training.data.loop_iterables import Iteration


class How(Enum):
    """The way in which the data of a training loop are divided.

    DIVIDED: HV15 gives each rank a share.  BY_HAND: the script already does.  STEPS: the number of steps is
    divided (HV06), and so are the data if all ranks would begin with the same.  WHOLE: every rank reads all
    data.
    """

    DIVIDED = "divided"
    BY_HAND = "divided by hand"
    STEPS = "steps divided"
    WHOLE = "whole"


class LoopDivision(Struct, frozen=True, eq=False):
    """The division of one training loop's data, with its place; otherwise the reason why there is none.

    `agreeing` are the calls that draw an order before the division, whose seed must be the same on all ranks.
    With `is_alike`, all ranks would certainly begin with the same data.
    """

    iteration: Iteration
    how: How
    places: tuple[Place, ...] = ()
    agreeing: tuple[Site, ...] = ()
    reason: str = ""
    doubts: tuple[str, ...] = ()
    is_alike: bool = False

    @property
    def statement(self) -> Statement:
        """The `for`, or the statement of the `fit`."""
        return self.iteration.statement

    @property
    def site(self) -> Site | None:
        """The `fit`, if it is one."""
        return self.iteration.fit.site if self.iteration.fit is not None else None

    @property
    def data(self) -> ast.expr:
        """The iterable."""
        return self.iteration.at.node

    def said(self, data: str) -> str:
        """A message on the data that each rank sees, called `data`, and on the number of its steps."""
        if self.how is How.WHOLE:
            return f"every rank reads all of {data}: {self.reason}"
        if self.how is How.STEPS and self.reason:
            where = "and all ranks" if self.is_alike else "and perhaps all ranks"
            remedy = ", or shuffle it without a seed" if "; tell" in self.reason else ""
            remedy = remedy or "; shuffle it without a seed" * (";" not in self.reason)
            return (
                f"each rank takes 1/hvd.size() of the steps, {where} read the same part of {data}: "
                f"{self.reason}{remedy}"
            )
        if self.how is How.STEPS and {place.form for place in self.places} - {Form.STEPS, Form.COUNT}:
            return f"each rank takes 1/hvd.size() of the steps, through its own share of {data}"
        if self.how is How.STEPS:
            return f"each rank takes 1/hvd.size() of the steps, through {data} in an order of its own"
        if self.how is How.BY_HAND:
            return f"the script itself divides {data} among the ranks"
        if any(place.form is Form.COUNT for place in self.places):
            return f"each rank draws its own batches, and takes 1/hvd.size() of the steps of {data}"
        return f"each rank trains on its own 1/hvd.size() of {data}, and all take equally many steps"
