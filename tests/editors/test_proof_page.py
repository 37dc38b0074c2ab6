"""The page that `prove --html` writes, looked at in a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainshift.proving.page import page

pytestmark = pytest.mark.editors

LOOK = Path(__file__).parent / "proof_page.mjs"
EXTENSION = Path(__file__).parent.parent.parent / "vscode-extension" / "package.json"


def run(name: str, rank: int, steps: int) -> dict[str, Any]:
    """One process that trained."""
    return {
        "run": name,
        "rank": rank,
        "exit": 0,
        "steps": steps,
        "rates": [0.1 if name == "original" else 0.2] * steps,
        "losses": [1 / (step + 1 + rank) for step in range(steps)],
        "seconds": [0.01] * (steps - 1),
        "samples_per_second": 1000.0,
    }


def result(**changes: Any) -> dict[str, Any]:
    """What a proof gave."""
    place = {"path": "<b>.py", "line": 3, "rank": 1, "what": "hello", "text": "print('<script>')"}
    claim = {"title": "Title", "says": "A & B.", "do": "Do it.", "code": "HV07", "places": []}
    return {
        "script": "train & co.py",
        "converted": False,
        "np": 2,
        "steps": 20,
        "tensorflow": "2.15.1",
        "horovod": "0.28.1",
        "verdict": "fails",
        "problem": "",
        "claims": [
            {**claim, "id": "ends", "verdict": "holds"},
            {**claim, "id": "output", "verdict": "fails", "places": [place]},
            {**claim, "id": "worth", "verdict": "not seen"},
        ],
        "written_elsewhere": [{"rank": 0, "path": "/elsewhere"}],
        "changed": [],
        "runs": [run("original", 0, 40), run("ranks", 0, 20), run("ranks", 1, 20)],
        "differences": [0.5, *[0.0] * 19],
        "timeline": {"steps": [0.0, 0.01, 0.02], "reductions": [[0.002, 0.004], [0.012, 0.015]]},
        "reducing": 0.25,
        **changes,
    }


def looked_at(text: str, folder: Path) -> dict[str, Any]:
    """What a browser sees of a page."""
    path = folder / "proof.html"
    path.write_text(text, encoding="utf-8")
    command = ["node", str(LOOK), path.as_uri(), str(EXTENSION)]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert looked.returncode == 0, looked.stderr
    seen: dict[str, Any] = json.loads(looked.stdout)
    return seen


def test_a_reader_sees_claims_and_plots(tmp_path: Path) -> None:
    """Without network, and with what the script said as text."""
    seen = looked_at(page(result()), tmp_path)
    assert seen["verdict"] == "It does not hold"
    assert seen["claims"] == {"ends": "holds", "output": "fails", "worth": "not-seen"}
    assert "<b>.py:3 (rank 1) print('<script>')" in seen["marked"]
    assert "trainshift explain HV07" in seen["marked"]
    shapes = {plot["title"]: plot["shapes"] for plot in seen["plots"]}
    assert shapes == {
        "Largest difference of weights between ranks": 1,
        "Learning rate": 3,
        "Loss": 3,
        "Samples per second": 2,
        "Compute and allreduce, on rank 0": 3,
    }
    assert all(plot["width"] > 250 for plot in seen["plots"])
    assert (seen["wide"], seen["outside"], seen["failed"]) == (False, [], [])


def test_what_was_not_seen_is_no_plot(tmp_path: Path) -> None:
    """Nothing is drawn of nothing."""
    nothing = {"rates": [], "losses": [None], "seconds": [], "samples_per_second": 0.0, "steps": 0}
    empty = result(
        runs=[{**each, **nothing} for each in result()["runs"]],
        differences=[],
        timeline={"steps": [], "reductions": []},
        reducing=None,
        steps=0,
    )
    seen = looked_at(page(empty), tmp_path)
    assert [plot["shapes"] for plot in seen["plots"]] == [0] * 5
    assert seen["failed"] == []
