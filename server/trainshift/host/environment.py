"""Environment: find the TensorFlow of the Python that runs scripts, from its folders and without
running it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from trainshift.engine.versions.demands import TENSORFLOW, demand_for
from trainshift.engine.versions.runtime import Runtime, installed
from trainshift.host.declarations import project_folders

_BESIDE = (".venv", "venv")
_FOLDERS = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")
_INSTALLED = re.compile(
    r"(?:tensorflow(?:_cpu|_gpu|_intel|_macos|_rocm)?|tf_nightly(?:_cpu)?)-(\d[^-]*)\.dist-info"
)


def environment(path: str = "", python: str = "") -> Runtime | None:
    """The versions installed in the Python that runs the script at `path`; None if it has no TensorFlow.

    That Python is `python`, a path or a name.  Otherwise it is the first with TensorFlow of these: the active
    environment, one in the script's project (`.venv` or `venv`), the first Python on the PATH, and the one
    that runs this code.
    """
    for prefix in _prefixes(path, python):
        for version in _versions(prefix):
            return installed(demand_for(TENSORFLOW, version, prefix.as_posix()))
    return None


def prefix_of(python: str) -> str:
    """The folder that contains a Python's package folders, given its path."""
    # A virtual environment is located by its link to a Python, not by the target.
    return Path(os.path.abspath(python)).parents[1].as_posix()


def _prefixes(path: str, python: str) -> Iterator[Path]:
    """Yield the folders that contain a Python's package folders."""
    if python:
        found = shutil.which(python)
        yield from [Path(prefix_of(found))] if found else []
        return
    yield from map(Path, filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX"))))
    for folder in project_folders(os.path.dirname(os.path.abspath(path))) if path else ():
        yield from (Path(folder, name) for name in _BESIDE)
    if found := shutil.which("python") or shutil.which("python3"):
        yield Path(prefix_of(found))
    yield Path(sys.prefix)


def _versions(prefix: Path) -> Iterator[str]:
    for pattern in _FOLDERS:
        for folder in sorted(prefix.glob(pattern)):
            for name in sorted(os.listdir(folder)):
                if found := _INSTALLED.fullmatch(name):
                    yield found[1]
