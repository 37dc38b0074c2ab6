"""Runs the fixtures of `fixtures/scripts` on three ranks, on lengths that neither 2 nor 3 divides.

    python tests/proof/odd.py [NAME...]

All ranks must end, with equal weights; where their data can be told apart, they share them.  That of all
takes ten minutes; `test_proof.py` runs some of each kind.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from proof.harness import judge, run_converted, run_original
from trainshift.proving.judging.data import judge_data

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
FOLDERS = sorted(path.parent for path in SCRIPTS.glob("*/after.py") if (path.parent / "before.py").exists())
RANKS = 3


def settings(folder: Path) -> dict[str, Any]:
    """What a folder's proof.json says."""
    path = folder / "proof.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def runs(folder: Path) -> list[list[str]]:
    """The arguments of each run of a folder's script."""
    said = settings(folder)
    return [list(arguments) for arguments in said.get("runs", [said.get("arguments", [])])]


def odd_faults(folder: Path, arguments: list[str]) -> list[str]:
    """The faults of a folder's conversion on three ranks, with its `odd` length.

    That the ranks share the data is asked unless its `unshared` tells why that cannot be seen.
    """
    said = settings(folder)
    texts = [(folder / name).read_bytes().decode("utf-8-sig") for name in ("before.py", "after.py")]
    for old, new in said["odd"]:
        assert all(old in text for text in texts) or old in arguments, f"{folder.name} has no {old}"
        texts = [text.replace(old, new) for text in texts]
        arguments = [new if each == old else each for each in arguments]
    before, after = texts
    seen = "unshared" not in said
    with ThreadPoolExecutor() as pool:
        alone = pool.submit(run_original, before, arguments, data=seen)
        ranks = pool.submit(run_converted, after, arguments, ranks=RANKS, data=seen)
        original, converted = alone.result(), ranks.result()
    faults = judge(original, converted)
    return faults + judge_data(original, converted) if seen else faults


def main(names: list[str]) -> int:
    """Run the fixtures of some names, or all, and print their faults; 1 if there are any."""
    bad = 0
    for folder in FOLDERS:
        for arguments in runs(folder) if folder.name in names or not names else ():
            faults = odd_faults(folder, arguments)
            bad += bool(faults)
            print(folder.name, *arguments, "fails" if faults else "ok", *faults, sep="\n  ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
