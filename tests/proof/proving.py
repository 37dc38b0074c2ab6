"""Prove scripts like `trainshift prove`, with forked processes."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proof.forks import forked
from proof.harness import ENVIRONMENT
from trainshift.proving.interpreter import Interpreter
from trainshift.proving.launch import Launch, Started
from trainshift.proving.project import Project
from trainshift.proving.prove import MARK, Request, prove


@cache
def here() -> Interpreter:
    """The Python of the tests, which other tests may collect before it has Horovod."""
    return Interpreter(sys.executable, (3, 11, 0), version("tensorflow-cpu"), version("horovod"), True, True)


def proven(
    folder: Path,
    before: str,
    after: str | None = None,
    interpreter: Interpreter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The proof of a script in a folder; `after` is its conversion.

    It runs in the Python of the tests, unless an `interpreter` is given.
    """
    (folder / "train.py").write_text(before, encoding="utf-8")
    command = (str(folder / "train.py"),)
    one = Project(str(folder), str(folder), command)
    texts = {} if after is None else {"train.py": after.encode()}
    several = Project(str(folder), str(folder), command, texts)
    return prove(Request(one, several, interpreter or here(), **options), lambda *_: None, begin)


def begin(launch: Launch, python: str) -> Started:
    """Fork the process of a launch."""
    # The zygote outlives the proof, and is not part of it.
    own = {
        name: value
        for name, value in launch.environment.items()
        if not name.startswith("PYTHON") and name != MARK
    }
    rank = launch.arguments[1]
    return forked(launch._replace(environment={**own, **ENVIRONMENT}), int(rank), python)


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    """The verdict of each claim."""
    return {claim["id"]: claim["verdict"] for claim in result["claims"]}


def failing(result: dict[str, Any]) -> set[str]:
    """The claims that fail."""
    return {name for name, verdict in verdicts(result).items() if verdict == "fails"}
