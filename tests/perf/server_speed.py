"""Times `trainshift server` against the language servers of ruff and Fixit, all in one run; prints ratios.

    PYTHONPATH=tests python -m perf.server_speed [--quick] [--only GROUP ...] [--json FILE]

Every round starts each server anew; edits then go to the servers in turn, so that whatever else the machine
does hits all alike.  No text comes twice, so no server can remember what it has found in it.  Read the
ratios: the milliseconds are the machine's.

ruff is written in Rust.  Fixit is the nearest peer in kind (Python, LibCST, pygls): it runs without its
delay of half a second, but an edit takes it seconds, so it makes few of them, at 1,000 lines only.  It has no
code actions.  Those of ours and of ruff do different things (distribute a statement, remove an import;
distribute the file, fix all of its findings), so read the target there, not the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.client import ServerFailure
from perf.script import script
from perf.session import Server, Session

BIN = Path(sys.executable).parent
FIXIT = Path(__file__).parents[2] / ".venv-bench" / "bin" / "fixit"

OURS = Server(
    "trainshift",
    [str(BIN / "trainshift"), "server"],
    line="    probe_alias = ",
    harmless="t",
    problem="tf",
    code="TF02",
    statement="with tf.GradientTape() as tape:",
    file_kind="source.makeDistributed.trainshift",
)
RUFF = Server(
    "ruff",
    [str(BIN / "ruff"), "server"],
    line="    probe_scale = ",
    harmless="probe_steps",
    problem="probe_stepsx",
    code="F821",
    statement="import shutil",
    file_kind="source.fixAll.ruff",
)
PEER = Server(
    "fixit",
    [str(FIXIT), "lsp", "--debounce-interval", "0"],
    line="    probe_label = ",
    harmless='"probe"',
    problem='f"probe"',
    code="NoRedundantFString",
    slow=True,
)

SHORT, LONG = 1_000, 10_000
# Untimed edits of a session, those of a slow server, and those of a burst.
WARM_UP, FEW, BURST = 2, 4, 50
# Seconds that a person needs to reach the menu.
WHILE = 0.5
# Edits after which a server counts as used.
USE = 100


@dataclass(frozen=True)
class Measure:
    """A row of the table: the measured step, and its limit."""

    group: str
    name: str
    lines: int
    target: str = ""


START = Measure("start", "process start to `initialize` reply", SHORT, "< 100 ms")
FIRST = {
    lines: Measure("start", "`initialized` to first diagnostics", lines, target)
    for lines, target in ((SHORT, "< 150 ms"), (LONG, "< 500 ms"))
}
EDIT = {lines: Measure("edits", "edit to fresh diagnostics", lines, "< ruff") for lines in (SHORT, LONG)}
BURST_END = {lines: Measure("edits", f"last of {BURST} edits at once to the same", lines) for lines in EDIT}
STATEMENT = Measure("actions", "action on a statement, resolved", SHORT, "< 20 ms")
STATEMENT_AT_ONCE = Measure("actions", "the same, at once after an edit", SHORT, "< 20 ms")
FILE = Measure("actions", "action on the file, resolved", SHORT, "< 150 ms")
FILE_AT_ONCE = Measure("actions", "the same, at once after an edit", SHORT, "< 150 ms")
# The action, and the names of its measures a while after an edit and immediately.
ACTIONS = (
    (Session.statement_action, STATEMENT, STATEMENT_AT_ONCE),
    (Session.file_action, FILE, FILE_AT_ONCE),
)
EDITED = {
    lines: Measure("memory", f"resident with one file, {FEW} edits later", lines, target)
    for lines, target in ((SHORT, "< 50 MB"), (LONG, "< 90 MB"))
}
USED = Measure("memory", "resident after 100 edits and two actions", SHORT)
WORN = Measure("memory", "resident after {} edits", SHORT, "flat")
MEASURES = [
    *(START, *FIRST.values()),
    *(*EDIT.values(), *BURST_END.values()),
    *(STATEMENT, STATEMENT_AT_ONCE, FILE, FILE_AT_ONCE),
    *(*EDITED.values(), USED, WORN),
]
GROUPS = list(dict.fromkeys(measure.group for measure in MEASURES))


@dataclass(frozen=True)
class Plan:
    """The number of measurements."""

    rounds: int
    edits: dict[int, int]
    actions: int
    wear: int


THOROUGH = Plan(rounds=5, edits={SHORT: 40, LONG: 20}, actions=8, wear=10_000)
QUICK = Plan(rounds=2, edits={SHORT: 10, LONG: 6}, actions=3, wear=1_000)


class Run:
    """A run of measurements, and its results."""

    def __init__(self, servers: list[Server], plan: Plan, groups: list[str]) -> None:
        self.servers = servers
        self.plan = plan
        self.groups = groups
        self.values: dict[tuple[Measure, str], list[float]] = defaultdict(list)
        self.versions: dict[str, str] = {}
        # In chronological order, without repetitions.
        self.failures: dict[str, None] = {}

    def measure(self) -> None:
        """Measure all that was asked for."""
        progress("warming up")
        with self.sessions(SHORT):
            self.values.clear()
        self.values.clear()
        rounds = self.plan.rounds if {*self.groups} != {"memory"} else 0
        for number in range(rounds):
            for lines in (SHORT, LONG) if {"start", "edits"} & {*self.groups} else (SHORT,):
                progress(f"round {number + 1} of {rounds}, {lines:,} lines")
                self.round(lines)
        if "memory" in self.groups:
            self.wear_out()
        progress("")

    def round(self, lines: int) -> None:
        """Start all servers once, and time edits and actions."""
        with self.sessions(lines) as sessions:
            if "edits" in self.groups:
                for turn in range(WARM_UP + self.plan.edits[lines]):
                    able = sessions if turn < WARM_UP + FEW else fast(sessions)
                    self.each(able, edit(turn), EDIT[lines] if turn >= WARM_UP else None)
                    time.sleep(0.02)
                self.each(fast(sessions), partial(Session.burst, edits=BURST), BURST_END[lines])
            if "actions" in self.groups and lines == SHORT:
                for _ in range(self.plan.actions):
                    for action, calm, at_once in ACTIONS:
                        self.each(acting(sessions), edit(0))
                        time.sleep(WHILE)
                        self.each(acting(sessions), action, calm)
                        self.each(acting(sessions), after_edit(action), at_once)

    def wear_out(self) -> None:
        """Measure memory after a few edits and after many."""
        for lines, measure in EDITED.items():
            with self.sessions(lines) as sessions:
                for turn in range(FEW):
                    self.each(sessions, edit(turn))
                time.sleep(3)
                self.each(sessions, Session.memory, measure)
        with self.sessions(SHORT) as sessions:
            for turn in range(self.plan.wear):
                if turn == USE:
                    self.each(acting(sessions), Session.statement_action)
                    self.each(acting(sessions), Session.file_action)
                    self.each(fast(sessions), Session.memory, USED)
                if turn % 100 == 0:
                    progress(f"memory, edit {turn:,} of {self.plan.wear:,}")
                self.each(fast(sessions), edit(turn))
            self.each(fast(sessions), Session.memory, WORN)

    @contextmanager
    def sessions(self, lines: int) -> Iterator[list[Session]]:
        """All servers that bear as many lines, each with a script open."""
        text = script(lines)
        sessions: list[Session] = []
        try:
            for server in self.servers:
                if lines == SHORT or not server.slow:
                    session = Session(server, text)
                    sessions.append(session)
                    self.each([session], Session.start, START if lines == SHORT else None)
                    self.each([session], Session.open, FIRST[lines])
                    self.versions[server.name] = session.server_version
            yield sessions
        finally:
            for session in sessions:
                session.close()

    def each(
        self, sessions: list[Session], step: Callable[[Session], float], measure: Measure | None = None
    ) -> None:
        """Have each server make a step, and note its time; a server that has failed makes no more."""
        for session in sessions:
            if session.broken:
                continue
            try:
                taken = step(session)
            except ServerFailure as failure:
                session.broken = True
                self.failures[f"{session.server.name}: {failure}"] = None
                continue
            if measure:
                self.values[measure, session.server.name].append(taken)


def edit(turn: int) -> Callable[[Session], float]:
    """An edit of a sequence: it removes the problem or brings it back."""
    return partial(Session.edit, problem=bool(turn % 2))


def after_edit(action: Callable[[Session], float]) -> Callable[[Session], float]:
    """The action asked for as soon as the diagnostics of an edit have come; only the action is timed."""

    def both(session: Session) -> float:
        session.edit(problem=False)
        return action(session)

    return both


def fast(sessions: list[Session]) -> list[Session]:
    """The servers that make edits in no time."""
    return [session for session in sessions if not session.server.slow]


def acting(sessions: list[Session]) -> list[Session]:
    """The servers that have code actions."""
    return [session for session in sessions if session.server.file_kind]


def progress(text: str) -> None:
    """Show the current step on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def quantile(values: list[float], part: float) -> float:
    """The value that this part of them does not exceed."""
    return sorted(values)[round(part * (len(values) - 1))]


