"""Time `trainshift check` over packages that grow tenfold, cold and cached, next to ruff and mypy.

For every ten modules, which import each other, there is a program that trains and imports some.  The measure
is processor time, and the question whether the cost of a line grows with the package.  The figures are
appended to `benchmarks/figures.csv` in the repository's root, one line for each run and package, so that slow
growth over commits becomes visible.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from perf.script import script

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "benchmarks" / "figures.csv"
SIZES = (10, 100, 1000)
LINES = 300
# The limit of the ratio: the cost of a line in the largest package over that in the smallest.
MOST_GROWTH = 1.5
_PROGRAMS = 10
_HEADS = ("commit", "date", "files", "lines", "cold", "warm", "ruff", "mypy")


def main() -> None:
    """Write the packages, time each tool once, print and append seconds."""
    costs = []
    for files in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            lines = write(Path(folder), package(files))
            figures = timed(Path(folder))
        costs.append(figures["cold"] / lines)
        told = "   ".join(f"{name} {seconds:7.2f} s" for name, seconds in figures.items())
        print(f"{files:5} files, {lines:7} lines   {told}   {1e6 * costs[-1]:6.0f} us a line")
        append(FIGURES, files, lines, figures)
    growth = costs[-1] / costs[0]
    print(f"a line costs {growth:.2f} times as much in the largest package; {MOST_GROWTH} at most are meant")


def package(files: int) -> Iterator[tuple[str, str]]:
    """The names and texts of a package's files, and of the programs that use it."""
    yield "pyproject.toml", ""
    yield "package/__init__.py", ""
    for index in range(files - 2):
        first = max(index - index % _PROGRAMS, index - 3) if index % _PROGRAMS else index - 3
        near = [f"from package import m{other}" for other in range(max(1, first), index) if other % _PROGRAMS]
        if index % _PROGRAMS == 0:
            yield f"train_{index:04}.py", "\n".join([*near, script(LINES - len(near), index)])
        else:
            yield f"package/m{index}.py", "\n".join([*near, module(LINES - len(near))])


def module(lines: int) -> str:
    """A module of so many lines that trains nothing."""
    block = (
        "\n\ndef scaled_{0}(values, by={0}):\n    found = [each * by for each in values]\n    return found\n"
    )
    return "".join(map(block.format, range(lines // 5)))


def write(folder: Path, files: Iterator[tuple[str, str]]) -> int:
    """Write the files, and count their lines."""
    lines = 0
    for name, text in files:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        lines += text.count("\n")
    return lines


def timed(folder: Path) -> dict[str, float]:
    """The processor's seconds of each tool on a folder."""
    tools = Path(sys.executable).parent
    check = [str(tools / "trainshift"), "check", "-q", "--cache-dir", str(folder / "cache"), "."]
    ruff = [str(tools / "ruff"), "check", "-q", "--isolated", "--no-cache", "--select", "ALL", "."]
    mypy = [
        str(tools / "mypy"),
        "--ignore-missing-imports",
        "--no-incremental",
        "--cache-dir",
        os.devnull,
        ".",
    ]
    commands = {"cold": check, "warm": check, "ruff": ruff, "mypy": mypy}
    return {name: seconds_of(command, folder) for name, command in commands.items()}


def seconds_of(command: list[str], folder: Path) -> float:
    """The processor's seconds that a command and its processes take in a folder."""
    before = os.times()
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def append(path: Path, files: int, lines: int, figures: dict[str, float]) -> None:
    """Add a run to the figures that are kept."""
    path.parent.mkdir(exist_ok=True)
    is_new = not path.exists()
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(_HEADS)
        date = datetime.now().strftime("%Y-%m-%d")
        writer.writerow([commit, date, files, lines, *(f"{each:.2f}" for each in figures.values())])


if __name__ == "__main__":
    main()
