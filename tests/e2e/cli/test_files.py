"""Files keep their bytes, encoding, mode, and links; writes are atomic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.cli.conftest import CONVERTED, SCRIPT, Run
from trainshift.host.files import FileProblem, decode, read
from trainshift.host.writing import write_in_place

LATIN = "# -*- coding: latin-1 -*-\nimport tensorflow as tf\nname = 'é'\n"


@pytest.mark.parametrize(
    ("data", "encoding", "bom"),
    [
        (b"", "utf-8", False),
        ("é\r\n".encode(), "utf-8", False),
        (b"\xef\xbb\xbfx = 1\n", "utf-8", True),
        (b"\xef\xbb\xbf# coding: utf-8\n", "utf-8", True),
        (b"# coding: latin-1\n\xe9", "iso-8859-1", False),
        (b"#!/usr/bin/python\r# vim: set fileencoding=cp1252 :\r\x80\r", "cp1252", False),
        (b"\x0c\n# coding: euc-jp\n# \xc0\xa4\n", "euc-jp", False),
        (b"x = 1\ny = 2\n# coding: latin-1\n", "utf-8", False),
    ],
)
def test_decode_and_encode_are_inverse(data: bytes, encoding: str, bom: bool) -> None:
    source = decode("x.py", data, None)
    assert (source.encoding, source.bom) == (encoding, bom)
    assert not source.text.startswith("\ufeff")
    assert source.encode(source.text) == data


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_write_keeps_the_mode(run: Run, script: Path, mode: int) -> None:
    script.chmod(mode)
    run("convert", "--write", "train.py")
    assert (script.read_text(), script.stat().st_mode & 0o777) == (CONVERTED, mode)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_write_keeps_the_owner(run: Run, script: Path) -> None:
    os.chown(script, 12345, 23456)
    run("convert", "--write", "train.py")
    assert (script.stat().st_uid, script.stat().st_gid) == (12345, 23456)


def test_write_keeps_extended_attributes(run: Run, script: Path) -> None:
    try:
        os.setxattr(script, "user.note", b"kept")
    except (AttributeError, OSError):
        pytest.skip("no extended attributes here")
    run("convert", "--write", "train.py")
    assert os.getxattr(script, "user.note") == b"kept"


def test_write_keeps_a_declared_encoding(run: Run, script: Path) -> None:
    script.write_bytes(LATIN.encode("latin-1"))
    assert run("convert", "--write", "train.py").exit_code == 0
    text = script.read_bytes().decode("latin-1")
    assert text == LATIN.replace("as tf\n", "as tf\nimport horovod.tensorflow as hvd\n")


def test_write_keeps_a_byte_order_mark(run: Run, script: Path) -> None:
    script.write_bytes(b"\xef\xbb\xbf" + SCRIPT.encode())
    run("convert", "--write", "train.py")
    assert script.read_bytes() == b"\xef\xbb\xbf" + CONVERTED.encode()


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_write_keeps_the_newlines(run: Run, script: Path, newline: str) -> None:
    script.write_bytes(SCRIPT.replace("\nprint(x)\n", "\n").replace("\n", newline).encode())
    run("convert", "--write", "train.py")
    expected = CONVERTED.replace("\nif hvd.rank() == 0: print(x)\n", "\n")
    assert script.read_bytes() == expected.replace("\n", newline).encode()


def test_write_keeps_a_missing_last_newline(run: Run, script: Path) -> None:
    script.write_text("x = 1\nimport tensorflow as tf")
    run("convert", "--write", "train.py")
    assert script.read_bytes() == b"x = 1\nimport tensorflow as tf\nimport horovod.tensorflow as hvd"


def test_write_follows_a_symbolic_link(run: Run, script: Path, here: Path) -> None:
    (here / "links").mkdir()
    link = here / "links" / "link.py"
    link.symlink_to("../train.py")
    assert run("convert", "--write", "links/link.py").exit_code == 0
    assert link.is_symlink()
    assert script.read_text() == CONVERTED
    assert sorted(path.name for path in link.parent.iterdir()) == ["link.py"]


def test_a_file_given_twice_is_converted_once(run: Run, script: Path) -> None:
    Path("link.py").symlink_to("train.py")
    result = run("convert", "--write", "train.py", "./train.py", "link.py", ".")
    assert (result.exit_code, result.stderr) == (0, "train.py: converted (1 change), written\n")


def test_a_file_that_vanished_is_not_written_again(script: Path) -> None:
    source = read("train.py")
    script.unlink()
    with pytest.raises(FileProblem, match="no such file"):
        write_in_place(source, CONVERTED)
    assert not list(script.parent.iterdir())


def test_a_long_file_name_leaves_room_for_the_temporary_file(run: Run, here: Path) -> None:
    path = here / ("x" * 252 + ".py")
    path.write_text(SCRIPT)
    assert run("convert", "--write", path.name).exit_code == 0
    assert path.read_text() == CONVERTED
