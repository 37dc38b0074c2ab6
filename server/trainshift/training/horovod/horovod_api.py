"""Horovod's own names and signatures, without Horovod.

The data is `horovod_api.json`, written by `python -m trainshift.dev.generate_horovod_api` from the installed
package; this module reads it once, at the first question.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from trainshift.libraries import api

PATH = Path(__file__).with_name("horovod_api.json")
TENSORFLOW = "horovod.tensorflow"
KERAS = ("horovod.tensorflow.keras", "horovod.keras")
DOORS = (TENSORFLOW, *KERAS)
"""The modules of Horovod that scripts with TensorFlow import."""
RANK = ("rank", "local_rank", "cross_rank")
SIZE = ("size", "local_size", "cross_size")
COLLECTIVE = (
    "allreduce", "allreduce_", "grouped_allreduce", "grouped_allreduce_", "allgather", "allgather_object",
    "grouped_allgather", "broadcast", "broadcast_", "broadcast_object", "broadcast_variables",
    "broadcast_global_variables", "alltoall", "reducescatter", "grouped_reducescatter", "join", "barrier",
)  # fmt: skip
"""The functions that all ranks or none must call."""


@cache
def _modules() -> dict[str, dict[str, str | None]]:
    modules: dict[str, dict[str, str | None]] = json.loads(PATH.read_text(encoding="utf-8"))["modules"]
    return modules


def has_module(name: str) -> bool:
    """Return whether the members of a module are recorded."""
    return name in _modules()


def has(name: str) -> bool:
    """Return whether `name`, in full, is a member of a recorded module."""
    module, _, member = name.rpartition(".")
    return member in _modules().get(module, ())


def homes(member: str) -> list[str]:
    """The modules of `DOORS` that have a member of this name, in order."""
    return [module for module in DOORS if member in _modules()[module]]


@cache
def signature(name: str) -> api.Signature | None:
    """The signature of a function or class, by its full name; None if it is unknown."""
    module, _, member = name.rpartition(".")
    return api.read_signature(_modules().get(module, {}).get(member))