def table(run: Run) -> Iterator[str]:
    """Yield the rows of the result."""
    names = [server.name for server in run.servers]
    heads = "".join(f"{name:>20}" for name in names)
    yield f"{'milliseconds, median / 95th percentile':<42}{'lines':>7}{heads}{'ours/ruff':>11}  target"
    for measure in (each for each in MEASURES if each.group in run.groups):
        cells, medians = "", {}
        for name in names:
            values = run.values.get((measure, name))
            if not values:
                cells += f"{'-':>20}"
                continue
            medians[name] = statistics.median(values)
            tail = " MB" if measure.group == "memory" else f" / {quantile(values, 0.95):,.1f}"
            cells += f"{f'{medians[name]:,.1f}{tail}':>20}"
        both = OURS.name in medians and RUFF.name in medians
        ratio = f"{medians[OURS.name] / medians[RUFF.name]:.2f}" if both else "-"
        name = measure.name.format(f"{run.plan.wear:,}")
        yield f"{name:<42}{measure.lines:>7,}{cells}{ratio:>11}  {measure.target}".rstrip()


def record(run: Run) -> dict[str, object]:
    """The result as JSON."""
    return {
        "machine": machine(),
        "servers": run.versions,
        "failures": list(run.failures),
        "measures": [
            {
                "group": m.group,
                "name": m.name,
                "lines": m.lines,
                "target": m.target,
                "server": name,
                "values": values,
            }
            for (m, name), values in run.values.items()
        ],
    }


def machine() -> str:
    """A description of the machine."""
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores, load {load:.1f}"


def main() -> int:
    """Measure, print the table, write the numbers; 1 if a server failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and edits")
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measured value")
    options = parser.parse_args()
    servers = [OURS, RUFF]
    if FIXIT.exists():
        servers.append(PEER)
    else:
        print("Fixit is left out: `make bench` installs it.", file=sys.stderr)
    run = Run(servers, QUICK if options.quick else THOROUGH, options.only)
    print(machine())
    run.measure()
    print(*table(run), sep="\n")
    print(*(f"failed: {failure}" for failure in run.failures), sep="\n", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(record(run), indent=1) + "\n", encoding="utf-8")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
