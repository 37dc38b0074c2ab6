"""The output of `prove`: the progress of the runs, and the claims as a table in plain words."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from shutil import get_terminal_size
from time import monotonic
from typing import Any

from trainshift.cli.terminal import Printer, visible, wants_colour
from trainshift.proving.prove import TERMINAL
from trainshift.proving.words import about, at, count, notes, verdict

RUNS = {
    "original": "run 1 of 3, on one process",
    "ranks": "run 2 of 3, on {} ranks",
    "data": "run 3 of 3, on {} ranks with the script's own seeds",
}
MARKS = {"holds": ("holds", "green"), "fails": ("FAILS", "bold red"), "not seen": ("not seen", "yellow")}
WIDTH = 100
MOST_PLACES = 4
# Without a terminal, a run reports its progress at this interval, in seconds.
PAUSE = 30.0


class Live:
    """The progress of a proof: one line on a terminal; elsewhere a line for each run, and every half
    minute.
    """

    def __init__(self, ranks: int, steps: int, is_quiet: bool) -> None:
        self.ranks = ranks
        # A caller that shows a pipe as a terminal sets Rich's variable for that.
        self.is_live = sys.stderr.isatty() or os.environ.get(TERMINAL) == "1"
        self.is_quiet = is_quiet and not self.is_live
        self.run = ""
        self.counts: dict[int, int] = {}
        self.shown = ""
        self.begun = self.told = monotonic()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def tell(self, run: str, rank: int, steps: int, limit: int) -> None:
        """Record that a rank has reached a step of a run."""
        if self.is_quiet:
            return
        now = monotonic()
        if run != self.run:
            self.clear()
            self.run, self.counts, self.begun, self.told = run, {}, now, now
            if not self.is_live:
                print(f"Proving: {RUNS[run].format(self.ranks)} ...", file=sys.stderr, flush=True)
        self.counts[rank] = steps
        if self.is_live:
            self.show(self.line(limit, now))
        elif now - self.told > PAUSE:
            print(self.line(limit, now), file=sys.stderr, flush=True)
            self.told = now

    def line(self, limit: int, now: float) -> str:
        """The progress of each rank, on one line of the terminal."""
        head, seconds = f"Proving: {RUNS[self.run].format(self.ranks)}: ", f" ({now - self.begun:.0f} s)"
        end, steps = f" of {limit}" if limit else "", [self.counts[rank] for rank in sorted(self.counts)]
        ways = [
            ", ".join(f"rank {rank} at step {step}" for rank, step in enumerate(steps)) + end,
            f"steps {' '.join(map(str, steps))}{end}",
        ]
        if self.run == "original":
            ways = [f"step {steps[0]}{end}"]
        if not any(steps):
            ways = ["starting"]
        room = columns() - 1 - len(seconds)
        line = next((head + way for way in ways if len(head + way) <= room), head + ways[-1])
        return line[:room] + seconds

    def show(self, line: str) -> None:
        """Replace the line shown before."""
        if line != self.shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
            self.shown = line

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = ""


def columns() -> int:
    """The width of lines: that of the terminal."""
    return min(WIDTH, max(40, get_terminal_size((WIDTH, 24)).columns))


def show(result: dict[str, Any], format_: str, colour: str) -> None:
    """Print the result."""
    if format_ == "json":
        print(json.dumps(result, indent=2))
        return
    printer = Printer(sys.stdout, wants_colour(sys.stdout, colour))
    if result["problem"]:
        printer.line((f"{visible(result['script'])}: {visible(result['problem'])}", ""))
        return
    printer.line((f"{visible(result['script'])}: {about(result)}", "bold"))
    printer.line(("", ""))
    for claim in result["claims"]:
        mark, style = MARKS[claim["verdict"]]
        printer.line((f"  {mark:<9} ", style), (claim["title"], "bold"))
        for line in told(claim):
            printer.line((f"            {line}", ""))
    for line in notes(result):
        printer.line(("", ""))
        printer.line((visible(line), ""))
    printer.line(("", ""))
    _, style = MARKS[result["verdict"]]
    printer.line((f"{verdict(result)}.", style), (f" {count(result)}", ""))


def told(claim: dict[str, Any]) -> list[str]:
    """The lines about a claim."""
    lines = wrapped(claim["says"])
    if claim["verdict"] == "fails":
        for place in claim["places"][:MOST_PLACES]:
            text = f": {visible(place['text'])}" if place["text"] else ""
            lines.append(f"{visible(at(place))}{text}")
        if len(claim["places"]) > MOST_PLACES:
            lines.append(f"and {len(claim['places']) - MOST_PLACES} more")
        lines += wrapped(claim["do"])
        if claim["code"]:
            lines.append(f"Read: trainshift explain {claim['code']}")
    return lines


def wrapped(text: str) -> list[str]:
    """A text in lines that fit."""
    return textwrap.wrap(visible(text), columns() - 12, break_on_hyphens=False)
