"""Refusals that no fixture shows."""

from __future__ import annotations

from trainshift.derivatives import Derived, Refused, derive

SET_AGAIN = """\
def scaled(x, zs):
    for e in zs:
        if e > x:
            e = sum(zs)
            return e * x
    return x
"""


def test_a_loop_must_not_set_what_it_goes_through() -> None:
    found = derive(SET_AGAIN, "scaled")
    assert isinstance(found, Refused)
    (refusal,) = found.refusals
    assert (refusal.line, refusal.message) == (4, "the loop's e is set inside the loop: use another name")
    assert isinstance(derive(SET_AGAIN, "scaled", "forward"), Derived)
    assert isinstance(
        derive(SET_AGAIN.replace("e = sum(zs)\n            return e", "return e"), "scaled"), Derived
    )
