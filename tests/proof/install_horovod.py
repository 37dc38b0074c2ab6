"""Install Horovod into the environment of this Python, from source and against its TensorFlow.

    python tests/proof/install_horovod.py VERSION

For TensorFlow 2.19 and later the source is patched first, like by `trainshift doctor`.  The wheel is cached
for the user, keyed by all of its dependencies: one for another TensorFlow would crash.  So pip's own cache,
which ignores these, is not used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

BUILD = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
}
# A CMake wrapper that optimizes little, writes no debug information and builds Gloo once: half of the work.
# The tests prove what Horovod does, not its speed.
CMAKE = """#!/bin/sh
case "$1" in
  --build) shift 2; exec cmake --build . --target tensorflow "$@";;
  --*) exec cmake "$@";;
  *) exec cmake "$@" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=$FLAGS" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=$FLAGS";;
esac
"""
FLAGS = "-O1 -DNDEBUG"
# Modules that later versions lack, and their users.
FIRST_PATCHED = (2, 19)
PATCH = Path(__file__).parents[2] / "server" / "trainshift" / "host" / "pythons" / "horovod.patch"
PIP = (sys.executable, "-m", "pip", "-q")


def main(horovod: str) -> None:
    """Install the cached wheel, if it works; else build one, install it and cache it."""
    if works():
        return
    place = cache() / "-".join(("horovod", horovod, *tags()))
    if kept := [*place.glob("*.whl")]:
        print(f"Installing Horovod from {place} ...", flush=True)
        install(kept[0])
        if works():
            return
    print("Building Horovod (2 to 5 minutes) ...", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        # It is built with the programs of this environment, and not as a part of a `make`.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        cmake = Path(directory) / "cmake"
        cmake.write_text(CMAKE)
        cmake.chmod(0o755)
        environment |= {**BUILD, "PATH": path, "HOROVOD_CMAKE": str(cmake), "FLAGS": FLAGS}
        build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir", "-w", directory]
        subprocess.run([*build, source(horovod, Path(directory))], env=environment, check=True)
        (wheel,) = Path(directory).glob("*.whl")
        install(wheel)
        if not works():
            sys.exit("Horovod was built, but cannot be imported")
        keep(wheel, place)


def source(horovod: str, directory: Path) -> str:
    """The source for pip to build: a version, or a folder with the patched source."""
    if tuple(map(int, version("tensorflow-cpu").split(".")[:2])) < FIRST_PATCHED:
        return f"horovod=={horovod}"
    fetch = [*PIP, "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    subprocess.run([*fetch, "-d", directory, f"horovod=={horovod}"], check=True)
    folder = directory / f"horovod-{horovod}"
    shutil.unpack_archive(folder.with_name(f"{folder.name}.tar.gz"), directory)
    subprocess.run(["patch", "-s", "-p1", "-d", str(folder), "-i", str(PATCH)], check=True)
    return str(folder)


def works() -> bool:
    """Return whether Horovod can be imported with TensorFlow."""
    command = [sys.executable, "-c", "import horovod.tensorflow"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def install(wheel: Path) -> None:
    """Replace the installed wheel."""
    subprocess.run([*PIP, "install", "--force-reinstall", "--no-deps", str(wheel)], check=True)


def keep(wheel: Path, place: Path) -> None:
    """Put a copy into the cache, completely or not at all; an unwritable cache is skipped."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        part = place / f"{wheel.name}.{os.getpid()}.part"
        part.write_bytes(wheel.read_bytes())
        part.replace(place / wheel.name)
    except OSError as error:
        print(f"Horovod's wheel was not kept: {error}")


def cache() -> Path:
    """The user's directory of wheels."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "trainshift" / "wheels"


def tags() -> list[str]:
    """The dependencies of a Horovod wheel: the versions of TensorFlow and Python, the machine, its C
    library.
    """
    library = (os.confstr("CS_GNU_LIBC_VERSION") or "").replace(" ", "-")
    return [
        f"tensorflow-{version('tensorflow-cpu')}",
        str(sysconfig.get_config_var("SOABI")),
        sysconfig.get_platform(),
        library,
    ]


if __name__ == "__main__":
    main(sys.argv[1])
