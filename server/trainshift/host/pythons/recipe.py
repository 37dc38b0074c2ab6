"""Recipe: the commands that install TensorFlow in a Python, and build Horovod for it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from msgspec import Struct

from trainshift.host.pythons.patch import FIRST_PATCHED

HOROVOD = "0.28.1"
_TOOLS = '"setuptools<81" wheel "cmake<4" cloudpickle psutil pyyaml packaging cffi'
_WITH_TENSORFLOW = "HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1"
_SOURCE = f"horovod-{HOROVOD}"


class TensorFlows(Struct, frozen=True):
    """A line of TensorFlow releases: first, last, Pythons with wheels for all, their Keras, and the
    recommended release.
    """

    first: tuple[int, int]
    last: tuple[int, int]
    pythons: tuple[tuple[int, int], tuple[int, int]]
    keras: int
    choice: str


LINES = (
    TensorFlows((2, 12), (2, 15), ((3, 9), (3, 11)), 2, "2.15.1"),
    TensorFlows((2, 16), (2, 21), ((3, 10), (3, 13)), 3, "2.21.0"),
)
"""The tested version lines; the first one has the Keras that results are written for by default."""


class Build(Struct, frozen=True):
    """A way to build Horovod: its purpose, environment variables and requirements, and whether we have
    run it.
    """

    name: str
    variables: str
    needs: str
    was_run: bool


BUILDS = (
    Build("CPU, Gloo", "HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1", "g++ and make", True),
    Build("CPU, MPI", "HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1", "g++, make and an MPI with mpicxx", True),
    Build(
        "NVIDIA GPUs, Gloo and NCCL",
        "HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1",
        "g++, make, CUDA with nvcc, and NCCL with its headers",
        False,
    ),
    Build(
        "NVIDIA GPUs, MPI and NCCL",
        "HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1",
        "g++, make, CUDA with nvcc, NCCL with its headers, and an MPI with mpicxx",
        False,
    ),
)
"""Ways to build Horovod, the one to begin with first; those for GPUs follow its documentation."""


def release(version: str) -> tuple[int, int]:
    """The first two numbers of a version, with 0 for a part that is not a number."""
    first, second, *_ = [*version.split("."), "", ""]
    return (int(first) if first.isdecimal() else 0, int(second) if second.isdecimal() else 0)


def numbered(version: tuple[int, int]) -> str:
    """A version in the usual notation."""
    return ".".join(map(str, version))


def line_of(version: str) -> TensorFlows | None:
    """The line that a TensorFlow belongs to; None for one that was not tested with Horovod."""
    return next((line for line in LINES if line.first <= release(version) <= line.last), None)


def line_for(python: tuple[int, ...]) -> TensorFlows | None:
    """The TensorFlow versions for a Python; None if none has a wheel for it."""
    return next((line for line in LINES if line.pythons[0] <= python[:2] <= line.pythons[1]), None)


def build_tensorflow(path: str, line: TensorFlows, *, gpu: bool) -> str:
    """The command that installs a TensorFlow of a line."""
    package = "tensorflow[and-cuda]" if gpu else "tensorflow-cpu"
    return f'{shlex.quote(path)} -m pip install "{package}=={line.choice}"'


def build_horovod(path: str, tensorflow: str, build: Build) -> Iterator[str]:
    """The commands, one per line, that build Horovod for a TensorFlow of the Python at `path`, and install
    it.

    They leave the source in the current directory.  Apart from a compiler, they call only programs of that
    Python.
    """
    python = shlex.quote(path)
    folder = shlex.quote(os.path.dirname(path))
    yield f"{python} -m pip install {_TOOLS}"
    yield f"{python} -m pip download --no-deps --no-build-isolation --no-binary :all: horovod=={HOROVOD}"
    yield f"tar -xzf {_SOURCE}.tar.gz"
    if release(tensorflow) >= FIRST_PATCHED:
        yield "trainshift doctor --write-patch horovod.patch"
        yield f"patch -p1 -d {_SOURCE} -i ../horovod.patch"
    yield (
        f'PATH={folder}:"$PATH" {_WITH_TENSORFLOW} {build.variables} '
        f"{python} -m pip install --force-reinstall --no-deps --no-build-isolation --no-cache-dir ./{_SOURCE}"
    )
