"""Input that `check` cannot check: a clear message each, and the other files still checked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from e2e.cli.conftest import Run
from e2e.cli.test_bad_input import deny
from trainshift.host import files

GOOD = "import tensorflow as tf\nbad()\n"


def check_both(run: Run, bad: str) -> tuple[int, str]:
    """Check `bad` and another script after it: the exit status and the messages about `bad`."""
    Path("zz.py").write_text(GOOD)
    result = run("check", "-q", bad, "zz.py")
    assert "zz.py:2:1: TF03 warning" in result.stdout
    assert "Traceback" not in result.output
    return result.exit_code, result.stderr + result.stdout.partition("zz.py")[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"\xff\xfea\x00",
            "bad.py: error: is UTF-16 or UTF-32 text; save it as UTF-8\n",
        ),
        (b"x = 1 # \xe9\n", "bad.py:1:9: error: byte 0xe9 is not UTF-8; if"),
        (b"# coding: no-such\n", "bad.py: error: declares an unknown encoding: no-such\n"),
        (b"x = 1\0\n", "bad.py:1:6: TS00 error: a null byte\n"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "bad.py:1:8: TS00 error: a null byte\n"),
        (b"x = (\n", "bad.py:1:5: TS00 error: '(' was never closed\n"),
        (b"x = " + b"(" * 1000 + b")" * 1000, "bad.py:1:"),
        (
            b"x = " + b"-" * 50_000 + b"1",
            "bad.py:1:1: TS00 error: the code is nested too deeply to be read\n",
        ),
    ],
)
def test_a_file_that_cannot_be_checked(run: Run, here: Path, data: bytes, message: str) -> None:
    (here / "bad.py").write_bytes(data)
    status, text = check_both(run, "bad.py")
    assert status == 2
    assert text.startswith(message)
    assert text.count("\n") == 1


def test_a_syntax_error_shows_the_place(run: Run, here: Path) -> None:
    (here / "bad.py").write_text("x = 1\nif x:\n\ty = 'é世' (\n")
    assert run("check", "bad.py").stdout == (
        "bad.py\n"
        "  3:11 TS00 error '(' was never closed\n"
        "      | y = 'é世' (\n"
        "      |           ~\n"
        "\n"
        "1 error in 1 file.\n"
        "`trainshift explain TS00` says why it matters and what to do.\n"
    )


@pytest.mark.parametrize("code", ["TS00", "TS"])
def test_a_syntax_error_that_is_off_is_told_aside(run: Run, here: Path, code: str) -> None:
    """The file counts for nothing, but is not reported as checked."""
    (here / "bad.py").write_text("x = (\n")
    (here / "good.py").write_text("x = 1\n")
    (here / "trainshift.toml").write_text(f'[severity]\n{code} = "off"\n')
    result = run("check", ".")
    assert result.exit_code == 0
    assert result.stdout == "Nothing found in 1 file.\n"
    assert result.stderr == "bad.py: not checked, since it cannot be read as Python (TS00 is off)\n"
    report = json.loads(run("check", "--format", "json", ".").stdout)
    assert [each["path"] for each in report["files"]] == ["good.py"]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"x = 1"])
def test_an_empty_file_is_clean(run: Run, here: Path, data: bytes) -> None:
    (here / "bad.py").write_bytes(data)
    assert check_both(run, "bad.py") == (1, "")


def test_a_missing_file(run: Run, here: Path) -> None:
    assert check_both(run, "no.py") == (2, "no.py: error: cannot be read: no such file or directory\n")


def test_an_unreadable_file(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bad.py").write_text(GOOD)
    deny(monkeypatch, "bad.py")
    assert check_both(run, "bad.py") == (2, "bad.py: error: cannot be read: permission denied\n")


def test_an_unreadable_directory(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "src").mkdir()

    def scanned(path: str) -> object:
        raise PermissionError(13, os.strerror(13), path)

    monkeypatch.setattr(os, "scandir", scanned)
    status, text = check_both(run, "src")
    monkeypatch.undo()
    assert (status, text) == (2, "src: error: cannot be listed: permission denied\n")


def test_a_restriction_that_fails(run: Run, here: Path) -> None:
    (here / "bad.py").write_text("import tensorflow\ncrash()\nbad()\n")
    status, text = check_both(run, "bad.py")
    assert status == 2
    assert text.splitlines() == [
        "bad.py:1:1: TS03 error: TF04 failed on this script (KeyError: 'crash'); please report this with "
        "the script",
        "bad.py:3:1: TF03 warning: bad is called, and that matters.",
    ]


def test_a_defect_of_the_checker(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainshift.engine import checking

    inner = checking.check

    def check(text: str, *args: object) -> object:
        if "crash" in text:
            raise ZeroDivisionError("oh")
        return inner(text, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(checking, "check", check)
    (here / "bad.py").write_text("crash\n")
    status, text = check_both(run, "bad.py")
    assert status == 2
    assert text.startswith("bad.py: internal error: ZeroDivisionError: oh at test_check_bad_input.py:")


@pytest.mark.parametrize("name", ["a\nb.py", "\x1b[31mred.py", "é 世.py"])
def test_a_strange_name(run: Run, here: Path, name: str) -> None:
    (here / name).write_text(GOOD)
    result = run("check", name)
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert result.stdout.count("\n") == 7


@pytest.mark.slow
def test_20_000_lines(run: Run, here: Path) -> None:
    (here / "long.py").write_text("import tensorflow as tf\n" + "x = 1\ny = x\nbad(x)\n" * 6_667)
    result = run("check", "-q", "long.py")
    assert result.stdout.count("TF03") == 6_667


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs an endless device")
def test_an_endless_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1024 * 1024)
    result = run("check", "/dev/zero")
    assert result.exit_code == 2
    assert "is larger than 1 MiB" in result.stderr
