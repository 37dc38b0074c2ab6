"""The examples of the static codes on real Paddle: each ends, compared with dygraph, as its fixture says."""

from __future__ import annotations

import pytest

from proof.paddle.real_paddle import HANGS, LIMIT, Ended, agree, run
from support.finding_fixtures import STATIC_CASES, FindingCase, rewrite_run

pytestmark = [pytest.mark.proof, pytest.mark.paddle]
MODES = ["full", "sot"]
"""The default modes of a case; the mode `written` is that of its decorators."""


@pytest.mark.parametrize("case", STATIC_CASES, ids=lambda case: case.name)
def test_case_ends_on_paddle_as_it_says(case: FindingCase, update_fixtures: bool) -> None:
    expected = case.ended
    assert case.run, "nothing is run"
    assert expected or update_fixtures, "nothing is said of how it ends"
    limit = HANGS if "hangs" in expected.values() else LIMIT
    modes = [*expected] or MODES
    ended = run("statements", {**case.others, "main.py": case.script}, case.run, ["dygraph", *modes], limit)
    found = {mode: outcome(ended[mode], ended["dygraph"]) for mode in modes}
    if update_fixtures:
        lines = [line for line in case.run.splitlines() if not line.startswith("# ")]
        rewrite_run(case, "".join(f"{line}\n" for line in [*lines, *(f"# {m}: {found[m]}" for m in modes)]))
    else:
        assert found == expected, ended


@pytest.mark.parametrize("case", [case for case in STATIC_CASES if case.fixed], ids=lambda case: case.name)
def test_what_was_fixed_is_the_source_in_dygraph_and_in_full(case: FindingCase) -> None:
    before = run("statements", {**case.others, "main.py": case.script}, case.run, ["dygraph"])["dygraph"]
    after = run("statements", {**case.others, "main.py": case.fixed}, case.run, ["dygraph", "full"])
    assert not before.how, before
    assert {mode: outcome(each, before) for mode, each in after.items()} == {
        "dygraph": "agrees",
        "full": "agrees",
    }, after


def outcome(ended: Ended, dygraph: Ended) -> str:
    """The outcome of a mode compared with dygraph, in a word."""
    if ended.how == dygraph.how:
        return "agrees" if ended.how or agree(ended.values, dygraph.values) else "differs"
    return ended.how or "differs"
