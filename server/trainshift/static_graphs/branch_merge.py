"""Explain why two values cannot merge after a `cond`: their structure, None, dtype or rank differs."""

from __future__ import annotations

from trainshift.static_graphs.domain.abstract_values import NO_CONSTANT, NUMBER, AbstractValue, Tensor

_NO_RESULTS = {"str": "a string", "function": "a function", "layer": "a layer", "class": "a class"}


def difference(one: AbstractValue, other: AbstractValue) -> str:
    """Return the difference of two values that prevents a graph from having both; empty if none is known."""
    if one.unknown or other.unknown or one.is_nothing or other.is_nothing:
        return ""
    if one.is_none != other.is_none and "None" not in (one.python & other.python):
        known = other if one.is_none else one
        return "None or a value" if known.is_tensor or known.is_python else ""
    if one.items is not None and other.items is not None and one.is_python and other.is_python:
        if len(one.items) != len(other.items):
            return f"{_number(len(one.items))} or {_number(len(other.items))}"
        return next(filter(None, map(difference, one.items, other.items)), "")
    sequences = [each.among("tuple", "list") for each in (one, other)]
    if sequences[0] != sequences[1] and (one.is_tensor or other.is_tensor):
        return "a tensor or a tuple"
    are_tensors = one.is_tensor and other.is_tensor
    return _difference_of_tensors(one.tensor, other.tensor) if are_tensors else ""


def _difference_of_tensors(one: Tensor | None, other: Tensor | None) -> str:
    assert one is not None
    assert other is not None
    dtypes = {one.dtype, other.dtype}
    if len(dtypes) == 2 and not dtypes & {"", NUMBER}:
        return f"a tensor of {one.dtype} or of {other.dtype}"
    ranks = one.rank, other.rank
    return f"a tensor of rank {ranks[0]} or {ranks[1]}" if None not in ranks and ranks[0] != ranks[1] else ""


def _number(number: int) -> str:
    return "one value" if number == 1 else f"{number} values"


def mixture(one: AbstractValue, other: AbstractValue) -> str:
    """Return the difference of a name's values in two branches for which a graph has no type."""
    if one.unknown or other.unknown or one.is_nothing or other.is_nothing:
        return ""
    for value, another in ((one, other), (other, one)):
        for kind, said in _NO_RESULTS.items():
            constants = value.constant, another.constant
            is_same = NO_CONSTANT not in constants and constants[0] == constants[1]
            is_same = is_same or bool(value.things and value.things == another.things)
            if value.among(kind) and not (another.among(kind) and is_same):
                return said
    if one.is_python and other.is_python:
        if {frozenset(one.python), frozenset(other.python)} == {frozenset({"int"}), frozenset({"float"})}:
            return "an int or a float"
        return ""
    return difference(one, other) if not (one.is_none or other.is_none) else ""
