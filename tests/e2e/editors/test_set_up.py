"""The environment that the VS Code extension creates for the server, and its wheels."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run

import pytest

import trainshift
from trainshift.dev.wheels import PLATFORMS, gather

EXTENSION = Path(__file__).parents[3] / "vscode-extension"
SCRIPT = EXTENSION / "python" / "set_up.py"
NO_NETWORK = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of the package that `make vsix` made for this platform."""
    platform = next(name for name in PLATFORMS if name.startswith(sys.platform))
    folder = tmp_path_factory.mktemp("package")
    with zipfile.ZipFile(EXTENSION / f"trainshift-{platform}.vsix") as opened:
        opened.extractall(folder, [name for name in opened.namelist() if name.endswith(".whl")])
    return folder / "extension" / "bundled"


def set_up(folder: Path, wheels: Path, *consent: str, **variables: str) -> int:
    """The exit status of a set-up."""
    command = [sys.executable, "-I", str(SCRIPT), str(folder), str(wheels), *consent]
    return run(command, env={**os.environ, **variables}, stdout=DEVNULL).returncode


@pytest.mark.editors
def test_the_server_is_set_up_without_a_network(bundled: Path, tmp_path: Path) -> None:
    """Without pip either; it checks a script, and only the environment of an earlier version is removed."""
    home = tmp_path / "environments"
    assert set_up(home / "0.0.1", bundled, **NO_NETWORK) == 0
    (home / "notes").mkdir()
    assert set_up(home / "0.0.2", bundled, **NO_NETWORK) == 0
    assert sorted(path.name for path in home.iterdir()) == ["0.0.2", "notes"]
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\ntf2 = tf\nprint(tf2)\n", encoding="utf-8")
    programs = home / "0.0.2" / ("Scripts" if os.name == "nt" else "bin")
    command = [str(programs / "python"), "-I", "-m", "trainshift", "check", "--strict", str(script)]
    checked = run(command, capture_output=True, text=True)
    assert "TF02" in checked.stdout, checked
    version = run([*command[:4], "--version"], capture_output=True, text=True)
    assert trainshift.__version__ in version.stdout


@pytest.mark.editors
def test_what_the_package_does_not_bring_is_downloaded(bundled: Path, tmp_path: Path) -> None:
    """pip downloads it from the configured index, if allowed; if that fails, so does the set-up."""
    (own,) = bundled.glob("trainshift-*.whl")
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / own.name).write_bytes(own.read_bytes())
    assert set_up(tmp_path / "first", alone) == 3
    assert not (tmp_path / "first").exists()
    assert set_up(tmp_path / "first", alone, "--download", **NO_NETWORK) not in (0, 3)
    assert set_up(tmp_path / "second", alone, "--download") == 0


@pytest.mark.editors
def test_windows_that_are_opened_together_make_one(bundled: Path, tmp_path: Path) -> None:
    """The second waits for the first, and uses its result."""
    home = tmp_path / "environments"
    command = [sys.executable, "-I", str(SCRIPT), str(home / "1.0"), str(bundled)]
    both = [Popen(command, stdout=PIPE, text=True) for _ in range(2)]
    said = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sorted(text.count("Making") for text in said) == [0, 1]


def made_wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A wheel with these files."""
    path = folder / name
    release = "-".join(name.split("-")[:2])
    with zipfile.ZipFile(path, "w") as opened:
        for file, text in {**files, f"{release}.dist-info/RECORD": name}.items():
            opened.writestr(file, text)
    return path


def test_wheels_of_one_release_are_merged(tmp_path: Path) -> None:
    """Shared files occur once, the name fits every Python, and unused files are left out."""
    source, folder = tmp_path / "source", tmp_path / "merged"
    source.mkdir()
    for python in ("cp310", "cp311"):
        name = f"fast-1.0-{python}-{python}-win_amd64.whl"
        made_wheel(source, name, {"fast/__init__.py": "", f"fast/native.{python}.pyd": python})
    made_wheel(source, "plain-2.0-py3-none-any.whl", {"plain.py": "x = 1\n"})
    made_wheel(source, "pyyaml-6.0-cp310-cp310-win_amd64.whl", {"yaml.py": ""})
    gather(source.glob("*.whl"), folder)
    fast, plain = sorted(folder.iterdir())
    assert fast.name == "fast-1.0-cp310.cp311-cp310.cp311-win_amd64.whl"
    assert plain.name == "plain-2.0-py3-none-any.whl"
    with zipfile.ZipFile(fast) as opened:
        names = opened.namelist()
        record = opened.read("fast-1.0.dist-info/RECORD").decode()
        wheel = opened.read("fast-1.0.dist-info/WHEEL").decode()
    assert names.count("fast/__init__.py") == 1
    assert {"fast/native.cp310.pyd", "fast/native.cp311.pyd"} < set(names)
    assert [line.split(",")[0] for line in record.splitlines()] == names
    assert "Tag: cp310-cp310-win_amd64\nTag: cp311-cp311-win_amd64\n" in wheel


def test_wheels_that_differ_are_not_merged(tmp_path: Path) -> None:
    """One Python would get the other's file."""
    for python in ("cp310", "cp311"):
        made_wheel(tmp_path, f"fast-1.0-{python}-{python}-win_amd64.whl", {"fast/__init__.py": python})
    with pytest.raises(ValueError, match=r"__init__\.py is another file in fast-1.0-cp311"):
        gather(tmp_path.glob("*.whl"), tmp_path / "merged")
