"""A passage maps edits of a second step to edits of the first text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshift.python.source.edit import Change, Edit, apply, composed, merge
from trainshift.python.source.offset_map import OffsetMap
from trainshift.python.source.source import Span

TEXT = "abcdefghij"
TAKEN = OffsetMap((Edit(2, 4, ""), Edit(6, 8, "XYZ")))  # ab ef XYZ ij


@st.composite
def steps(draw: st.DrawFn) -> tuple[list[Edit], list[Edit]]:
    """Edits of a text that each replace something, and edits of the result."""
    first = draw(_edits(len(TEXT), least=1))
    return first, draw(_edits(len(apply(TEXT, first)), least=0))


@st.composite
def _edits(draw: st.DrawFn, size: int, least: int) -> list[Edit]:
    found: list[Edit] = []
    at = 0
    while at + least <= size and draw(st.booleans()):
        start = draw(st.integers(at, size - least))
        end = draw(st.integers(start + least, size))
        found.append(Edit(start, end, draw(st.sampled_from(["", "+", "<>"]))))
        at = end + 1
    return found


@st.composite
def one_after_the_other(draw: st.DrawFn) -> tuple[list[Edit], list[Edit]]:
    """Edits of a text, including insertions, and edits of the result."""
    first = draw(_edits(len(TEXT), least=0))
    return first, draw(_edits(len(apply(TEXT, first)), least=0))


@given(one_after_the_other())
def test_edits_composed_do_what_they_do_one_after_the_other(both: tuple[list[Edit], list[Edit]]) -> None:
    first, second = both
    edits = composed(first, second, len(TEXT))
    assert all(one.end <= other.start for one, other in pairwise(edits))
    assert apply(TEXT, edits) == apply(apply(TEXT, first), second)
    assert second or list(edits) == first


@given(steps())
def test_both_steps_at_once_are_one_after_the_other(both: tuple[list[Edit], list[Edit]]) -> None:
    first, second = both
    passage = OffsetMap(first)
    moved = [passage.edits(each) for each in second]
    told = [each for each, edits in zip(second, moved, strict=True) if edits is not None]
    changes = [
        Change("HV01", "", Span(0, 0), edits, tuple(first)) for edits in moved if edits is not None
    ] or [Change("HV01", "", Span(0, 0), (), tuple(first))]
    plan = merge(changes)
    assert not plan.dropped
    assert apply(TEXT, plan.edits) == apply(apply(TEXT, first), told)


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (Edit(1, 3, "-"), (Edit(1, 2, "-"), Edit(4, 5, ""))),  # over the deleted text
        (Edit(2, 2, "-"), (Edit(4, 4, "-"),)),
        (Edit(4, 4, "-"), (Edit(6, 6, "-"),)),  # before the inserted text
        (Edit(7, 7, "-"), (Edit(8, 8, "-"),)),  # after it
        (Edit(5, 6, "-"), None),  # inside it
    ],
)
def test_an_edit_is_told_of_the_text_before(edit: Edit, wanted: tuple[Edit, ...] | None) -> None:
    assert TAKEN.edits(edit) == wanted


def test_a_place_is_found_in_both_directions() -> None:
    assert [TAKEN.forward(at) for at in (0, 2, 3, 4, 6, 7, 8)] == [0, 2, 2, 2, 4, 4, 7]
    assert TAKEN.back(Span(2, 4)) == Span(4, 6)
    assert TAKEN.back(Span(0, 9)) == Span(0, 10)
    assert TAKEN.back(Span(2, 2)) == Span(4, 4)
