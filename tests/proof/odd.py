"""Run the fixtures of `fixtures/scripts` on three ranks, on lengths that neither 2 nor 3 divides.

    python tests/proof/odd.py [NAME...]

All ranks must end, with equal weights, and with the data that `data` of its proof.json names:

- ``shared``, which is what they do unless it is said: they share an epoch of the original's
- ``drawn``: each draws from all data, or makes its own; what two have in common is what chance brings
- ``whole``: each takes all turns of the original's, which the report tells

That of all takes ten minutes; `test_proof.py` runs some of each kind.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from proof.harness import Run, judge, run_converted, run_original
from trainshift.proving.judging.data import judge_data
from trainshift.proving.judging.drawn import faults_of_drawing, faults_of_turns, walks_drawn

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
FOLDERS = sorted(path.parent for path in SCRIPTS.glob("*/after.py") if (path.parent / "before.py").exists())
RANKS = 3


def settings(folder: Path) -> dict[str, Any]:
    """The settings in a folder's proof.json."""
    path = folder / "proof.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def runs(folder: Path) -> list[list[str]]:
    """The arguments of each run of a folder's script."""
    said = settings(folder)
    return [list(arguments) for arguments in said.get("runs", [said.get("arguments", [])])]


def odd_faults(folder: Path, arguments: list[str]) -> list[str]:
    """The faults of a folder's conversion on three ranks, with its `odd` length.

    The faults of its `odd_known` are left out; each has its reason there.
    """
    said = settings(folder)
    texts = [(folder / name).read_bytes().decode("utf-8-sig") for name in ("before.py", "after.py")]
    for old, new in said["odd"]:
        assert all(old in text for text in texts) or old in arguments, f"{folder.name} has no {old}"
        texts = [text.replace(old, new) for text in texts]
        arguments = [new if each == old else each for each in arguments]
    before, after = texts
    with ThreadPoolExecutor() as pool:
        alone = pool.submit(run_original, before, arguments, data=True)
        ranks = pool.submit(run_converted, after, arguments, ranks=RANKS, data=True)
        original, converted = alone.result(), ranks.result()
    found = judge(original, converted) + KINDS[said.get("data", "shared")](original, converted)
    return [fault for fault in found if fault.partition(":")[0] not in said.get("odd_known", {})]


def drawn(original: Run, ranks: Sequence[Run]) -> list[str]:
    """The faults of ranks that each draw independently."""
    records = [run.record for run in ranks if run.record]
    if original.record is None or len(records) < len(ranks):
        return []
    walks = walks_drawn(original.record, records)
    faults = [fault for walk in walks for fault in (*faults_of_turns(walk), *faults_of_drawing(walk))]
    return faults if walks else ["data-not-seen: no process drew what another one had drawn"]


def whole(original: Run, ranks: Sequence[Run]) -> list[str]:
    """The faults of ranks that each take all iterations: of data that all have, or that each draws
    independently.
    """
    records = [run.record for run in ranks if run.record]
    if original.record is None or len(records) < len(ranks):
        return []
    faults, seen = [], False
    for rank, record in enumerate(records):
        ours, theirs = record.data, original.record.data
        if len(ours) != len(theirs):
            faults.append(f"turns-differ: rank {rank} took {len(ours)} of {len(theirs)} turns")
        places = max((len(columns) for columns in theirs), default=0)
        rows = [[Counter(rows_at(data, place)) for data in (theirs, ours)] for place in range(places)]
        seen = seen or (rank > 0 and any(one == two for one, two in rows))
    if seen or faults:
        return faults
    walks = walks_drawn(original.record, records)
    faults = [fault for walk in walks for fault in faults_of_drawing(walk)]
    return faults if walks else ["data-not-seen: no rank had what the original had"]


def rows_at(data: Sequence[Sequence[tuple[str, list[str]]]], place: int) -> list[str]:
    """All rows at one place of each batch."""
    return [row for columns in data if len(columns) > place for row in columns[place][1]]


KINDS: dict[str, Callable[[Run, Sequence[Run]], list[str]]] = {
    "shared": judge_data,
    "drawn": drawn,
    "whole": whole,
}


def main(names: list[str]) -> int:
    """Run the named fixtures, or all, and print their faults; return 1 if there are any."""
    bad = 0
    for folder in FOLDERS:
        for arguments in runs(folder) if folder.name in names or not names else ():
            faults = odd_faults(folder, arguments)
            bad += bool(faults)
            print(folder.name, *arguments, "fails" if faults else "ok", *faults, sep="\n  ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
