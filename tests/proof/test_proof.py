"""Every converted fixture is true: spec.md 6.7, on two real processes of Horovod.

Each folder of fixtures/scripts with before.py and after.py is proved.  Its proof.json may contain the
`arguments` of both, or those of several `runs`, one for each mode of the script.  `odd` are replacements of
texts in both that make the length of the data, or the number of steps, divisible by neither 2 nor 3, and the
elements distinguishable; `data` is then the use of the data by the ranks, if they do not share them
(`proof.odd`), and `odd_known` are the accepted faults, with their reasons.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proof.code import code_of
from proof.odd import FOLDERS, odd_faults, runs, settings
from proof.proven import WRITTEN, Conversion, in_turns
from proof.test_libraries import CONVERSIONS as LIBRARIES
from proof.test_programs import TRAIN as PROGRAMS

pytestmark = pytest.mark.proof

CONVERSIONS = [
    Conversion(
        " ".join((folder.name, *arguments)),
        code_of(folder / "before.py"),
        code_of(folder / "after.py"),
        tuple(arguments),
    )
    for folder in FOLDERS
    for arguments in runs(folder)
]


@in_turns(CONVERSIONS)
def test_conversion_is_true(conversion: Conversion, pytestconfig: pytest.Config) -> None:
    conversion.assert_proven(pytestconfig)


# A quick one of each kind; `odd.py` runs all.
ODD = ("class_trainer", "emoji_bom", "monitored_hooks", "strategy_workers")


@pytest.mark.parametrize("folder", [each for each in FOLDERS if each.name in ODD], ids=lambda each: each.name)
def test_three_ranks_take_an_odd_number_of_elements(folder: Path) -> None:
    faults = odd_faults(folder, runs(folder)[0])
    assert not faults, "\n".join([f"{folder.name}:", *faults])


def test_each_fixture_has_an_odd_length() -> None:
    assert [folder.name for folder in FOLDERS if not settings(folder).get("odd")] == []


def test_what_is_written_down_is_of_these_conversions() -> None:
    names = {each.name for each in (*CONVERSIONS, *PROGRAMS, *LIBRARIES)}
    assert json.loads(WRITTEN.read_text("utf-8")).keys() <= names
