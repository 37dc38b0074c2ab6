"""Each hazard shows on two ranks, and disappears when it is fixed; the check distinguishes the two."""

from __future__ import annotations

import pytest

from proof.code import Code
from proof.harness import run_converted
from proof.test_prove import MISTAKES, Mistake, changed
from support.fixtures import ROOT
from trainshift.core.finding import Verdict
from trainshift.dev.examples import read_examples
from trainshift.engine.checking import Diagnostic, check
from trainshift.engine.settings import Settings
from trainshift.python.source.edit import apply, merge
from trainshift.restrictions import HAZARDS

pytestmark = pytest.mark.proof

CASES = {each.heading: each.blocks for each in read_examples(ROOT / "hazards" / "proof.md")}
WRONG = {code: blocks["python"] for code, blocks in CASES.items()}
DYING = [code for code, blocks in CASES.items() if "dies" in blocks["outcome"]]
# One change of the conversion pins GPUs, which is possible only once.
CONVERTING = {rule.code for rule in HAZARDS if rule.mended_by}
ALONE = [code for code in CASES if code in CONVERTING and "python fixed" not in CASES[code]]
# The claims of a proof that hazards break, in the scripts of `test_prove`, which show the failures.
# Whether parts differ by a row (HZ14) depends on the number of ranks.  Gradients summed over several
# batches (HZ24) are also summed on the single process of the comparison: no claim shows them.
CLAIMS = {
    "HZ02": {"gpu"},
    "HZ03": {"gpu"},
    "HZ05": {"rate"},
    "HZ06": {"averaged"},
    "HZ07": {"averaged", "weights"},
    "HZ08": {"averaged", "weights"},
    "HZ09": {"averaged"},
    "HZ10": {"broadcast", "weights"},
    "HZ11": {"broadcast", "weights"},
    "HZ13": {"rate"},
    "HZ15": {"data"},
    "HZ16": {"data"},
    "HZ18": {"data"},
    "HZ20": {"output"},
    "HZ21": {"output"},
    "HZ22": {"broadcast", "weights"},
    "HZ25": {"data"},
}
OF_GPUS = {"HZ02", "HZ03"}
# Runs script after script, and reports the last line of each, or else the files that it wrote.
RUNNER = """import contextlib, io, os, runpy

for name in sorted(name for name in os.listdir() if name.startswith("HZ")):
    before, out = {*os.listdir()}, io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(name)
    lines = out.getvalue().splitlines()
    print(lines[-1] if lines else ", ".join(sorted({*os.listdir()} - before)) or "nothing")
"""


def violated(text: str, code: str) -> list[Diagnostic]:
    """The places where a hazard is violated in a script."""
    found = check(text, Settings(select=(code,))).diagnostics
    return [each for each in found if each.verdict is Verdict.VIOLATED]


def mended(code: str) -> str:
    """A fixed case: by the fix of its finding, or by hand if there is none."""
    (found,) = violated(WRONG[code], code)
    if found.fix is None:
        return CASES[code]["python fixed"]
    return apply(WRONG[code], merge([found.fix]).edits)


def outcomes(scripts: dict[str, str]) -> dict[str, str]:
    """The outcome of each script on two ranks, which run them one after the other."""
    files = {f"{code}.py": text.encode() for code, text in scripts.items()}
    runs = run_converted(Code({"run.py": RUNNER.encode(), **files}, ("run.py",)), data=True)
    assert [run.exit_code for run in runs] == [0, 0], [run.stdout + run.native for run in runs]
    told = zip(sorted(scripts), *(run.stdout.splitlines() for run in runs), strict=True)
    return {code: " | ".join(dict.fromkeys(lines)) for code, *lines in told}


def expected(which: str) -> dict[str, str]:
    """The outcomes that the cases state."""
    lines = {code: dict(line.split(": ") for line in CASES[code]["outcome"].splitlines()) for code in CASES}
    return {code: each[which] for code, each in lines.items() if each[which] != "dies"}


def test_each_serious_hazard_that_needs_no_gpu_has_a_case() -> None:
    assert set(CASES) == {rule.code for rule in HAZARDS if rule.is_serious} - OF_GPUS


@pytest.mark.parametrize("code", CASES)
def test_a_hazard_is_found_and_not_in_what_is_mended(code: str) -> None:
    assert violated(mended(code), code) == []


def test_hazards_show_on_two_ranks() -> None:
    scripts = {code: text for code, text in WRONG.items() if code not in DYING}
    assert outcomes(scripts) == expected("wrong")


def test_what_is_mended_does_well_on_two_ranks() -> None:
    scripts = {code: mended(code) for code in CASES if code not in ALONE}
    assert outcomes(scripts) == {code: told for code, told in expected("fixed").items() if code in scripts}


@pytest.mark.parametrize("code", ALONE)
def test_what_a_conversion_mends_does_well_on_two_ranks(code: str) -> None:
    assert outcomes({code: mended(code)}) == {code: expected("fixed")[code]}


@pytest.mark.parametrize("code", DYING)
def test_a_hazard_ends_the_run_of_two_ranks(code: str) -> None:
    assert any(run.exit_code for run in run_converted(WRONG[code]))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_a_hazard_fails_at_the_claim_that_it_breaks(mistake: Mistake) -> None:
    _, script, expected, _, changes = mistake
    text = changed(script, changes)
    broken = {code: claims for code, claims in CLAIMS.items() if violated(text, code)}
    assert set().union(*broken.values()) <= set(expected.split())
    assert broken or expected == "ends"


def test_each_claim_of_a_hazard_is_proven() -> None:
    texts = [changed(script, changes) for _, script, _, _, changes in MISTAKES]
    assert {code for code in CLAIMS if any(violated(text, code) for text in texts)} == set(CLAIMS)
