"""The record of a process, read once it has ended."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainshift.proving.observed.record import Record, Run

# Lines that TensorFlow, XLA and Horovod log: natively, where `tf.print` writes too, and by Python.
NATIVE_LOG = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] .*"
    r"|[IWEF]\d{4} .*"
    r"|WARNING: All log messages before absl.*"
    r"|\[\d{4}-\d\d-\d\d .*"
    # The time of a batch on a busy machine is not output of the script.
    r"|WARNING:tensorflow:Callback method `\w+` is slow compared to the batch time .*"
)

# TensorFlow's converted functions, and other files of a run that the script did not write.
NOT_OUTPUT = re.compile(r"(^|/)(__autograph_generated_file[^/]*|__pycache__/.*|[^/]*\.pyc)$")
# The limit of a stream that is examined: scripts may print without end.
MOST_TEXT = 1 << 20


def read_run(directory: Path, exit_code: int, given: Mapping[str, str], tops: tuple[str, ...]) -> Run:
    """Read the files that a process has left in a directory.

    `given` are the files that existed before, by path and digest of their content; `tops` are the folders to
    which it may have written.
    """
    record = directory / "record"
    saved = (record / "record.json").exists()
    values: dict[str, Any] = {}
    if saved:
        numpy: Any = importlib.import_module("numpy")
        with numpy.load(record / "values.npz") as archive:
            values = dict(archive)
    return Run(
        exit_code=exit_code,
        stdout=without_log(text(record / "stdout.txt")),
        stderr=without_log(text(record / "stderr.txt")),
        native=without_log(text(record / "native.txt")),
        log=text(record / "noise.txt") + text(record / "native.txt"),
        files=tuple(written(directory, given, tops)),
        record=Record.load(record / "record.json") if saved else None,
        values=values,
    )


def text(path: Path) -> str:
    """The text of a file, or the end of a long one; empty if there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - MOST_TEXT))
        return stream.read().decode("utf-8", "replace")


def written(directory: Path, given: Mapping[str, str], tops: tuple[str, ...]) -> list[str]:
    """The files that the process left, relative to its directory, including changed ones."""
    found = []
    for top in tops:
        for path in sorted((directory / top).rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_symlink() or not path.is_file() or NOT_OUTPUT.search(name):
                continue
            if name not in given or fingerprint(path.read_bytes()) != given[name]:
                found.append(name)
    return found


def fingerprint(content: bytes) -> str:
    """A short text that is equal for equal contents."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def without_log(text: str) -> str:
    """The text without the lines that TensorFlow, XLA and Horovod logged."""
    return "".join(line for line in text.splitlines(keepends=True) if not NATIVE_LOG.match(line))
