"""Print the time of the quick loop, and that of the last `make test`.

    PYTHONPATH=tests python -m perf.suite_times TIMES

TIMES is what `make test` wrote down: a line for each part, with the seconds that it took and its exit status.
"""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(times: Path) -> None:
    """Time the one, and print both."""
    start = time.perf_counter()
    quick = subprocess.run(["make", "-s", "check"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    print(f"make check  {time.perf_counter() - start:5.0f} s{failed(quick.returncode)}")
    print("\n".join(last(times)))


def last(times: Path) -> list[str]:
    """The recorded times of the last `make test`, as lines to print."""
    if not times.exists():
        return ["make test       ? s: it has not run here"]
    entries = [line.split() for line in times.read_text(encoding="utf-8").splitlines()]
    parts = [(name, int(seconds), int(status)) for name, seconds, status in entries]
    if not parts or parts[-1][0] != "make-test":
        return ["make test       ? s: it was ended when it last ran"]
    *parts, (_, total, status) = parts
    ended = datetime.fromtimestamp(times.stat().st_mtime)
    return [
        f"make test   {total:5} s{failed(status)}, when it last ran ({ended:%Y-%m-%d %H:%M}); of its parts",
        *(f"  {name:10}{seconds:5} s{failed(status)}" for name, seconds, status in parts),
    ]


def failed(status: int) -> str:
    """The note about an exit status, to follow a time."""
    return ", FAILED" if status else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
