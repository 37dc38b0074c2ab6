"""Time `trainshift convert` of a 300-line script against its peers, all in this one run.

    PYTHONPATH=tests python -m perf.convert_speed [ROUNDS]

Prints medians of whole processes, start-up included, and their ratio to ours.  The peers are a bare
interpreter (the floor), LibCST's own command line with a codemod that changes nothing (the same
substrate) and ruff (another language).  Read the ratios: the milliseconds are the machine's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
BIN = Path(sys.executable).parent


def main() -> None:
    """Time every command in turn, round by round."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(sample(300), encoding="utf-8")
        python = sys.executable
        commands: dict[str, list[str | Path]] = {
            "trainshift convert": [BIN / "trainshift", "convert", script],
            "trainshift --version": [BIN / "trainshift", "--version"],
            "python -c pass": [python, "-c", "pass"],
            "libcst codemod (no change)": [
                python,
                "-m",
                "libcst.tool",
                "codemod",
                "-x",
                "noop.NOOPCommand",
                script,
            ],
            "ruff check": [BIN / "ruff", "check", "--no-cache", "--exit-zero", script],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=folder, capture_output=True, check=False)
                times[name].append(time.perf_counter() - start)
    ours = statistics.median(times["trainshift convert"])
    print(f"{'command':<28} {'median ms':>10} {'ratio to ours':>14}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<28} {median * 1000:>10.0f} {median / ours:>14.2f}")


def sample(lines: int) -> str:
    """A training script of about `lines` lines: a fixture with more functions in front of its loop."""
    head, mark, tail = (
        (SCRIPTS / "dcgan" / "before.py").read_text(encoding="utf-8").partition("\n@tf.function")
    )
    helper = (
        "\n\ndef helper_{0}(x, y):\n    total = tf.reduce_sum(x) + {0}\n"
        "    print('helper', total)\n    return total * y\n"
    )
    more = max(0, lines - (head + tail).count("\n")) // 6
    return head + "".join(helper.format(number) for number in range(more)) + mark + tail


if __name__ == "__main__":
    main()
