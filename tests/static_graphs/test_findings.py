"""Every case of a static code's fixture is a test: what is found, its verdict, and what its fix makes."""

from __future__ import annotations

import pytest

from finding_fixtures import STATIC_CASES, STATIC_FILES, FindingCase, fixed, program_of, rewrite_case, shown
from trainshift.static_graphs.codes import STATIC_CODES, StaticCode


@pytest.mark.parametrize("case", STATIC_CASES, ids=lambda case: case.name)
def test_case_is_judged_as_it_says(case: FindingCase, update_fixtures: bool) -> None:
    findings = shown(program_of(case.script, case.others), case.code)
    after = fixed(case.script, case.others, case.code)
    if update_fixtures:
        rewrite_case(case, findings, after)
    else:
        assert findings == case.findings
        assert after == case.fixed


@pytest.mark.parametrize("case", [case for case in STATIC_CASES if case.fixed], ids=lambda case: case.name)
def test_what_was_fixed_parses_and_is_not_fixed_again(case: FindingCase) -> None:
    compile(case.fixed, "<fixed>", "exec", dont_inherit=True)
    assert fixed(case.fixed, case.others, case.code) == ""


@pytest.mark.parametrize("each", STATIC_CODES, ids=lambda each: each.code)
def test_every_code_has_a_case_of_what_is_wrong_and_of_what_is_right(each: StaticCode) -> None:
    kinds = {kind for case in STATIC_CASES if case.code == each.code for kind in case.verdicts or {"ok"}}
    assert {"ok", "violated"} <= kinds


def test_files_and_codes_have_one_name() -> None:
    names = {f"{each.code.lower()}_{each.name.replace('-', '_')}" for each in STATIC_CODES}
    assert {path.stem for path in STATIC_FILES} == names
