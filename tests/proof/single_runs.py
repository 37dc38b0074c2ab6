"""The verdicts of the judge on conversions whose processes were not forked, in single_runs.json."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from proof.originals import HERE, OBSERVING, PROVING, digest, sources

WRITTEN = Path(__file__).with_suffix(".json")
# The code that decides how a script without a fork is judged.  None of these runs records data, as `data`
# does.
SOURCES = (
    *(path for path in OBSERVING if path.stem != "data"),
    PROVING / "judging" / "judge.py",
    HERE / "harness.py",
    HERE / "code.py",
)
PACKAGES = ("tensorflow-cpu", "keras", "horovod")


@dataclass
class SingleRuns:
    """The recorded verdicts; with `all_anew` they are made and recorded again."""

    all_anew: bool

    def found(self, name: str, script: str, judge: Callable[[], list[str]], *, anew: bool) -> list[str]:
        """The faults of the conversion of this name: from the file unless they may have changed, or with
        `anew`.

        `script` returns its text, `judge` runs and judges it.
        """
        key = digest([script.encode(), *sources(SOURCES), *(version(name).encode() for name in PACKAGES)])
        known = json.loads(WRITTEN.read_text("utf-8")).get(name, {})
        if known.get("key") == key and not anew and not self.all_anew:
            faults: list[str] = known["faults"]
            return faults
        faults = judge()
        if self.all_anew:
            write(WRITTEN, name, {"key": key, "faults": faults})
        return faults


def write(path: Path, name: str, entry: object) -> None:
    """Write one entry to a file of entries; other processes may do so at the same time."""
    with path.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        entries = {**json.load(file), name: entry}
        lines = [f"  {json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries)]
        file.seek(0)
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
        file.truncate()
