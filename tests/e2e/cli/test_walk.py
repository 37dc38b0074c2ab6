"""Directories: the files that are converted, and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cli.conftest import SCRIPT, Run
from trainshift.host.walk import collect


def found(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [item.path for item in collect(paths, exclude)]


def make(here: Path, *names: str) -> None:
    for name in names:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_takes_python_files_in_a_fixed_order(here: Path) -> None:
    make(here, "b.py", "a/z.py", "a/c/d.py", "a.py", "A.py", "notes.txt", "x.pyc", "gui.pyw", "stub.pyi")
    assert found(".") == ["A.py", "a/c/d.py", "a/z.py", "a.py", "b.py"]
    assert found(str(here / "a")) == [str(here / "a/c/d.py"), str(here / "a/z.py")]


def test_skips_what_is_not_the_users_source(here: Path) -> None:
    make(
        here, ".git/a.py", "__pycache__/a.py", ".venv/a.py", "venv/a.py", "node_modules/a.py", ".hidden/a.py"
    )
    make(here, "py311/pyvenv.cfg", "py311/a.py", "env/a.py")
    assert found(".") == ["env/a.py"]


def test_takes_a_named_file_and_directory_whatever_they_are(here: Path) -> None:
    make(here, "script.txt", ".hidden/a.py", "built/b.py")
    (here / ".gitignore").write_text("built/\n*.txt\n")
    assert found("script.txt", ".hidden", "built", exclude=("script.txt",)) == [
        "script.txt",
        ".hidden/a.py",
        "built/b.py",
    ]


def test_honours_nested_ignore_files(here: Path) -> None:
    make(here, "keep.py", "old.py", "sub/old.py", "sub/new.py", "sub/deep/a.py", "out/x.py", "sub/out/x.py")
    (here / ".gitignore").write_text("# comment\nold.py\n/out/\nsub/deep/*\n")
    (here / "sub/.gitignore").write_text("!old.py\nnew.py\n")
    assert found(".") == ["keep.py", "sub/old.py", "sub/out/x.py"]


def test_honours_ignore_files_above_in_the_same_repository(here: Path) -> None:
    make(here, "repo/.git/info/exclude", "repo/src/a.py", "repo/src/b.py", "repo/src/c.py")
    (here / ".gitignore").write_text("a.py\n")
    (here / "repo/.gitignore").write_text("b.py\n")
    (here / "repo/.git/info/exclude").write_text("/src/c.py\n")
    assert found("repo/src") == ["repo/src/a.py"]


def test_a_broken_ignore_file_costs_only_its_broken_lines(here: Path) -> None:
    make(here, "a.py", "b.py")
    (here / ".gitignore").write_bytes(b"!\n\xff\nb.py\n")
    assert found(".") == ["a.py"]


@pytest.mark.parametrize("pattern", ["old", "old/", "/src/old", "src/old/", "src/**/t*.py", "t*.py"])
def test_exclude_takes_ignore_patterns(here: Path, pattern: str) -> None:
    make(here, "src/a.py", "src/old/t.py")
    assert found("src", exclude=(pattern,)) == ["src/a.py"]


def test_exclude_is_relative_to_the_walked_directory_too(here: Path) -> None:
    make(here, "src/a.py", "src/old/t.py")
    assert found("src", exclude=("/old",)) == ["src/a.py"]
    assert found("src", exclude=("*.py", "!a.py")) == ["src/a.py"]


def test_does_not_follow_symbolic_links(here: Path) -> None:
    make(here, "src/a.py", "elsewhere/b.py")
    (here / "src/loop").symlink_to(here / "src")
    (here / "src/other").symlink_to(here / "elsewhere")
    (here / "src/b.py").symlink_to(here / "elsewhere/b.py")
    (here / "src/dangling.py").symlink_to("nowhere")
    (here / "link").symlink_to("src")
    assert found("src") == ["src/a.py"]
    assert found("link") == ["link/a.py"]


def test_a_very_deep_tree(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = here
    for _ in range(500):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "a.py").touch()
    assert found(".") == ["d/" * 500 + "a.py"]


def test_many_files_without_a_training_loop_share_a_line(run: Run, here: Path) -> None:
    make(here, *(f"lib/m{number}.py" for number in range(5)))
    (here / "lib/train.py").write_text(SCRIPT)
    text = run("convert", "lib").stderr
    assert text.startswith(
        "lib/train.py: converted (1 change)\n"
        "5 files: nothing found: looked for a TensorFlow training loop (-v lists them)\n"
        "6 files: 1 converted, 5 nothing found\n"
    )
    assert run("convert", "-v", "lib").stderr.startswith("lib/m0.py: nothing found: ")
