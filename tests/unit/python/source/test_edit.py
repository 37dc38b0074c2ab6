"""Edits, changes and their merge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainshift.python.source.edit import Change, Edit, Side, apply, merge
from trainshift.python.source.source import Span

TEXT = "0123456789"


def change(*edits: Edit, requires: tuple[Edit, ...] = ()) -> Change:
    return Change("HV01", "Do it", Span(0, 1), edits, requires)


def test_edits_of_all_changes_are_applied_in_text_order() -> None:
    plan = merge([change(Edit(8, 9, "b")), change(Edit(1, 2, "a"), Edit(4, 4, "+"))])
    assert apply(TEXT, plan.edits) == "0a23+4567b9"


def test_equal_prerequisites_collapse_and_equal_edits_do_not() -> None:
    need = Edit(0, 0, "import\n")
    plan = merge([change(Edit(5, 5, "x"), requires=(need,)), change(Edit(5, 5, "x"), requires=(need, need))])
    assert apply(TEXT, plan.edits) == "import\n01234xx56789"


def test_a_change_that_overlaps_is_dropped_whole() -> None:
    first, second = change(Edit(2, 5, "-")), change(Edit(0, 0, "^"), Edit(4, 6, "+"))
    plan = merge([first, second])
    assert plan.changes == (first,)
    assert plan.dropped == (second,)
    assert apply(TEXT, plan.edits) == "01-56789"


def test_an_insertion_inside_a_replacement_is_an_overlap_and_at_its_border_is_not() -> None:
    assert merge([change(Edit(2, 5, "-")), change(Edit(3, 3, "+"))]).dropped
    for at in (2, 5):
        assert not merge([change(Edit(2, 5, "-")), change(Edit(at, at, "+"))]).dropped


def test_insertions_at_one_place_are_ordered_by_what_they_belong_to() -> None:
    edits = [
        Edit(3, 3, "before;", Side.BEFORE),
        Edit(3, 3, "within;"),
        Edit(3, 3, "outer;", Side.AFTER, -1),
        Edit(3, 3, "inner;", Side.AFTER, -2),
    ]
    plan = merge([change(edit) for edit in edits])
    assert apply(TEXT, plan.edits) == "012within;inner;outer;before;3456789"


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 4), st.text("xyz", max_size=2)), max_size=8))
def test_what_is_kept_is_disjoint_whatever_comes(spans: list[tuple[int, int, str]]) -> None:
    changes = [change(Edit(start, min(10, start + size), text)) for start, size, text in spans]
    plan = merge(changes)
    assert len(plan.changes) + len(plan.dropped) == len(changes)
    end = 0
    for edit in plan.edits:
        assert edit.start >= end
        end = edit.end
    removed = sum(edit.end - edit.start for edit in plan.edits)
    added = sum(len(edit.text) for edit in plan.edits)
    assert len(apply(TEXT, plan.edits)) == len(TEXT) - removed + added
