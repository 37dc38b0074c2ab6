"""Input that cannot be converted: a clear message each, nothing lost, and the other files still done."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli.conftest import CONVERTED, SCRIPT, Run
from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion, Status
from trainshift.engine.versions.runtime import Runtime
from trainshift.host import files


def write_both(run: Run, bad: Path) -> tuple[int, str]:
    """Convert `bad` and a good script after it with --write: the exit status and the line about `bad`."""
    good = bad.parent / "zz_good.py"
    good.write_text(SCRIPT)
    before = bad.read_bytes() if bad.is_file() else None
    result = run("convert", "--write", bad.name, good.name)
    assert good.read_text() == CONVERTED
    assert before is None or bad.read_bytes() == before
    assert "Traceback" not in result.stderr
    return result.exit_code, result.stderr.partition("zz_good.py: converted")[0].rstrip("\n")


def test_a_file_that_does_not_parse_shows_the_place(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_text("x = 1\nif x:\n\ty = 'é世' (\n")
    assert write_both(run, bad) == (
        1,
        "bad.py:3:11: refused: does not parse: '(' was never closed\n    y = 'é世' (\n              ^",
    )


def test_a_long_line_is_cut_around_the_place(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_text("x = [" + "1, " * 5000 + "] ? 7" + " + 7" * 5000 + "\n")
    status, text = write_both(run, bad)
    _, source, caret = text.splitlines()
    assert status == 1
    assert len(source) < 120
    assert source.lstrip().startswith("…")
    assert source.endswith("…")
    assert source[caret.index("^")] == "?"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfea\x00", "bad.py: error: is UTF-16 or UTF-32 text; save it as UTF-8"),
        (
            "# naïve\nx = 'ça é'".encode() + b"\xe9\n",
            "bad.py:2:11: error: byte 0xe9 is not UTF-8; if the file is in another encoding, declare it "
            "in the first line: # -*- coding: latin-1 -*-",
        ),
        (b"# \xe9\n", "bad.py:1:3: error: byte 0xe9 is not UTF-8; if"),
        (b"# coding: no-such\n", "bad.py: error: declares an unknown encoding: no-such"),
        (
            b"# coding: rot13\n",
            "bad.py: error: declares the encoding rot13, which Python does not support",
        ),
        (b"# coding: undefined\n", "bad.py: error: declares the encoding undefined, which Python does not"),
        (
            b"\xef\xbb\xbf# coding: latin-1\n",
            "bad.py: error: starts with a UTF-8 byte order mark but declares",
        ),
        (
            b"# coding: ascii\nx = '\xe9'\n",
            "bad.py:2:6: error: byte 0xe9 is not ASCII, the encoding that the file declares",
        ),
        (
            b"# coding: utf-7\nx = '+AGE-'\n",
            "bad.py: error: cannot be kept byte for byte in its declared encoding",
        ),
    ],
)
def test_text_that_cannot_be_decoded(run: Run, here: Path, data: bytes, message: str) -> None:
    bad = here / "bad.py"
    bad.write_bytes(data)
    status, text = write_both(run, bad)
    assert status == 2
    assert text.startswith(message)


def test_a_null_byte_is_for_the_engine_to_refuse(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_bytes(b"x = 1\0\n")
    status, text = write_both(run, bad)
    assert status == 1
    assert text.startswith("bad.py:1:1: refused: the script holds a null byte\n    x = 1␀\n    ^")


def test_an_empty_file(run: Run, here: Path) -> None:
    (here / "empty.py").touch()
    assert write_both(run, here / "empty.py") == (
        0,
        "empty.py: nothing found: looked for a TensorFlow training loop",
    )


def test_a_directory_without_python_files(run: Run, here: Path) -> None:
    (here / "docs").mkdir()
    (here / "docs" / "notes.txt").touch()
    status, text = write_both(run, here / "docs")
    assert status == 0
    assert text.startswith("docs: nothing found: no Python files (*.py, *.ipynb) here; hidden directories,")


def test_a_missing_file(run: Run, here: Path) -> None:
    assert write_both(run, here / "none.py") == (
        2,
        "none.py: error: cannot be read: no such file or directory",
    )


@pytest.mark.parametrize("name", ["a\nb.py", "\x1b[31mred.py", "\udcff.py", "é 世.py"])
def test_a_strange_name(run: Run, here: Path, name: str) -> None:
    (here / name).write_text(SCRIPT)
    result = run("convert", "--write", name)
    assert (here / name).read_text() == CONVERTED
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_an_unreadable_file(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = here / "bad.py"
    bad.write_text(SCRIPT)
    deny(monkeypatch, "bad.py")
    assert write_both_unreadable(run, here) == (2, "bad.py: error: cannot be read: permission denied\n")


def write_both_unreadable(run: Run, here: Path) -> tuple[int, str]:
    (here / "good.py").write_text(SCRIPT)
    result = run("convert", "--write", "bad.py", "good.py")
    assert (here / "good.py").read_text() == CONVERTED
    return result.exit_code, result.stderr.partition("good.py")[0]


def deny(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make opening the file `name` fail, as for another user (the tests may run as root)."""

    def opened(path: str, mode: str = "r") -> object:
        if path == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open(path, mode)

    monkeypatch.setattr(files, "open", opened, raising=False)


