"""Judge the runs in a folder, in the user's Python.

    python -c BOOTSTRAP FOLDER

prints one JSON document: the verdict, the claims, and the data of the plots.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from trainshift.proving.judging.by_hand import measured
from trainshift.proving.judging.claims import FAILS, HOLDS, NOT_SEEN, claims
from trainshift.proving.judging.endings import is_failed, reason
from trainshift.proving.judging.runs import read_run
from trainshift.proving.judging.seen import Claim, Seen
from trainshift.proving.judging.series import series
from trainshift.proving.judging.timeline import read_timeline
from trainshift.proving.observed.record import Run

# The observations without which a proof proves nothing.
CORE = ("ends", "weights", "averaged", "broadcast", "rate")


def main() -> None:
    """Read the runs, judge them, and print the result."""
    folder = Path(sys.argv[1])
    print(json.dumps(judged(folder, json.loads((folder / "plan.json").read_text(encoding="utf-8")))))


def judged(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """The result of all runs, in JSON form."""
    alone, *others = plan["runs"]
    several = others[0] if others else {**alone, "directories": []}
    (original,), ranks, *data = (
        [
            read_run(Path(directory), status, each["given"], tuple(plan["tops"]))
            for directory, status in zip(each["directories"], each["statuses"])
        ]
        for each in (alone, several, *others[1:])
    )
    values, *arrays = (samples(Path(each)) for each in (*alone["directories"], *several["directories"]))
    reductions = read_timeline(Path(several["directories"][0]) / "record" / "timeline.json") if ranks else []
    problem = ""
    if plan["converted"] and (is_failed(original) or alone["stuck"]):
        why = alone["stuck"] or reason(original)
        problem = (
            f"The original does not run by itself: {why or f'it ended with status {original.exit_code}'}."
        )
    seen = Seen(
        original,
        ranks,
        data[0] if data else [],
        arrays,
        reductions,
        several["stuck"],
        plan["limit"],
        plan["gpus"],
        plan["converted"],
        plan["hosts"],
        several["alone"],
        values,
    )
    seen = measured(seen)
    found = [] if problem else claims(seen)
    return {
        "verdict": "error" if problem else verdict(found),
        "problem": problem,
        "steps": seen.steps,
        "stopped": any(record.stopped for record in seen.records),
        "claims": [described(each) for each in found],
        "written_elsewhere": [
            {"rank": rank, "path": path}
            for rank, run in enumerate(ranks)
            for path in (run.record.written_elsewhere if run.record else ())
        ],
        "changed": plan["changed"],
        **series(seen.original, seen.ranks, seen.arrays, reductions),
    }


def verdict(found: list[Claim]) -> str:
    """The verdict of all claims."""
    if any(each.verdict == FAILS for each in found):
        return FAILS
    return HOLDS if all(each.verdict == HOLDS for each in found if each.id in CORE) else NOT_SEEN


def described(claim: Claim) -> dict[str, Any]:
    """A claim in JSON form; its places are in the program's own files if possible."""
    places = []
    for at, what, rank in dict.fromkeys(claim.places):
        name, _, line = at.rpartition(":")
        if name:
            inside = re.sub(r"^.*?/(original|ranks|data)/rank\d+/(work|here)/", "", name)
            places.append(
                {
                    "path": inside,
                    "line": int(line),
                    "rank": rank,
                    "what": what,
                    "text": line_of(name, int(line)),
                }
            )
    return {
        "id": claim.id,
        "title": claim.title,
        "verdict": claim.verdict,
        "says": re.sub(r"(/[^\s'\"]*)?/(original|ranks|data)/rank\d+/(work|here)/", "", claim.says),
        "do": claim.do,
        "code": claim.code,
        "places": places,
    }


def line_of(path: str, number: int) -> str:
    """A line of a file; empty if it does not exist."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def samples(directory: Path) -> dict[str, Any]:
    """The samples of values that a rank has recorded."""
    import numpy

    path = directory / "record" / "details.npz"
    if not path.exists():
        return {}
    with numpy.load(path) as archive:
        return dict(archive)


__all__ = ["Run", "judged", "main"]
