"""The command line of the ecosystem run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ecosystem.crowd import outcomes
from ecosystem.judge import Outcome
from ecosystem.report import Outcomes, differences, figures, sample
from trainshift.host.walk import collect


def main(arguments: Sequence[str] | None = None) -> int:
    """Check and convert the files in a folder, print the results; 1 for a crash or an unclean result."""
    asked = _parser().parse_args(arguments)
    folder: Path = asked.folder
    state: Path = asked.state or folder.with_name(f"{folder.resolve().name}.ecosystem.json")
    paths = [each.path for each in collect([str(folder)]) if not each.nothing and not each.problem]
    paths = [path for path in paths if asked.only in path]
    ready: dict[str, Outcome] = {}
    for path, outcome in outcomes(paths, asked.jobs, asked.limit):
        ready[os.path.relpath(path, folder)] = outcome
        if sys.stderr.isatty():
            print(f"\r{len(ready)} of {len(paths)}", end="", file=sys.stderr, flush=True)
    found = dict(sorted(ready.items()))
    for line in figures(found):
        print(line)
    last = _read(state)
    for line in differences(last, found) if last else ():
        print(line)
    for line in sample(found, asked.sample, asked.seed) if asked.sample else ():
        print(line)
    if not asked.only:
        state.write_text(json.dumps({path: each.as_json() for path, each in found.items()}), encoding="utf-8")
    return int(any(each.crash or each.unclean for each in found.values()))


def _read(state: Path) -> Outcomes:
    if not state.exists():
        return {}
    return {path: Outcome.from_json(each) for path, each in json.loads(state.read_text("utf-8")).items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make ecosystem", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="a folder with any scripts and notebooks")
    parser.add_argument(
        "--state", type=Path, help="keep the outcome in this file, beside the folder unless given"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes; one per core unless given"
    )
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that one file may take")
    parser.add_argument("--only", default="", help="only files whose path holds this; keeps no state")
    parser.add_argument("--sample", type=int, default=0, help="print so many warnings, chosen at random")
    parser.add_argument("--seed", type=int, default=1, help="of the random choice")
    return parser


if __name__ == "__main__":
    sys.exit(main())