def test_an_unreadable_directory(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src/closed", "src/open"):
        (here / name).mkdir(parents=True)
        (here / name / "train.py").write_text(SCRIPT)
    scandir = os.scandir

    def scanned(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanned)
    result = run("convert", "--write", "src")
    monkeypatch.undo()
    assert result.exit_code == 2
    assert "src/closed: error: cannot be listed: permission denied\n" in result.stderr
    assert (here / "src/open/train.py").read_text() == CONVERTED


def test_a_read_only_target(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_text(SCRIPT)
    bad.chmod(0o444)
    assert write_both(run, bad) == (
        2,
        "bad.py: error: is read-only (mode 0444); nothing was written, chmod +w allows it",
    )


def test_a_read_only_target_can_still_be_shown(run: Run, script: Path) -> None:
    script.chmod(0o444)
    assert run("convert", "train.py").exit_code == 0


def test_a_directory_that_takes_no_new_file(run: Run, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    result = run("convert", "--write", "train.py")
    assert result.exit_code == 2
    assert result.stderr == ("train.py: error: cannot be written: permission denied; the file is as it was\n")
    assert script.read_text() == SCRIPT


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_write_that_fails_halfway(
    run: Run, script: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fail)
    result = run("convert", "--write", "train.py")
    monkeypatch.undo()
    assert result.exit_code == 2
    assert result.stderr == (
        "train.py: error: cannot be written: no space left on device; the file is as it was\n"
    )
    assert script.read_text() == SCRIPT


def test_an_interrupt_while_writing(run: Run, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    result = run("convert", "--write", "train.py")
    monkeypatch.undo()
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: files that are not listed above were left alone.\n"
    assert script.read_text() == SCRIPT


@pytest.mark.skipif(os.name == "nt" or shutil.which("mount") is None, reason="needs a file system of its own")
def test_a_full_disk(run: Run, here: Path) -> None:
    disk = here / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        text = SCRIPT + "#" * 40_000 + "\n"
        (disk / "train.py").write_text(text)
        result = run("convert", "--write", "disk/train.py")
        assert result.exit_code == 2
        assert "no space left on device; the file is as it was" in result.stderr
        assert [path.name for path in disk.iterdir()] == ["train.py"]
        assert (disk / "train.py").read_text() == text
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_changes_while_it_is_read(
    run: Run, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fstat = os.fstat
    calls: list[int] = []

    def observed(descriptor: int) -> os.stat_result:
        calls.append(descriptor)
        if len(calls) == 2:
            with script.open("a") as stream:
                stream.write("y = 2\n")
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", observed)
    result = run("convert", "--write", "train.py")
    monkeypatch.undo()
    assert result.exit_code == 2
    assert "changed while it was read; it was left alone" in result.stderr
    assert script.read_text() == SCRIPT + "y = 2\n"


def test_a_file_that_changes_while_it_is_converted(
    run: Run, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = conversion.convert

    def convert(text: str, *, line: int | None = None, runtime: Runtime | None = None) -> Conversion:
        script.write_text("edited = True\n")
        return inner(text, line=line)

    monkeypatch.setattr(conversion, "convert", convert)
    result = run("convert", "--write", "train.py")
    assert result.exit_code == 2
    assert "changed on disk while it was converted; nothing was written" in result.stderr
    assert script.read_text() == "edited = True\n"


def test_text_that_the_encoding_lacks(run: Run, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(text: str, *, line: int | None = None, runtime: Runtime | None = None) -> Conversion:
        return Conversion(Status.CONVERTED, text + "# 世\n")

    monkeypatch.setattr(conversion, "convert", convert)
    script.write_text("# coding: latin-1\n")
    result = run("convert", "--write", "train.py")
    assert result.exit_code == 2
    assert "holds '世' (U+4E16), which the file's encoding iso-8859-1 lacks" in result.stderr
    assert script.read_text() == "# coding: latin-1\n"


def test_a_defect_of_the_engine_does_not_sink_the_others(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_text(SCRIPT + "# crash\n")
    status, text = write_both(run, bad)
    assert status == 1
    assert text.startswith(
        "bad.py: internal error: RecursionError: maximum recursion depth exceeded at fake_engine"
    )
    assert text.endswith("please report this with the script, the file was left alone")


@pytest.mark.slow
def test_50_000_lines(run: Run, script: Path) -> None:
    script.write_text("import tensorflow as tf\n" + "x = 1\ny = x\nprint(x)\n" * 16_667)
    result = run("convert", "train.py")
    assert result.exit_code == 0
    assert result.stdout.count("\n+if hvd.rank()") == 16_667
    assert result.stdout.count("\n-") == 16_667


def test_500_levels_of_nesting(run: Run, here: Path) -> None:
    bad = here / "bad.py"
    bad.write_text("x = " + "(" * 500 + ")" * 500 + "\n")
    status, text = write_both(run, bad)
    assert status == 1
    assert text.startswith("bad.py:1:")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs an endless device")
def test_an_endless_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1024 * 1024)
    result = run("convert", "/dev/zero")
    assert result.exit_code == 2
    assert "is larger than 1 MiB" in result.stderr


def test_a_pipe_cannot_be_replaced(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, SCRIPT.encode())
    os.close(write_end)
    result = run("convert", "--write", f"/dev/fd/{read_end}")
    os.close(read_end)
    assert result.exit_code == 2
    assert "is not a regular file, so it cannot be replaced; use -o OUT" in result.stderr
