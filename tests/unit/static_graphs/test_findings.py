"""Every case of a static code's fixture is a test: its findings, their verdicts, and the fixed text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.finding_fixtures import (
    STATIC_CASES,
    STATIC_FILES,
    FindingCase,
    fixed,
    program_of,
    rewrite_case,
    shown,
)
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


# No result shows that an `input_spec` has no effect.
WITHOUT_EFFECT = ("PD26: a spec without effect", "PD26: a spec that would stand in the way")


@pytest.mark.parametrize("case", STATIC_CASES, ids=lambda case: case.name)
def test_what_is_found_is_what_paddle_does(case: FindingCase) -> None:
    """The proof (`tests/proof/paddle`) runs each case."""
    is_full = "full_graph=True" in case.script or "jit.save" in case.script
    now = case.ended.get("written") or case.ended["full" if is_full else "sot"]
    if "violated" in case.verdicts:
        assert now != "agrees" or case.name in WITHOUT_EFFECT
    elif "harmless" in case.verdicts:
        assert (now, case.ended.get("full") == "agrees") == ("agrees", False)
    elif not case.verdicts:
        assert now == "agrees"


def test_nothing_that_reads_graphs_is_loaded_without_paddle() -> None:
    ask = (
        "import sys, trainshift.lsp.server\nfrom trainshift.engine.checking import check\n"
        "check('import tensorflow as tf\\nmodel = tf.keras.Sequential()\\nmodel.fit(x, y)\\n')\n"
        "print(*sorted(name for name in sys.modules if '.static_graphs' in name))"
    )
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["trainshift.static_graphs", "trainshift.static_graphs.codes"]


def test_files_and_codes_have_one_name() -> None:
    names = {f"{each.code.lower()}_{each.name.replace('-', '_')}" for each in STATIC_CODES}
    assert {path.stem for path in STATIC_FILES} == names
