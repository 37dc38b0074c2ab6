"""The machine of a proof, in a few words that do not identify its owner."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_PROCESSORS = Path("/proc/cpuinfo")


def machine(gpus: int) -> str:
    """The machine: its system, processor and numbers, such as "Linux x86_64, 2 processors, no GPU"."""
    parts = [f"{platform.system()} {platform.machine()}", _model(), _many(os.cpu_count() or 1, "processor")]
    return ", ".join(filter(None, [*parts, _many(gpus, "GPU")]))


def _model() -> str:
    """The name of the processor; "" if the system does not report it."""
    try:
        lines = _PROCESSORS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), "")
    return " ".join(name.split())


def _many(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' * (number > 1)}"
