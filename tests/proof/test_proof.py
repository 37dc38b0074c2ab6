"""Every converted fixture is true: SPEC 6.7, on two real processes of Horovod.

A folder of fixtures/scripts that holds before.py and after.py is proved.  Its proof.json may name the
`arguments` that both are run with, and the `known` faults: ids with the reason why they are accepted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proof.harness import prove

pytestmark = pytest.mark.proof

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
FOLDERS = sorted(path.parent for path in SCRIPTS.glob("*/after.py") if (path.parent / "before.py").exists())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_conversion_is_true(folder: Path) -> None:
    settings: dict[str, Any] = {}
    if (folder / "proof.json").exists():
        settings = json.loads((folder / "proof.json").read_text(encoding="utf-8"))
    faults = prove(folder / "before.py", folder / "after.py", settings.get("arguments", ()))
    found = {fault.partition(":")[0] for fault in faults}
    assert found == set(settings.get("known", ())), "\n".join([f"{folder.name}:", *faults])
