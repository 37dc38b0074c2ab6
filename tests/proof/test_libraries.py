"""Third-party code: scripts with the libraries themselves, as on PyPI, on two real ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.code import code_of
from proof.harness import Place
from proof.proven import Conversion, in_turns
from trainshift.engine.conversion import Status, convert

pytestmark = [pytest.mark.proof, pytest.mark.libraries]

TOP = Path(__file__).parents[2]
PLACE = Place(
    str(TOP / ".venv-libraries" / "bin" / "python"),
    {
        "HF_HUB_OFFLINE": "1",
        # A thread of pyarrow would run in the process from which all others are forked.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "PYTHONWARNINGS": "ignore",
    },
)
REQUIREMENTS = (Path(__file__).parent / "libraries.txt").read_text("utf-8")
ONE_IN = 5
# The judge's faults of a script that are not faults of its conversion: a search draws other rates in each
# run, and Optuna logs on every rank.  Separate Hydra folders for each rank are reported.  The variables of
# an agent are broadcast before its optimizer has slots, which begin with zeros; Gym logs on every rank.
EXPECTED = {
    "agents_dqn": frozenset({"not-broadcast", "rank1-logged"}),
    "hydra_config": frozenset({"rank1-wrote-file"}),
    "sklearn_search": frozenset({"rate-not-scaled"}),
    "optuna_search": frozenset({"rate-not-scaled", "rank1-logged"}),
}
# The libraries that train themselves, and the names in their refusals.
REFUSED = {"keras_tuner_search": "search of KerasTuner"}


def converted(path: Path) -> Conversion:
    """The script of `fixtures/libraries`, and its conversion."""
    result = convert(path.read_text("utf-8"))
    assert result.status is Status.CONVERTED, result.reason
    return Conversion(
        f"libraries {path.stem}",
        code_of(path),
        code_of(result.text),
        place=PLACE,
        beside=REQUIREMENTS,
        expected=EXPECTED.get(path.stem, frozenset()),
    )


SCRIPTS = sorted((TOP / "fixtures" / "libraries").glob("*.py"))
CONVERSIONS = [converted(path) for path in SCRIPTS if path.stem not in REFUSED]


@in_turns(CONVERSIONS, ONE_IN)
def test_conversion_is_true(conversion: Conversion, pytestconfig: pytest.Config) -> None:
    conversion.assert_proven(pytestconfig)
