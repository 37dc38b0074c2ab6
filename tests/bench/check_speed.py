"""Times `trainshift check` over 1,000 files of 300 lines against peers, in one run; prints ratios.

The files are the training scripts of the fixtures, cut or repeated to length, each with names of its own.
Peers: ruff (Rust, one process for all) and pyflakes' work as Python's own `compileall` does it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fixtures import SCRIPTS

FILES, LINES = 1000, 300


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
            "trainshift check": [str(bin_folder / "trainshift"), "check", "--isolated", "-q", "--exclude", "few/"],
            "ruff check": [str(bin_folder / "ruff"), "check", "-q", "--isolated", "--no-cache", "--select", "ALL"],
            "python -m compileall": [python, "-m", "compileall", "-q", "-f"],
        }
        seconds = {}
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run([*command, str(root)], check=False, stdout=subprocess.DEVNULL)
            seconds[name] = time.perf_counter() - started
        print(f"{FILES} files of {LINES} lines")
        for name, taken in seconds.items():
            ratio = seconds["trainshift check"] / taken
            print(f"  {name:<22} {taken:6.1f} s   trainshift takes {ratio:6.2f} times that")
        command = commands["trainshift check"]
        for where, number in ((few, FILES // 10), (root, FILES)):
            print(f"  peak memory of a process with {number:>5} files: {peak(command, where)} MB")


def write_files(root: Path, number: int) -> None:
    """Write `number` scripts of `LINES` lines."""
    texts = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS]
    for index in range(number):
        statements = "".join(texts[(index + offset) % len(texts)] + "\n" for offset in range(6))
        (root / f"train_{index:04}.py").write_text(cut(statements), encoding="utf-8")


def cut(text: str) -> str:
    """The first `LINES` lines of a text, ending where a top-level statement ends."""
    lines = text.splitlines(keepends=True)[: LINES + 40]
    ends = [number for number, line in enumerate(lines) if line.startswith(("import ", "from ", "def ", "@"))]
    end = max((number for number in ends if number <= LINES), default=LINES)
    return "".join(lines[:end]) + "# end\n" * (LINES - end)


def peak(command: list[str], where: Path) -> int:
    """The largest resident size, in MB, of any process that checks `where` serves."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command, str(where)], capture_output=True, text=True, check=True
    )
    scale = 1024 if resource.__name__ and sys.platform != "darwin" else 1024 * 1024
    return int(done.stdout) // scale


if __name__ == "__main__":
    main()
