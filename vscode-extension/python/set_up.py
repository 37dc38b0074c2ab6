"""Makes an environment that holds the language server: `python set_up.py FOLDER WHEELS [--download]`.

FOLDER is made anew; environments beside it, of other versions of the extension, are removed.  Those of the
wheels in the folder WHEELS that fit this Python are unpacked.  That takes no network, and no pip, which many
a Python lacks.  Where they are not enough to start the server, pip downloads what is missing if it may, and
else the exit status is 3 and nothing is left.  It is 0 once the server starts.  Where another window makes
the same, that is waited for and taken.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDS_DOWNLOAD = 3


def main(folder: Path, wheels: Path, *, downloads: bool) -> int:
    """Make the environment, and say what is done; other windows wait meanwhile."""
    began = time.time()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.parent.with_suffix(".lock")):
        made = folder / "pyvenv.cfg"
        if made.is_file() and made.stat().st_mtime >= began and starts(python_of(folder)):
            return 0
        return make(folder, wheels, downloads=downloads)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until no other process holds a lock, which ends with its process."""
    with lock.open("wb") as opened:
        if os.name == "nt":
            import msvcrt

            while True:
                try:
                    msvcrt.locking(opened.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:
                    pass  # It gives up after ten seconds.
        else:
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def python_of(folder: Path) -> str:
    """The Python of an environment."""
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def make(folder: Path, wheels: Path, *, downloads: bool) -> int:
    """Make the environment anew."""
    print(f"Making {folder} with Python {sys.version.split()[0]}", flush=True)
    own = sorted(wheels.glob("trainshift-*.whl"))
    others = [wheel for wheel in sorted(wheels.glob("*.whl")) if wheel not in own and fits(wheel)]
    venv.create(folder, clear=True, with_pip=False)
    scheme = "nt" if os.name == "nt" else "posix_prefix"
    packages = sysconfig.get_path("purelib", scheme, {"base": str(folder), "platbase": str(folder)})
    python = python_of(folder)
    if others:
        for wheel in [*own, *others]:
            print(f"Unpacking {wheel.name}", flush=True)
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(packages)
    if not starts(python):
        if not downloads:
            print("The wheels of the extension are not enough for this Python", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            return NEEDS_DOWNLOAD
        print("Downloading what the extension does not bring for this Python", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-I", "-m", "pip", "install", *map(str, own)], check=True)
        if not starts(python, stderr=None):
            return 1
    for other in folder.parent.iterdir():
        if other != folder and (other / "pyvenv.cfg").is_file():
            shutil.rmtree(other, ignore_errors=True)
    # Those who have waited know by the time that it was made meanwhile.
    os.utime(folder / "pyvenv.cfg")
    return 0


def fits(wheel: Path) -> bool:
    """Whether a wheel is for this Python, by its name; each package brings those of one platform."""
    pythons = wheel.stem.split("-")[-3].split(".")
    return "py3" in pythons or f"cp{sys.version_info[0]}{sys.version_info[1]}" in pythons


def starts(python: str, stderr: "int | None" = subprocess.DEVNULL) -> bool:
    """Whether the server, and what it is made of, can be imported."""
    needed = "import trainshift.lsp.server, libcst.native"
    return subprocess.run([python, "-I", "-c", needed], stderr=stderr).returncode == 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), downloads="--download" in sys.argv[3:]))
    except subprocess.CalledProcessError as error:
        sys.exit(f"The download failed with status {error.returncode}.")
