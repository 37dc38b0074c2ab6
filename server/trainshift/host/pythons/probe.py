"""Probe: run by the inspected Python; prints its packages as JSON.

`probe.py packages` loads nothing; `probe.py horovod` loads TensorFlow and Horovod, which may crash. The last
line of its output is the answer.  It uses only the standard library of Python 3.8.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from importlib import import_module

# A distribution of each product, the usual one first.
PACKAGES = {
    "tensorflow": (
        "tensorflow",
        "tensorflow-cpu",
        "tensorflow-gpu",
        "tensorflow-intel",
        "tensorflow-macos",
        "tensorflow-rocm",
        "tf-nightly",
    ),
    "keras": ("keras", "keras-nightly"),
    "tf_keras": ("tf-keras", "tf-keras-nightly"),
    "horovod": ("horovod",),
}
VARIABLES = ("KERAS_BACKEND", "TF_USE_LEGACY_KERAS")
PROGRAMS = ("g++", "make", "patch", "tar", "mpicxx", "nvcc")


def main() -> None:
    """Print the answer to the question that the argument names."""
    sys.path.pop(0)  # This folder, whose modules are not for that Python.
    print("\n" + json.dumps({"packages": packages, "horovod": horovod}[sys.argv[1]]()))


def packages() -> dict[str, object]:
    """The versions of installed packages, and the programs that a build needs."""
    from importlib.metadata import version

    told: dict[str, object] = {
        "python": list(sys.version_info[:3]),
        "variables": {name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
        "programs": [name for name in PROGRAMS if shutil.which(name)],
    }
    for product, names in PACKAGES.items():
        versions = []
        for name in names:
            with suppress(Exception):  # Not installed, or without readable metadata.
                versions.append(version(name))
        told[product] = next(filter(None, versions), "")
    return told


def horovod() -> dict[str, object]:
    """Report whether TensorFlow and Horovod's part for it can be imported, and the options of Horovod's
    build.
    """
    try:
        tensorflow = import_module("tensorflow")
    except Exception as error:
        return {"tensorflow_problem": _last_line(error)}
    try:
        hvd = import_module("horovod.tensorflow")
        built = {name: bool(getattr(hvd, name + "_built")()) for name in ("gloo", "mpi", "nccl")}
    except Exception as error:
        return {"version": tensorflow.__version__, "problem": _last_line(error)}
    return {
        "version": tensorflow.__version__,
        "built": [name for name, is_built in built.items() if is_built],
    }


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()}"


if __name__ == "__main__":
    main()
