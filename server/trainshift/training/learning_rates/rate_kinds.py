"""Rate kinds: the kinds of an expression for a learning rate."""

from __future__ import annotations

from enum import Flag, auto

from trainshift.libraries import api
from trainshift.python.names.values import Function, Instance, UserInstance, Value


class RateKind(Flag):
    """The possible kinds of an expression: several at once, one for each case."""

    NONE = 0
    NOTHING = auto()  # None or zero
    NUMBER = auto()  # a rate that the script sets
    SOURCE = auto()  # an object that computes the rate
    CURRENT = auto()  # derived from the optimizer's current rate
    SCALED = auto()  # derived from ``hvd.size()``
    UNSEEN = auto()  # the result of an unknown function of the current rate
    BELOW = auto()  # derived from a value that is scaled further back
    FACTOR = auto()  # a plain number of ranks, which the script chooses to scale by


SETTLED = RateKind.CURRENT | RateKind.SCALED | RateKind.BELOW
RATES = RateKind.NUMBER | RateKind.SOURCE
WRITTEN = RATES | RateKind.NOTHING


def computes(value: Value) -> bool:
    """Return whether an object computes the rate, so that it cannot be multiplied by a factor."""
    if isinstance(value, Instance):
        schedule = api.is_subclass(value.cls, *api.SCHEDULE) or bool(api.rate_parameters(value.cls))
        return schedule or api.is_subclass(value.cls, *api.VARIABLE)
    return isinstance(value, Function | UserInstance)


def kind_of_values(values: frozenset[Value]) -> RateKind:
    """The possible kinds of an expression, from its possible objects."""
    computing = [value for value in values if computes(value)]
    kind = RateKind.SOURCE if computing else RateKind.NONE
    return kind if values and len(computing) == len(values) else kind | RateKind.NUMBER
