"""Invariants of findings and fixes on every fixture, and on mutated and broken versions of each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.finding_fixtures import FINDING_CASES, FindingCase, program_of
from support.fixtures import SCRIPTS, TRANSFORM_CASES
from support.lossless import comments
from support.mutations import PAIRS
from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.engine.checking import check
from trainshift.engine.conversion import Status, convert
from trainshift.engine.findings import find
from trainshift.engine.fixing import fix
from trainshift.engine.settings import HAZARD_CODES, RESTRICTION_CODES, Settings, Severity

TEXTS = {folder.name: (folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS}
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in TEXTS]
TEXTS |= {case.name: case.text for case in TRANSFORM_CASES}


@pytest.mark.parametrize("name", [*LONG, *(case.name for case in TRANSFORM_CASES)])
@pytest.mark.sampled
def test_a_rewrite_breaks_no_restriction_anew(name: str) -> None:
    conversion = convert(TEXTS[name])
    if conversion.status is Status.CONVERTED:
        before, after = _violations(TEXTS[name]), _violations(conversion.text)
        assert after <= before


@pytest.mark.parametrize("case", FINDING_CASES, ids=lambda case: case.name)
@pytest.mark.sampled
def test_layout_does_not_change_the_verdict(case: FindingCase, quick: bool) -> None:
    judged = _judged(program_of(case.script, case.others), case)
    at = len(case.name) % len(PAIRS)
    for mutate in PAIRS[at : at + 1] if quick else PAIRS:
        text = mutate(case.script)
        program = program_of(text, case.others)
        assert _judged(program, case) == judged, mutate.__name__
        fixed = fix(text, Settings(select=(case.code,)), least=Severity.HINT)
        assert not any(each.is_error_of_ours for each in fixed.report.diagnostics), mutate.__name__
        assert comments(text) <= comments(fixed.text), mutate.__name__
        if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
            assert "\n" not in fixed.text.replace("\r\n", ""), mutate.__name__


@settings(derandomize=True)
@given(st.data())
def test_a_broken_script_is_checked_without_a_defect(data: st.DataObject) -> None:
    """A piece of a script is cut out, or junk inserted; any result is handled."""
    text = data.draw(st.sampled_from([case.script for case in FINDING_CASES]))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    junk = data.draw(
        st.sampled_from(["", "(", ")", "'", '"""', "\\", "\0", "\t", "\f", "🚂", ":", "\n    x", "def"])
    )
    report = check(text[:start] + junk + text[end:])
    assert not any(each.code == "TS03" for each in report.diagnostics)


def _violations(text: str) -> Counter[str]:
    """The violated restrictions; hazards only if the script already uses Horovod."""
    found = find(program_of(text, {}), frozenset(RESTRICTION_CODES).difference(HAZARD_CODES)).found
    return Counter(each.code for each in found if each.verdict is Verdict.VIOLATED)


def _judged(program: Program, case: FindingCase) -> Counter[Verdict]:
    found = find(program, {case.code})
    assert found.defects == ()
    return Counter(each.verdict for each in found.found)
