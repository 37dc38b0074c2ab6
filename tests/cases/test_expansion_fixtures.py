"""The fixtures of expanding, which the proof runs on Paddle: each is expanded as a whole, or refused."""

from __future__ import annotations

import pytest

from support.expansion_fixtures import EXPANSION_CASES, ExpansionCase, expansion


@pytest.mark.parametrize("case", EXPANSION_CASES, ids=lambda case: case.name)
def test_all_is_expanded_once_or_refused_with_its_reason(case: ExpansionCase) -> None:
    found = expansion(case.script)
    reasons = [f"{each.code} {each.reason}".strip() for each in found.refused]
    assert reasons == case.refused.splitlines()
    assert bool(found.edits) is case.is_expanded
    compile(found.result, "<expanded>", "exec", dont_inherit=True)
    assert not expansion(found.result).edits
