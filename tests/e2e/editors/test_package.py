"""The contents of the packaged VS Code extension: everything that it needs, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from subprocess import DEVNULL, run

import pytest

import trainshift
from trainshift.dev.wheels import PLATFORMS, PYTHONS

pytestmark = pytest.mark.editors

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "vscode-extension"
UNIVERSAL = EXTENSION / "trainshift.vsix"
OF_PLATFORMS = {EXTENSION / f"trainshift-{platform}.vsix": platform for platform in PLATFORMS}
OWN_WHEEL = f"extension/bundled/trainshift-{trainshift.__version__}-py3-none-any.whl"
HELD = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/package.json",
    "extension/readme.md",
    "extension/changelog.md",
    "extension/LICENSE.txt",
    "extension/dist/extension.js",
    "extension/dist/ThirdPartyNotices.txt",
    "extension/python/probe.py",
    "extension/python/set_up.py",
    OWN_WHEEL,
}
MEDIA = ("extension/media/*.png", "extension/media/*.md")
WHEELS = "extension/bundled/*.whl"


@pytest.fixture(scope="module")
def package() -> Iterator[zipfile.ZipFile]:
    """The universal package from `make vsix`."""
    assert UNIVERSAL.is_file(), "run `make vsix` first"
    with zipfile.ZipFile(UNIVERSAL) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the extension's folder after `make vsix`, in which it can be packaged again."""
    copy = tmp_path / "vscode-extension"
    left_out = shutil.ignore_patterns("node_modules", "test", "*.vsix", "wheels")
    shutil.copytree(EXTENSION, copy, ignore=left_out)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (copy / "node_modules").symlink_to(EXTENSION / "node_modules")
    return copy


def readme_of(vsix: Path) -> str:
    """The page of a package."""
    with zipfile.ZipFile(vsix) as opened:
        return opened.read("extension/readme.md").decode()


def test_it_holds_what_it_needs_and_nothing_else(package: zipfile.ZipFile) -> None:
    """The package contains no sources, tests, maps or npm modules."""
    names = set(package.namelist())
    assert names >= HELD
    assert [name for name in names - HELD if not any(fnmatch(name, each) for each in MEDIA)] == []
    assert UNIVERSAL.stat().st_size < 2_500_000


def test_a_package_of_a_platform_has_wheels_for_every_python() -> None:
    """In addition to the files of the universal package; it is small, because of slow connections."""
    made = {path: platform for path, platform in OF_PLATFORMS.items() if path.is_file()}
    assert made, "run `make vsix` first"
    for path, platform in made.items():
        with zipfile.ZipFile(path) as opened:
            names = set(opened.namelist())
            assert f'TargetPlatform="{platform}"' in opened.read("extension.vsixmanifest").decode()
        assert names >= HELD
        more = {name for name in names - HELD if not any(fnmatch(name, each) for each in MEDIA)}
        assert all(fnmatch(name, WHEELS) for name in more), more
        (libcst,) = (name for name in more if "/libcst-" in name)
        assert all(f"cp{python.replace('.', '')}" in libcst for python in PYTHONS)
        assert any(tag in libcst for tag in PLATFORMS[platform])
        assert path.stat().st_size < 14_000_000


def test_it_is_packaged_without_flags(folder: Path) -> None:
    """It can be packaged without the Makefile; nothing is asked, and no picture is broken."""
    command = [str(folder / "node_modules/.bin/vsce"), "package"]
    made = run(command, cwd=folder, stdin=DEVNULL, capture_output=True, text=True)
    assert made.returncode == 0, made
    assert "WARNING" not in made.stdout + made.stderr
    assert "![" not in readme_of(folder / f"trainshift-{trainshift.__version__}.vsix")


@pytest.mark.parametrize("address", ["https://github.com/somebody/fork", ""])
def test_its_pictures_can_be_seen(address: str, folder: Path) -> None:
    """They come from the repository that the build names, or else are embedded in the page."""
    environment = {**os.environ, "TRAINSHIFT_REPOSITORY": address}
    run(["node", "package.mjs"], cwd=folder, env=environment, capture_output=True, check=True)
    with zipfile.ZipFile(folder / "trainshift.vsix") as opened:
        manifest = json.loads(opened.read("extension/package.json"))
    assert manifest.get("repository", {}).get("url", "") == address
    assert manifest.get("bugs", {}).get("url", "") == (f"{address}/issues" if address else "")
    checks = f"{address}/actions/workflows/checks.yml"
    assert [badge["href"] for badge in manifest.get("badges", [])] == ([checks] if address else [])
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme_of(folder / "trainshift.vsix"))
    assert len(pictures) == 2
    for picture in pictures:
        name = picture.removeprefix(f"{address}/raw/HEAD/vscode-extension/")
        assert (EXTENSION / name).is_file() if address else picture.startswith("data:image/png;base64,")


def test_what_its_manifest_names_is_there(package: zipfile.ZipFile) -> None:
    """The entry point, the icon, and the media of the walkthrough."""
    manifest = json.loads(package.read("extension/package.json"))
    steps = [step for walkthrough in manifest["contributes"]["walkthroughs"] for step in walkthrough["steps"]]
    media = [path for step in steps for key, path in step["media"].items() if key in ("image", "markdown")]
    assert len(media) == len(steps) == 3
    for path in (manifest["main"].removeprefix("./"), manifest["icon"], *media):
        assert f"extension/{path}" in package.namelist(), path


def test_its_code_is_bundled(package: zipfile.ZipFile) -> None:
    """No source map is named, and only VS Code's modules are imported at run time."""
    code = package.read("extension/dist/extension.js").decode()
    assert "sourceMappingURL" not in code
    assert 'require("vscode-languageclient' not in code
    assert 'require("vscode")' in code


def test_its_wheel_is_the_server_of_this_tree(package: zipfile.ZipFile) -> None:
    """Each module and page of this tree, except those that write the project's own files."""
    with zipfile.ZipFile(BytesIO(package.read(OWN_WHEEL))) as wheel:
        server = ROOT / "server" / "trainshift"
        modules = {
            f"trainshift/{path.relative_to(server).as_posix()}": path
            for path in server.rglob("*.py")
            if "dev" not in path.relative_to(server).parts
        }
        pages = {f"trainshift/pages/{path.name}": path for path in (ROOT / "server/docs/rules").glob("*.md")}
        pages["trainshift/spec.md"] = ROOT / "server/docs/spec.md"
        for inside, path in {**modules, **pages}.items():
            assert wheel.read(inside) == path.read_bytes(), inside
