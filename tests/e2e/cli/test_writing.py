"""Several files are written together or not at all, wherever a write fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainshift.host.files import FileProblem, SourceFile, read
from trainshift.host.writing import write_below, write_together

NAMES = ("train.py", "model.py", "pkg/data.py")
# The system calls of a write; each of them may fail.
CALLS = ("fdopen", "fsync", "chmod", "replace")


@pytest.fixture
def program(here: Path) -> list[tuple[SourceFile, str]]:
    """Three files in two directories, as read, and their new texts."""
    (here / "pkg").mkdir()
    for name in NAMES:
        (here / name).write_text(f"old {name}\n")
    (here / "model.py").chmod(0o640)
    return [(read(name), f"new {name}\n") for name in NAMES]


def texts() -> list[str]:
    return [Path(name).read_text() for name in NAMES]


OLD = [f"old {name}\n" for name in NAMES]
NEW = [f"new {name}\n" for name in NAMES]


def assert_untouched(here: Path) -> None:
    assert texts() == OLD
    assert not list(here.rglob(".trainshift-*"))
    assert Path("model.py").stat().st_mode & 0o777 == 0o640


def test_all_are_written(here: Path, program: list[tuple[SourceFile, str]]) -> None:
    write_together(program, (), str(here))
    assert texts() == NEW
    assert Path("model.py").stat().st_mode & 0o777 == 0o640
    assert not list(here.rglob(".trainshift-*"))


def test_encoding_mark_and_newlines_stay(here: Path) -> None:
    contents = {
        "latin.py": "# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"),
        "bom.py": b"\xef\xbb\xbfx = 1\n",
    }
    for name, data in contents.items():
        (here / name).write_bytes(data)
    sources = [read(name) for name in contents]
    write_together([(each, each.text + "y = 2\r\n") for each in sources], (), str(here))
    assert [(here / name).read_bytes() for name in contents] == [
        data + b"y = 2\r\n" for data in contents.values()
    ]


def failing(call: Callable[..., Any], at: int, error: BaseException) -> Callable[..., Any]:
    """`call`, which fails only at its `at`-th call, counted from 0."""
    calls: list[None] = []

    def wrapped(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == at + 1:
            raise error
        return call(*args, **options)

    return wrapped


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()],
    ids=["full", "interrupt"],
)
def test_a_failure_at_any_point_leaves_all_as_they_were(
    here: Path,
    program: list[tuple[SourceFile, str]],
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    at: int,
    error: BaseException,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(getattr(os, call), at, error))
        with pytest.raises((FileProblem, KeyboardInterrupt)) as raised:
            write_together(program, (), str(here))
    assert_untouched(here)
    if isinstance(raised.value, FileProblem):
        assert raised.value.path == NAMES[at]
        assert raised.value.message == (
            "cannot be written: no space left on device; all files of the program are as they were. "
            "Free some disk space and run the command again"
        )


@pytest.mark.parametrize("at", range(1, 3))
def test_a_failure_between_two_renames_restores_without_links_too(
    here: Path, program: list[tuple[SourceFile, str]], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    expected = "read-only file system; all files of the program are as they were"
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", no_links)
        patch.setattr(os, "replace", failing(os.replace, at, OSError(errno.EROFS, "read-only file system")))
        with pytest.raises(FileProblem, match=expected):
            write_together(program, (), str(here))
    assert_untouched(here)


@pytest.mark.parametrize("at", range(3))
def test_an_interrupt_right_after_a_rename(
    here: Path, program: list[tuple[SourceFile, str]], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    replace = os.replace
    calls: list[str] = []

    def replaced(source: str, target: str) -> None:
        replace(source, target)
        calls.append(target)
        if len(calls) == at + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replaced)
        with pytest.raises(KeyboardInterrupt):
            write_together(program, (), str(here))
    assert texts() == (NEW if at == 2 else OLD)
    assert not list(here.rglob(".trainshift-*"))


def test_a_directory_that_vanishes_between_two_renames(
    here: Path, program: list[tuple[SourceFile, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def vanishing(source: str, target: str) -> None:
        if target.endswith("model.py") and not os.path.exists("gone"):
            os.rename("pkg", "gone")
        replace(source, target)

    monkeypatch.setattr(os, "replace", vanishing)
    with pytest.raises(FileProblem, match="no such file or directory") as raised:
        write_together(program, (), str(here))
    assert raised.value.path == "pkg/data.py"
    os.rename("gone", "pkg")
    assert texts() == OLD


def test_what_cannot_be_restored_is_kept_and_told(
    here: Path, program: list[tuple[SourceFile, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace
    calls: list[str] = []

    def replaced(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) > 1:
            raise OSError(errno.EIO, "input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(FileProblem) as raised:
        write_together(program, (), str(here))
    (kept,) = here.rglob(".trainshift-*")
    assert kept.read_text() == "old train.py\n"
    assert raised.value.message.endswith(
        f"train.py was replaced and could not be restored: input/output error; its old text is in {kept}"
    )


def test_a_file_that_changed_meanwhile(here: Path, program: list[tuple[SourceFile, str]]) -> None:
    Path("pkg/data.py").write_text("mine\n")
    with pytest.raises(FileProblem, match="changed on disk while it was converted; nothing was") as raised:
        write_together(program, (), str(here))
    assert raised.value.path == "pkg/data.py"
    assert texts() == [*OLD[:2], "mine\n"]


@pytest.mark.parametrize("bad", NAMES)
def test_one_that_is_read_only(here: Path, program: list[tuple[SourceFile, str]], bad: str) -> None:
    Path(bad).chmod(0o444)
    with pytest.raises(FileProblem, match=r"is read-only \(mode 0444\)") as raised:
        write_together(program, (), str(here))
    assert raised.value.path == bad
    assert texts() == OLD


def test_text_that_an_encoding_lacks(here: Path) -> None:
    (here / "a.py").write_text("x = 1\n")
    (here / "b.py").write_text("# coding: ascii\n")
    with pytest.raises(FileProblem, match="which the file's encoding ascii lacks") as raised:
        write_together([(read("a.py"), "y\n"), (read("b.py"), "é\n")], (), str(here))
    assert raised.value.path == "b.py"
    assert (here / "a.py").read_text() == "x = 1\n"


class TestLinks:
    @pytest.fixture
    def project(self, here: Path) -> Path:
        """A project with its own file a.py, and a link b.py to a file outside."""
        (here / "outside.py").write_text("old\n")
        project = here / "project"
        (project / "real").mkdir(parents=True)
        (project / "real" / "a.py").write_text("old\n")
        (project / "a.py").symlink_to("real/a.py")
        (project / "b.py").symlink_to("../outside.py")
        return project

    def test_are_written_through(self, project: Path) -> None:
        write_together([(read("project/a.py"), "new\n")], (), str(project))
        assert (project / "a.py").is_symlink()
        assert (project / "real" / "a.py").read_text() == "new\n"

    def test_do_not_lead_out_of_the_project(self, project: Path, here: Path) -> None:
        changes = [(read("project/a.py"), "new\n"), (read("project/b.py"), "new\n")]
        with pytest.raises(FileProblem, match=r"is a link to .*outside\.py, outside of ") as raised:
            write_together(changes, (), str(project))
        assert raised.value.path == "project/b.py"
        assert (project / "a.py").read_text() == (here / "outside.py").read_text() == "old\n"
        write_together(changes, ["project/b.py"], str(project))
        assert (project / "a.py").read_text() == (here / "outside.py").read_text() == "new\n"

    def test_two_names_of_one_file_are_one_file(self, project: Path) -> None:
        both = [read("project/a.py"), read("project/real/a.py")]
        with pytest.raises(
            FileProblem, match=r"is the same file as project/a.py, and would get different text"
        ):
            write_together([(both[0], "new\n"), (both[1], "other\n")], (), str(project))
        write_together([(each, "new\n") for each in both], (), str(project))
        assert (project / "real" / "a.py").read_text() == "new\n"


class TestBelow:
    def test_new_and_old_files(self, here: Path, program: list[tuple[SourceFile, str]]) -> None:
        (here / "out").mkdir()
        (here / "out" / "train.py").write_text("mine\n")
        write_below("out", [(source.path, source, text) for source, text in program], NAMES)
        assert [(here / "out" / name).read_text() for name in NAMES] == NEW
        assert (here / "out" / "model.py").stat().st_mode & 0o777 == 0o640
        assert texts() == OLD

    @pytest.mark.parametrize("call", ["mkdir", "fsync", "replace"])
    @pytest.mark.parametrize("at", range(3))
    def test_a_failure_leaves_nothing(
        self,
        here: Path,
        program: list[tuple[SourceFile, str]],
        monkeypatch: pytest.MonkeyPatch,
        call: str,
        at: int,
    ) -> None:
        (here / "out").mkdir()
        (here / "out" / "model.py").write_text("mine\n")
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        expected = "no space left on device; nothing was written"
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(getattr(os, call), 0 if call == "mkdir" else at, full))
            with pytest.raises(FileProblem, match=expected):
                write_below("out", [(source.path, source, text) for source, text in program], NAMES)
        assert [path.name for path in (here / "out").rglob("*")] == ["model.py"]
        assert (here / "out" / "model.py").read_text() == "mine\n"

    @pytest.mark.parametrize("out", [".", "link"])
    def test_the_program_itself_is_not_overwritten(
        self, here: Path, program: list[tuple[SourceFile, str]], out: str
    ) -> None:
        (here / "link").symlink_to(".")
        with pytest.raises(FileProblem, match=f"{out} holds the program itself"):
            write_below(out, [(source.path, source, text) for source, text in program], NAMES)
        assert texts() == OLD
