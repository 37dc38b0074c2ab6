"""The end of a rank: its kind, its cause, and its place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from trainshift.proving.observed.record import Run

MEND = "Fix the error that ended it; the ranks that were still waiting for it were ended, too."
OUTSIDE = (
    "Give the absolute path of the file: processes run in copies of the folder in which prove was started."
)
ARGUMENTS = "Give the arguments of the script after --: trainshift prove SCRIPT -- ARGUMENTS."
XLA = "Set model.jit_compile = False: on GPUs Keras 3 compiles by XLA, which does not support Horovod."
# The line of a traceback that names the error.
ERROR = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
# Uninformative lines below it: stack lines and node names.
NOT_SAID = re.compile(r'File "|\[\[|\d+ (root|successful|derived)|.*most recent call last')
# The message of Python before the stack of a crash.
CRASH = "Fatal Python error:"
# The number of last lines that describe an error.
MOST_LINES = 4
# A line of a traceback, or of a stack, in the script itself.
OWN_LINE = re.compile(r'\s*File "[^"]*/rank\d+/(?:work|here)/')


def ends_in_xla(run: Run) -> bool:
    """Return whether a rank failed since XLA has no operation for Horovod's."""
    return run.record is not None and "XLA_CPU_JIT" in run.record.error


def is_failed(run: Run) -> bool:
    """Return whether a rank ended badly, before it was stopped."""
    stopped = run.record is not None and run.record.stopped
    return not stopped and (run.exit_code != 0 or run.record is None)


def is_consequence(run: Run) -> bool:
    """Return whether a rank ended because another one had."""
    return run.record is not None and "Horovod" in run.record.error and "shut down" in run.record.error


def by_cause(ranks: Sequence[Run], alone: Collection[int]) -> list[tuple[int, Run]]:
    """The ranks that failed, causes first; `alone` are those that no other rank ended."""
    failed = [(rank, run) for rank, run in enumerate(ranks) if is_failed(run)]
    return sorted(
        failed, key=lambda each: (each[1].exit_code < 0 and each[0] not in alone, is_consequence(each[1]))
    )


def left(run: Run, ranks: Sequence[Run]) -> list[int]:
    """The ranks that had ended well when one ended because others had gone; none if it ended otherwise."""
    return [rank for rank, each in enumerate(ranks) if not is_failed(each)] if is_consequence(run) else []


def remedy(run: Run) -> str:
    """The remedy for a rank's failure."""
    if ends_in_xla(run):
        return XLA
    if re.search("^usage:", run.stderr, re.M | re.I):
        return ARGUMENTS
    # Files outside the project are not copied with it.
    return OUTSIDE if re.search(r"No such file or directory: '\.\./", reason(run)) else MEND


def how(status: int) -> str:
    """Return how a process ended."""
    killed = {-9: " (killed: out of memory?)", -11: " (a crash)", -6: " (aborted)"}
    return (
        f"was ended by signal {-status}{killed.get(status, '')}"
        if status < 0
        else f"ended with status {status}"
    )


def reason(run: Run) -> str:
    """The last line of a process's error."""
    error = (run.record.error if run.record else "") or run.stderr or run.log.partition(CRASH)[0]
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    last = next((at for at in range(len(lines) - 1, -1, -1) if ERROR.match(lines[at])), len(lines) - 1)
    # TensorFlow prints the error below the place where its graph was made.
    more = (
        [line for line in lines[last + 1 :] if not NOT_SAID.match(line)]
        if lines and lines[last][-1] == ":"
        else []
    )
    return " ".join(lines[last : last + 1] + more[-1:])[:300]


def unawaited(failed: Run, ranks: Sequence[Run]) -> str:
    """A file that a rank lacked when it failed and that another one has written; empty if there is none.

    Files written by other ranks become visible here after waiting for them, as in one folder.
    """
    error = ((failed.record.error if failed.record else "") or failed.stderr).strip()
    said = "\n".join(error.splitlines()[-MOST_LINES:])
    for run in ranks:
        for file in run.files if run is not failed else ():
            name = file.partition("/")[2]
            # A checkpoint is named by the common prefix of its files.
            known: str = name.removesuffix(".index")
            named = re.search(rf"(?<![\w.-]){re.escape(known)}(?!\.?[\w-])", said)
            if known and named and file not in failed.files:
                return known
    return ""


def error_places(run: Run, rank: int) -> list[tuple[str, str, int]]:
    """The last line of the script in a traceback."""
    error = run.record.error if run.record else run.stderr
    lines = [line for line in error.splitlines() if OWN_LINE.match(line)]
    return [(at, "", rank) for line in lines[-1:] if (at := file_and_line(line))]


def stack_places(run: Run, rank: int) -> list[tuple[str, str, int]]:
    """The stack of a process when it was ended, from its log."""
    lines = [line for line in run.log.splitlines() if OWN_LINE.match(line)]
    return [(at, "", rank) for line in lines[:1] if (at := file_and_line(line))]


def file_and_line(line: str) -> str:
    """FILE:LINE of a line of a traceback."""
    name, _, rest = line.strip()[6:].partition('", line ')
    number = rest.partition(",")[0].split()[0] if rest else ""
    return f"{name}:{number}" if number.isdecimal() else ""
