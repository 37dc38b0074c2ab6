"""Kinds: unified kinds stay unified, even for values that refer to themselves."""

from __future__ import annotations

from trainshift.derivatives.reading.kinds import Kind


def test_a_container_may_hold_itself() -> None:
    """A node of a linked structure contains itself, and so does a list that a loop builds from itself."""
    kind = Kind("list")
    kind.element().unify(kind)
    other = Kind("tuple")
    other.unify(kind)
    assert kind.element() is kind.found() is other.found()
    assert other.words == {"list", "tuple"}
