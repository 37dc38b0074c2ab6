"""Times `trainshift check` over 1,000 files of 300 lines against peers, in one run; prints ratios.

The files are the training scripts of the fixtures, cut or repeated to length, each with names of its own.
Peers: ruff with all of its rules (Rust) and Python's own compiler over all files, the floor in Python.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fixtures import SCRIPTS

FILES, LINES = 1000, 300
# So many seconds are what it should take.
MOST = 10


def main() -> None:
    """Write the files, time each tool once, print seconds, ratios and memory."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root, FILES)
        few = root / "few"
        few.mkdir()
        write_files(few, FILES // 10)
        python = sys.executable
        bin_folder = Path(python).parent
        commands = {
            "trainshift check": [
                str(bin_folder / "trainshift"),
                "check",
                "--isolated",
                "-q",
                "--exclude",
                "few/",
            ],
            "ruff check": [
                str(bin_folder / "ruff"),
                "check",
                "-q",
                "--isolated",
                "--no-cache",
                "--select",
                "ALL",
            ],
            "python -m compileall": [python, "-m", "compileall", "-q", "-f"],
        }
        seconds, work = {}, {}
        for name, command in commands.items():
            started, before = time.perf_counter(), os.times()
            subprocess.run([*command, str(root)], check=False, stdout=subprocess.DEVNULL)
            after = os.times()
            seconds[name] = time.perf_counter() - started
            work[name] = sum(after[2:4]) - sum(before[2:4])
        print(f"{FILES} files of {LINES} lines; trainshift should take no more than {MOST} s on two cores")
        for name, taken in seconds.items():
            ratio = seconds["trainshift check"] / taken
            used = f"{taken:6.1f} s, {work[name]:6.1f} s of processors"
            print(f"  {name:<22} {used}   trainshift takes {ratio:6.2f} times as long")
        command = commands["trainshift check"]
        for where, number in ((few, FILES // 10), (root, FILES)):
            print(f"  peak memory of a process with {number:>5} files: {peak(command, where)} MB")


def write_files(root: Path, number: int) -> None:
    """Write `number` scripts of `LINES` lines."""
    texts = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS]
    for index in range(number):
        lines: list[str] = []
        for offset in range(len(texts)):
            lines += whole_statements(texts[(index + offset) % len(texts)], LINES - len(lines))
        lines += ["# end"] * (LINES - len(lines))
        (root / f"train_{index:04}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def whole_statements(text: str, most: int) -> list[str]:
    """As many lines of a script, up to `most`, as hold whole top-level statements."""
    ends = [statement.end_lineno or 0 for statement in ast.parse(text).body]
    return text.splitlines()[: max((end for end in ends if end <= most), default=0)]


def peak(command: list[str], where: Path) -> int:
    """The largest resident size, in MB, of any process that checks `where` serves."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command, str(where)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1]) // (1024 if sys.platform != "darwin" else 1024 * 1024)


if __name__ == "__main__":
    main()
