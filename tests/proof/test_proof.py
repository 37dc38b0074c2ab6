"""Every converted fixture is true: spec.md 6.7, on two real processes of Horovod.

A folder of fixtures/scripts that holds before.py and after.py is proved.  Its proof.json may name the
`arguments` that both are run with, or those of several `runs`, one for each mode of the script, and the
`known` faults: ids with the reason why they are accepted.  One that goes through its data says what makes
their length `odd`: a text that both hold, and what to put in its place so that neither 2 nor 3 divides it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proof.harness import prove, prove_data

pytestmark = pytest.mark.proof

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
FOLDERS = sorted(path.parent for path in SCRIPTS.glob("*/after.py") if (path.parent / "before.py").exists())


def settings(folder: Path) -> dict[str, Any]:
    """What a folder's proof.json says."""
    path = folder / "proof.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def runs(folder: Path) -> list[list[str]]:
    """The arguments of each run of a folder's script."""
    said = settings(folder)
    return [list(arguments) for arguments in said.get("runs", [said.get("arguments", [])])]


PROOFS = [
    pytest.param(folder, each, id=" ".join((folder.name, *each)))
    for folder in FOLDERS
    for each in runs(folder)
]


@pytest.mark.parametrize(("folder", "arguments"), PROOFS)
def test_conversion_is_true(folder: Path, arguments: list[str]) -> None:
    faults = prove(folder / "before.py", folder / "after.py", arguments)
    found = {fault.partition(":")[0] for fault in faults}
    assert found == set(settings(folder).get("known", ())), "\n".join(
        [f"{folder.name} {arguments}:", *faults]
    )


ODD = [pytest.param(folder, id=folder.name) for folder in FOLDERS if "odd" in settings(folder)]


@pytest.mark.parametrize("folder", ODD)
def test_three_ranks_share_an_odd_number_of_elements(folder: Path) -> None:
    old, new = settings(folder)["odd"]
    texts = [(folder / name).read_bytes().decode("utf-8-sig") for name in ("before.py", "after.py")]
    assert all(old in text for text in texts)
    before, after = (text.replace(old, new) for text in texts)
    faults = prove_data(before, after, runs(folder)[0], ranks=3)
    assert not faults, "\n".join([f"{folder.name}:", *faults])
