"""What `prove` shows: how far the runs are, and the claims as a table in plain words."""

from __future__ import annotations

import json
import sys
import textwrap
from time import monotonic
from typing import Any

from trainshift.cli.terminal import Printer, visible, wants_colour

RUNS = {
    "original": "one process",
    "ranks": "{} ranks",
    "data": "{} ranks, for their data",
}
MARKS = {"holds": ("holds", "green"), "fails": ("FAILS", "bold red"), "not seen": ("not seen", "yellow")}
VERDICTS = {
    "holds": "It holds.",
    "fails": "It does not hold.",
    "not seen": "Nothing is proven: too little was seen.",
}
WIDTH = 100
MOST_PLACES = 4


class Live:
    """One line on a terminal that always says what runs; elsewhere a line for each run."""

    def __init__(self, ranks: int, steps: int, is_quiet: bool) -> None:
        self.ranks = ranks
        self.is_live = sys.stderr.isatty()
        self.is_quiet = is_quiet and not self.is_live
        self.run = ""
        self.counts: dict[int, int] = {}
        self.shown = ""
        self.begun = monotonic()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def tell(self, run: str, rank: int, steps: int, limit: int) -> None:
        """A rank is at a step of a run."""
        if self.is_quiet:
            return
        if run != self.run:
            self.clear()
            self.run, self.counts, self.begun = run, {}, monotonic()
            if not self.is_live:
                print(f"Running {RUNS[run].format(self.ranks)} ...", file=sys.stderr, flush=True)
        self.counts[rank] = steps
        if self.is_live:
            end = f" of {limit}" if limit else ""
            counts = ", ".join(
                f"rank {each}: step {count}{end}" for each, count in sorted(self.counts.items())
            )
            if run == "original":
                counts = f"step {steps}{end}"
            started = any(self.counts.values())
            what = counts if started else "starting"
            self.show(f"Running {RUNS[run].format(self.ranks)}: {what} ({monotonic() - self.begun:.0f} s)")

    def show(self, line: str) -> None:
        """Put a line in place of the one before."""
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


def show(result: dict[str, Any], format_: str, colour: str) -> None:
    """Print the result."""
    if format_ == "json":
        print(json.dumps(result, indent=2))
        return
    printer = Printer(sys.stdout, wants_colour(sys.stdout, colour))
    if result["problem"]:
        printer.line((f"{visible(result['script'])}: {visible(result['problem'])}", ""))
        return
    how = "its conversion" if result["converted"] else "the script as it is"
    printer.line(
        (f"{visible(result['script'])}: {how} on {result['np']} ranks, {result['steps']} steps", "bold")
    )
    printer.line(("", ""))
    for claim in result["claims"]:
        mark, style = MARKS[claim["verdict"]]
        printer.line((f"  {mark:<9} ", style), (claim["title"], "bold"))
        for line in told(claim):
            printer.line((f"            {line}", ""))
    for line in notes(result):
        printer.line(("", ""))
        printer.line((line, ""))
    printer.line(("", ""))
    _, style = MARKS[result["verdict"]]
    printer.line((verdict(result), style))


def verdict(result: dict[str, Any]) -> str:
    """The verdict in words; what was stopped holds as far as it was run."""
    if result["stopped"] and result["verdict"] == "holds":
        return f"It holds for {result['steps']} steps."
    return VERDICTS[result["verdict"]]


def told(claim: dict[str, Any]) -> list[str]:
    """What is said of a claim, line by line."""
    lines = wrapped(claim["says"])
    if claim["verdict"] == "fails":
        for place in claim["places"][:MOST_PLACES]:
            text = f": {visible(place['text'])}" if place["text"] else ""
            rank = f" (rank {place['rank']})" if place["rank"] else ""
            lines.append(f"{visible(place['path'])}:{place['line']}{rank}{text}")
        lines += wrapped(claim["do"])
        if claim["code"]:
            lines.append(f"Read: trainshift explain {claim['code']}")
    return lines


def wrapped(text: str) -> list[str]:
    """A text in lines that fit."""
    return textwrap.wrap(visible(text), WIDTH - 12, break_on_hyphens=False)


def notes(result: dict[str, Any]) -> list[str]:
    """What a person should know besides."""
    found = []
    for each in result["written_elsewhere"]:
        found.append(f"Rank {each['rank']} wrote outside the scratch copy: {visible(each['path'])}")
    for path in result["changed"]:
        found.append(f"The script changed a file of yours through a link: {visible(path)}")
    if result["stopped"]:
        found.append(f"Stopped after {result['steps']} steps; --steps 0 runs to the end.")
    return found
