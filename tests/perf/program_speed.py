"""Time `trainshift server` on a program of several files, and on one of its files alone; print medians.

    PYTHONPATH=tests python -m perf.program_speed [--quick]

The program has 20 files of 300 lines in a workspace of 5,000 other files.  The milliseconds are the
machine's; what stands side by side was measured in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict

from perf.script import program
from perf.server_speed import OURS, WARM_UP, machine, quantile
from perf.session import Session

FILES, LINES, AROUND = 20, 300, 5_000
# Seconds until the server has read the workspace and collected garbage.
SETTLED, TIDY = 6.0, 3.0

ALONE, PROGRAM = "one file", f"{FILES} files"
FIRST = "`initialized` to first diagnostics"
WHOLE = "then, all that is said of the program"
EDIT = "edit to fresh diagnostics"
JUDGED = "edit to all that is said of the program"
ACTION = "action on the program, resolved"
MEMORY = "resident, MB"
TARGETS = {JUDGED: "< 200 ms", FIRST: "as alone", EDIT: "as alone", MEMORY: "< 120 MB"}


def around(number: int) -> dict[str, str]:
    """Files that do not belong to the program."""
    text = "import os\n\nimport numpy as np\n\n\ndef value():\n    return np.ones(3), os.getcwd()\n"
    return {f"other_{each // 100}/module_{each}.py": text for each in range(number)}


def measure(texts: dict[str, str], edits: int, values: dict[str, list[float]]) -> None:
    """Start a server on `train.py` of some texts, and time its answers."""
    start, others = texts["train.py"], {name: text for name, text in texts.items() if name != "train.py"}
    session = Session(OURS, start, {**others, **around(AROUND), "trainshift.toml": ""})
    try:
        session.start()
        values[FIRST].append(session.open())
        values[WHOLE].append(session.outline())
        time.sleep(SETTLED)
        for turn in range(WARM_UP + edits):
            taken = session.edit(problem=bool(turn % 2))
            judged = taken + session.outline()
            time.sleep(0.5)
            if turn >= WARM_UP:
                values[EDIT].append(taken)
                values[JUDGED].append(judged)
        values[ACTION].append(session.file_action())
        time.sleep(TIDY)
        values[MEMORY].append(session.memory())
    finally:
        session.close()


def main() -> int:
    """Measure both in turn, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and edits")
    rounds, edits = (1, 4) if parser.parse_args().quick else (3, 12)
    whole = program(FILES, LINES)
    alone = {"train.py": whole["train.py"].replace("    parser =", TRAINS + "    parser =", 1)}
    for name in whole:
        module = name.removesuffix(".py")
        alone["train.py"] = alone["train.py"].replace(f"import {module}\n", "")
        alone["train.py"] = alone["train.py"].replace(f"    {module}.run_all(model, dataset)\n", "")
    values: dict[str, dict[str, list[float]]] = {ALONE: defaultdict(list), PROGRAM: defaultdict(list)}
    print(machine())
    for _ in range(rounds):
        measure(alone, edits, values[ALONE])
        measure(whole, edits, values[PROGRAM])
    print(f"{'milliseconds, median / 95th percentile':<42}{ALONE:>20}{PROGRAM:>20}  target")
    for name in (FIRST, WHOLE, EDIT, JUDGED, ACTION, MEMORY):
        cells = ""
        for kind in (ALONE, PROGRAM):
            found = values[kind][name]
            cells += f"{f'{statistics.median(found):,.1f} / {quantile(found, 0.95):,.1f}':>20}"
        print(f"{name:<42}{cells}  {TARGETS.get(name, '')}".rstrip())
    return 0


TRAINS = "    model.fit(dataset, epochs=2)\n"


if __name__ == "__main__":
    sys.exit(main())
