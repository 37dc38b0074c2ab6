"""Every form of expression at every place that a rewrite edits: the result parses and is equivalent."""

from __future__ import annotations

import ast
import re
from itertools import islice

import pytest

from support.forms import SLOTS, Slot
from support.standins import RANKS, World
from support.turns import Turns
from trainshift.core.choices import Choices
from trainshift.engine.conversion import Conversion, Status, convert
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import apply

QUICK = 2
"""The number of forms tried at each slot in the quick loop."""
# The data used here have no elements to divide.
_WHOLE = Choices(divide_data=False)


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: f"{slot.rule} {slot.name}")
def test_every_form_is_rewritten_and_does_the_same(slot: Slot, quick: bool, turns: Turns) -> None:
    forms = list(slot.forms())
    first = SLOTS.index(slot) % len(forms)
    legal = (each for each in (*forms[first:], *forms[:first]) if _is_python(slot, each[1]))
    for name, form in islice(legal, QUICK) if quick else turns.of(legal, 2):
        _check(slot, name, slot.text(form))


def _check(slot: Slot, name: str, text: str) -> None:
    conversion = convert(text, choices=_WHOLE)
    where = f"{slot.rule} {slot.name}, {name}:\n{text}\n--- {conversion.status.value}:\n"
    where += f"{conversion.reason}\n{conversion.text}"
    told = slot.told.get(name)
    notes = (conversion.applied, conversion.withheld, conversion.doubts, conversion.decisions)
    reasons = [conversion.reason, *(each.text for some in notes for each in some)]
    if told is None:
        assert conversion.status is Status.CONVERTED, where
        assert _additions(slot, conversion.text) > _additions(slot, text), where
    else:
        assert any(told in each for each in reasons), (where, reasons)
        assert not told or _additions(slot, conversion.text) == _additions(slot, text), where
    assert "internal error" not in conversion.reason, where
    assert not any("\n" in reason for reason in reasons), where
    if conversion.status is Status.CONVERTED:
        _check_text(text, conversion, where)
        if name in slot.doubted:
            assert conversion.doubts, where
        else:
            _check_meaning(slot, text, conversion.text, told is None, where)


def _additions(slot: Slot, text: str) -> int:
    """The number of times that a text has what a rule adds, in any of the ways to write it."""
    ways = [slot.adds] if isinstance(slot.adds, str) else slot.adds
    return sum(_joined(text).count(_joined(each)) for each in ways)


def _joined(text: str) -> str:
    """A text without white space, so that line breaks do not matter."""
    return "".join(text.split())


def _check_text(text: str, conversion: Conversion, where: str) -> None:
    """Check that comments stay, nothing changes outside the edits, and another conversion has nothing to
    do.
    """
    # Two comments may follow one line if their lines are joined.
    said, kept = (re.split(r" {2}(?=#)", "  ".join(comments_in(each))) for each in (text, conversion.text))
    assert said == kept, where
    assert conversion.plan is not None
    assert apply(text, conversion.plan.edits) == conversion.text, where
    again = convert(conversion.text, choices=_WHOLE)
    assert (again.status, again.text) == (Status.ALREADY_DISTRIBUTED, conversion.text), f"{where}\n{again}"


def _check_meaning(slot: Slot, before: str, after: str, is_rewritten: bool, where: str) -> None:
    """Check that a single rank behaves like the original, and the others as the rule intends."""
    original, alone = World().run(before), World().run(after)
    assert alone.notes == original.notes, where
    other = World(RANKS, 1).run(after)
    assert not other.trained_apart(), where
    assert (other.visible or ["gpu1"], other.environment) == (["gpu1"], {}), where
    if slot.watched is not None and is_rewritten:
        given = original.given(*slot.watched)
        assert given, where
        expected = [slot.elsewhere(each) for each in given] if slot.elsewhere is not None else []
        assert other.given(*slot.watched) == expected, where


def _is_python(slot: Slot, form: str) -> bool:
    """Return whether a form is allowed in the slot, and fills it completely."""
    try:
        compile(slot.text(form), "script.py", "exec")
        alone = "*" in form[:1] or ast.dump(ast.parse(slot.text(f"({form})")))
    except SyntaxError:
        return False
    return alone in (True, ast.dump(ast.parse(slot.text(form))))
