"""What the packaged extension for VS Code holds: what it needs, and nothing else."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path

import pytest

import trainshift

pytestmark = pytest.mark.editors

ROOT = Path(__file__).parent.parent.parent
VSIX = ROOT / "vscode-extension" / "trainshift.vsix"
HELD = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/package.json",
    "extension/readme.md",
    "extension/changelog.md",
    "extension/LICENSE.txt",
    "extension/dist/extension.js",
    "extension/dist/ThirdPartyNotices.txt",
    f"extension/bundled/trainshift-{trainshift.__version__}-py3-none-any.whl",
    "extension/python/probe.py",
}
MEDIA = ("extension/media/*.png", "extension/media/*.md")
MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def package() -> Iterator[zipfile.ZipFile]:
    """The package that `make vsix` made."""
    assert VSIX.is_file(), "run `make vsix` first"
    with zipfile.ZipFile(VSIX) as opened:
        yield opened


def test_it_holds_what_it_needs_and_nothing_else(package: zipfile.ZipFile) -> None:
    """No sources, no tests, no maps, no modules of npm."""
    names = set(package.namelist())
    assert names >= HELD
    assert [name for name in names - HELD if not any(fnmatch(name, each) for each in MEDIA)] == []


def test_it_is_small() -> None:
    """It is installed over slow lines too."""
    assert VSIX.stat().st_size < MOST_BYTES


def test_what_its_manifest_names_is_there(package: zipfile.ZipFile) -> None:
    """The entry point, the icon, and the media of the walkthrough."""
    manifest = json.loads(package.read("extension/package.json"))
    steps = [step for walkthrough in manifest["contributes"]["walkthroughs"] for step in walkthrough["steps"]]
    media = [path for step in steps for key, path in step["media"].items() if key in ("image", "markdown")]
    assert len(media) == len(steps) == 3
    for path in (manifest["main"].removeprefix("./"), manifest["icon"], *media):
        assert f"extension/{path}" in package.namelist(), path


def test_its_code_is_bundled(package: zipfile.ZipFile) -> None:
    """No map is named, and no library is looked for at run time but VS Code's."""
    code = package.read("extension/dist/extension.js").decode()
    assert "sourceMappingURL" not in code
    assert 'require("vscode-languageclient' not in code
    assert 'require("vscode")' in code


def test_its_wheel_is_the_server_of_this_tree(package: zipfile.ZipFile) -> None:
    """Each module and page, as it is here."""
    (name,) = (name for name in package.namelist() if name.endswith(".whl"))
    with zipfile.ZipFile(BytesIO(package.read(name))) as wheel:
        server = ROOT / "server" / "trainshift"
        modules = {f"trainshift/{path.relative_to(server).as_posix()}": path for path in server.rglob("*.py")}
        pages = {f"trainshift/pages/{path.name}": path for path in (ROOT / "server/docs/rules").glob("*.md")}
        pages["trainshift/spec.md"] = ROOT / "server/docs/spec.md"
        for inside, path in {**modules, **pages}.items():
            assert wheel.read(inside) == path.read_bytes(), inside
