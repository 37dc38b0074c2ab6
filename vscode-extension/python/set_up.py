"""Makes an environment that holds the language server: `python set_up.py FOLDER WHEELS`.

FOLDER is made anew; environments beside it, of other versions of the extension, are removed.  Those of the
wheels in the folder WHEELS that fit this Python are unpacked.  That takes no network, and no pip, which many
a Python lacks.  Where they are not enough to start the server, pip downloads what is missing.  The exit
status is 0 once it starts.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path


def main(folder: Path, wheels: Path) -> int:
    """Make the environment, and say what is done."""
    print(f"Making {folder} with Python {sys.version.split()[0]}", flush=True)
    own = sorted(wheels.glob("trainshift-*.whl"))
    others = [wheel for wheel in sorted(wheels.glob("*.whl")) if wheel not in own and fits(wheel)]
    venv.create(folder, clear=True, with_pip=False)
    scheme, base = ("nt", "Scripts/python.exe") if os.name == "nt" else ("posix_prefix", "bin/python")
    packages = sysconfig.get_path("purelib", scheme, {"base": str(folder), "platbase": str(folder)})
    python = str(folder / base)
    if others:
        for wheel in [*own, *others]:
            print(f"Unpacking {wheel.name}", flush=True)
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(packages)
    if not starts(python):
        print("Downloading what the extension does not bring for this Python", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-I", "-m", "pip", "install", *map(str, own)], check=True)
        if not starts(python, stderr=None):
            return 1
    for other in folder.parent.iterdir():
        if other != folder and (other / "pyvenv.cfg").is_file():
            shutil.rmtree(other, ignore_errors=True)
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
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except subprocess.CalledProcessError as error:
        sys.exit(f"The download failed with status {error.returncode}.")
