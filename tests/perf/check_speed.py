"""Time `trainshift check` over 1,000 files of 300 lines against peers, in one run; print ratios.

The files are generated training scripts, and, for itself alone, the scripts of the fixtures, cut or repeated
to length: these consist mostly of findings, some of them hazards of Horovod. Peers: ruff with all of its
rules (Rust) and Python's own compiler over all files, the floor in Python.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from perf.script import script
from support.fixtures import SCRIPTS

FILES, LINES = 1000, 300
# The target, in seconds.
MOST = 10


def main() -> None:
    """Write the files, time each tool once, print seconds, ratios and memory."""
    with tempfile.TemporaryDirectory() as folder:
        scripts, few, dense = (Path(folder) / name for name in ("scripts", "few", "dense"))
        write_files(scripts, (script(LINES, index) for index in range(FILES)))
        write_files(few, (script(LINES, index) for index in range(FILES // 10)))
        write_files(dense, map(from_fixtures, range(FILES)))
        bin_folder = Path(sys.executable).parent
        check = [str(bin_folder / "trainshift"), "check", "--isolated", "--no-cache", "-q"]
        ruff = [str(bin_folder / "ruff"), "check", "-q", "--isolated", "--no-cache", "--select", "ALL"]
        commands = {
            "trainshift check": [*check, str(scripts)],
            "ruff check": [*ruff, str(scripts)],
            "python -m compileall": [sys.executable, "-m", "compileall", "-q", "-f", str(scripts)],
            "trainshift, fixtures": [*check, str(dense)],
        }
        print(f"{FILES} files of {LINES} lines; trainshift should take no more than {MOST} s on two cores")
        first = 0.0
        for name, command in commands.items():
            started, before = time.perf_counter(), os.times()
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            taken, after = time.perf_counter() - started, os.times()
            first = first or taken
            work = sum(after[2:4]) - sum(before[2:4])
            used = f"{taken:6.1f} s, {work:6.1f} s of processors"
            print(f"  {name:<22} {used}   trainshift takes {first / taken:6.2f} times as long")
        for where, number in ((few, FILES // 10), (scripts, FILES)):
            print(f"  peak memory of a process with {number:>5} files: {peak(check, where)} MB")


def write_files(folder: Path, texts: Iterable[str]) -> None:
    """Write scripts into a new folder."""
    folder.mkdir()
    for index, text in enumerate(texts):
        (folder / f"train_{index:04}.py").write_text(text, encoding="utf-8")


def from_fixtures(index: int) -> str:
    """A script of `LINES` lines from those of the fixtures, the first of them by index."""
    lines: list[str] = []
    for offset in range(len(SCRIPTS)):
        text, ends = fixtures()[(index + offset) % len(SCRIPTS)]
        most = max((end for end in ends if end <= LINES - len(lines)), default=0)
        lines += text.splitlines()[:most]
    return "\n".join([*lines, *["# end"] * (LINES - len(lines)), ""])


@cache
def fixtures() -> list[tuple[str, list[int]]]:
    """The text of each fixture's script, and the lines at which its top-level statements end."""
    texts = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS]
    return [(text, [each.end_lineno or 0 for each in ast.parse(text).body]) for text in texts]


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
