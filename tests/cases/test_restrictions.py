"""Every case of a restriction's fixture is a test: its findings, their verdicts, and the fixed text."""

from __future__ import annotations

from collections import Counter

import pytest

from support.finding_fixtures import FINDING_CASES, FindingCase, fixed, program_of, rewrite_case, shown
from trainshift.restrictions import RESTRICTIONS

ENOUGH = {"T": 12, "H": 3}
"""The smallest number of cases of each kind for a code, by its first letter."""


@pytest.mark.parametrize("case", FINDING_CASES, ids=lambda case: case.name)
def test_case_is_judged_as_it_says(case: FindingCase, update_fixtures: bool) -> None:
    findings = shown(program_of(case.script, case.others), case.code)
    after = fixed(case.script, case.others, case.code)
    if update_fixtures:
        rewrite_case(case, findings, after)
    else:
        assert findings == case.findings
        assert after == case.fixed


@pytest.mark.parametrize("case", [case for case in FINDING_CASES if case.fixed], ids=lambda case: case.name)
@pytest.mark.sampled
def test_what_was_fixed_parses_and_is_not_fixed_again(case: FindingCase) -> None:
    compile(case.fixed, "<fixed>", "exec", dont_inherit=True)
    assert fixed(case.fixed, case.others, case.code) == ""


@pytest.mark.parametrize("rule", RESTRICTIONS, ids=lambda rule: rule.code)
def test_every_restriction_has_enough_cases_of_each_kind(rule) -> None:  # type: ignore[no-untyped-def]
    kinds: Counter[str] = Counter({"ok": 0, "violated": 0})
    for case in FINDING_CASES:
        if case.code == rule.code:
            kinds.update(case.verdicts or {"ok"})
    assert min(kinds["ok"], kinds["violated"]) >= ENOUGH[rule.code[0]], kinds


@pytest.mark.every_rule
def test_headings_are_unique() -> None:
    names = [case.name for case in FINDING_CASES]
    assert [name for name, number in Counter(names).items() if number > 1] == []
