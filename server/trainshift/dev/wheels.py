"""Gather the wheels from which the VS Code extension sets up its server, for one platform.

    python -m trainshift.dev.wheels linux-x64 vscode-extension/bundled

puts all imports of the server into the folder.  A compiled package is one wheel for all PYTHONS, because its
Python files are the same for all.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "linux-x64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "darwin-arm64": ("macosx_11_0_arm64", "macosx_10_9_universal2"),
    "win32-x64": ("win_amd64",),
}
"""The platforms of compiled wheels, by the name that the marketplace gives a platform."""
# pip evaluates the markers of dependencies for the Python that it runs in, so the packages for other
# versions are listed here.
_NEEDED_BY_DEPENDENCIES = {"3.10": ("exceptiongroup",)}
# Packages that the server never imports: those of LibCST's own command line, and for showing pages in a
# terminal.
_UNUSED = ("pyyaml", "pyyaml_ft", "pygments", "markdown_it_py", "mdurl")


def main() -> None:
    """Gather the wheels for the platform of the first argument in the folder of the second."""
    platform, folder = sys.argv[1:]
    with TemporaryDirectory() as scratch:
        for python in PYTHONS:
            _download(python, PLATFORMS[platform], scratch)
        gather(Path(scratch).glob("*.whl"), Path(folder))


def gather(wheels: Iterable[Path], folder: Path) -> None:
    """Put wheels into a folder, those of one release as one; leave out packages that the server never
    imports.
    """
    releases: dict[str, list[Path]] = defaultdict(list)
    for wheel in sorted(wheels):
        name, version, *_ = wheel.stem.split("-")
        if name.lower() not in _UNUSED:
            releases[f"{name}-{version}"].append(wheel)
    folder.mkdir(parents=True, exist_ok=True)
    for release, members in releases.items():
        merge(release, members, folder)


def merge(release: str, wheels: list[Path], folder: Path) -> Path:
    """One wheel of `release`, "name-version", for all Pythons of `wheels`, in the folder.

    Raises ValueError if two of them have different files of one name.
    """
    tags = [wheel.stem.split("-")[-3:] for wheel in wheels]
    joined = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    information = f"{release}.dist-info"
    of_the_wheel = {f"{information}/{name}" for name in ("WHEEL", "RECORD")}
    files: dict[str, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                content = opened.read(name)
                if name not in of_the_wheel and files.setdefault(name, content) != content:
                    raise ValueError(f"{name} is another file in {wheel.name}")
    lines = [f"Tag: {'-'.join(tag)}" for tag in tags]
    files[f"{information}/WHEEL"] = "\n".join(
        ["Wheel-Version: 1.0", "Generator: trainshift", "Root-Is-Purelib: false", *lines, ""]
    ).encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*record, f"{information}/RECORD,,", ""]).encode()
    path = folder / f"{release}-{joined}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, content in files.items():
            made.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _download(python: str, platforms: Iterable[str], folder: str) -> None:
    """Download Trainshift's dependencies with pip, for one Python."""
    needed = [Requirement(each) for each in requires("trainshift") or ()]
    wanted = [
        f"{each.name}{each.specifier}"
        for each in needed
        if each.marker is None or each.marker.evaluate({"python_version": python})
    ]
    options = [f"--platform={platform}" for platform in platforms]
    options += [f"--abi={each}" for each in (f"cp{python.replace('.', '')}", "abi3", "none")]
    command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "-d", folder]
    command += [f"--python-version={python}", "--implementation=cp", *options]
    subprocess.run([*command, *wanted, *_NEEDED_BY_DEPENDENCIES.get(python, ())], check=True)


if __name__ == "__main__":
    main()
