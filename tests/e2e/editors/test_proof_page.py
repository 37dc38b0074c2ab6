"""The page that `prove --html` writes, viewed in a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainshift.proving.badge import badge, line
from trainshift.proving.page import page

pytestmark = pytest.mark.editors

LOOK = Path(__file__).parent / "proof_page.mjs"
EXTENSION = Path(__file__).parents[3] / "vscode-extension" / "package.json"


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
    """The result of a proof."""
    place = {"path": "<b>.py", "line": 3, "own": 3, "rank": 1, "what": "hello", "text": "print('<script>')"}
    claim = {"title": "Title", "says": "A & B.", "do": "Do it.", "code": "HV07", "places": []}
    return {
        "trainshift": "1.2.3",
        "date": "2026-11-27T09:05:00+00:00",
        "machine": "Linux x86_64, 2 processors, no GPU",
        "python_version": "3.11.7",
        "script": "train & co.py",
        "converted": False,
        "np": 2,
        "steps": 20,
        "stopped": True,
        "python": "/usr/bin/python",
        "folder": "/project",
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


def looked_at(text: str, folder: Path, picture: str = "") -> dict[str, Any]:
    """A page rendered in a browser, with a screenshot."""
    path = folder / "proof.html"
    path.write_text(text.replace("</main>", f"{picture}</main>"), encoding="utf-8")
    command = ["node", str(LOOK), path.as_uri(), str(EXTENSION)]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert looked.returncode == 0, looked.stderr
    seen: dict[str, Any] = json.loads(looked.stdout)
    return seen


def shapes(seen: dict[str, Any]) -> list[int]:
    """The number of lines, points and bars of each plot."""
    return [plot["shapes"] for plot in seen["plots"]]


def fits(seen: dict[str, Any]) -> bool:
    """Return whether the page fits windows of any width, with readable text."""
    return all(not each["wide"] and not each["over"] and each["text"] > 11 for each in seen["sizes"].values())


def test_a_reader_sees_claims_and_plots(tmp_path: Path) -> None:
    """Without network, and with the script's output as text."""
    seen = looked_at(page(result()), tmp_path)
    assert seen["verdict"] == "It does not hold"
    assert "1 of 3 claims proven on 2 ranks" in seen["about"]
    assert "Of 3 claims, 1 fails, 1 holds, 1 was not seen." in seen["about"]
    for fact in (
        "1.2.3",
        "27 November 2026, 09:05 UTC",
        "Linux x86_64",
        "TensorFlow 2.15.1",
        "Python 3.11.7",
    ):
        assert fact in seen["header"]
    assert "Rank 0 wrote outside the scratch copy: /elsewhere" in seen["about"]
    assert seen["claims"] == {"ends": "holds", "output": "fails", "worth": "not-seen"}
    assert "<b>.py:3 (rank 1) print('<script>')" in seen["marked"]
    assert "trainshift explain HV07" in seen["marked"]
    assert [plot["title"] for plot in seen["plots"]] == [
        "Largest difference of weights between ranks",
        "Learning rate",
        "Loss",
        "Samples per second",
        "Compute and allreduce, on rank 0",
    ]
    # Both ranks have the same rates, so there is only one line.
    assert shapes(seen) == [1, 2, 3, 2, 3]
    assert "ranks 0, 1" in seen["plots"][1]["text"]
    assert "Steps 19 to 20" in seen["plots"][4]["text"]
    assert all(plot["width"] > 250 for plot in seen["plots"])
    assert (fits(seen), seen["outside"], seen["failed"]) == (True, [], []), seen["sizes"]
    assert seen["paper"]["light"] != seen["paper"]["dark"]


def test_a_badge_says_in_short_what_is_proven(tmp_path: Path) -> None:
    """A README can show the badge as a picture that contains its text."""
    holds = result(verdict="holds", claims=[{**each, "verdict": "holds"} for each in result()["claims"]])
    seen = looked_at(page(holds), tmp_path, badge(holds))
    assert seen["badge"]["texts"] == ["Trainshift", "3 of 3 claims proven on 2 ranks"]
    assert seen["badge"]["fits"]
    assert "Of 3 claims" not in seen["about"]
    assert "#2b8a3e" in badge(holds)
    assert "#c92a2a" in badge(result())
    shown = "![Trainshift: 3 of 3 claims proven on 2 ranks](proof.svg)"
    assert line(holds, "proof.svg") == shown
    assert line(holds, "proof.svg", "proof.html") == f"[{shown}](proof.html)"


def test_numbers_that_are_not_finite_are_gaps_and_told(tmp_path: Path) -> None:
    """A missing difference is not drawn as zero."""
    ranks = [run("original", 0, 20), run("ranks", 0, 20), run("ranks", 1, 20)]
    ranks[1]["losses"][5:] = [None] * 15
    ranks[2]["losses"][3] = None
    odd = result(
        script=f"/projects/a <b> & {'without_a_space' * 20}/train.py",
        runs=ranks,
        differences=[0.0, 1e-7, 0.25, *[None] * 17],
    )
    seen = looked_at(page(odd), tmp_path)
    assert shapes(seen) == [1, 2, 4, 2, 3]
    assert "No finite number from step 4 on: the difference." in seen["plots"][0]["text"]
    assert "Equal" not in seen["plots"][0]["text"]
    assert "No finite number from step 6 on: rank 0." in seen["plots"][2]["text"]
    assert "No finite number at 1 step, first at step 4: rank 1." in seen["plots"][2]["text"]
    assert (fits(seen), seen["failed"]) == (True, []), seen["sizes"]


@pytest.mark.parametrize(("ranks", "steps"), [(8, 20), (2, 2), (3, 1)])
def test_a_page_fits_any_number_of_ranks_and_steps(ranks: int, steps: int, tmp_path: Path) -> None:
    runs = [run("original", 0, steps), *(run("ranks", rank, steps) for rank in range(ranks))]
    seen = looked_at(
        page(result(np=ranks, steps=steps, runs=runs, differences=[0.0] * steps, verdict="holds")), tmp_path
    )
    # One process has the losses of rank 0.
    assert shapes(seen) == [1, 2, ranks, 2, 3]
    assert seen["verdict"] == f"It holds for {steps} step{'s' * (steps > 1)}"
    assert "Equal after every step." in seen["plots"][0]["text"]
    assert (fits(seen), seen["failed"]) == (True, []), seen["sizes"]


def test_what_was_not_seen_is_no_plot(tmp_path: Path) -> None:
    """A plot without data is not drawn."""
    nothing = {"rates": [], "losses": [None], "seconds": [], "samples_per_second": 0.0, "steps": 0}
    empty = result(
        runs=[{**each, **nothing} for each in result()["runs"]],
        differences=[],
        timeline={"steps": [], "reductions": []},
        reducing=None,
        steps=0,
    )
    seen = looked_at(page(empty), tmp_path)
    assert shapes(seen) == [0] * 5
    assert seen["failed"] == []
