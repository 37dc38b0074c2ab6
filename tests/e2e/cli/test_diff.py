"""Diffs: exact, acceptable to `patch` and `git apply`, and quick."""

from __future__ import annotations

import difflib
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from trainshift.cli.diff import header_name, unified_diff

OLD = b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
PAIRS = [
    (b"", b"x\n"),
    (b"x\n", b""),
    (b"x", b"x\ny"),
    (b"x\ny", b"x\ny\n"),
    (b"x\n", b"x"),
    (b"a\r\nb\r\n", b"a\r\nc\r\nb\r\n"),
    (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nb\nc\n"),
    (b"# \xe9\na\n", b"# \xe9\nb\n"),
    (b"a\rb\x0cc\xe2\x80\xa8d\n", b"a\rB\x0cc\xe2\x80\xa8d\n"),
    (OLD, b"0\n" + OLD),
    (OLD, OLD + b"z\n"),
    (OLD, OLD.replace(b"b\n", b"B\n").replace(b"j\n", b"")),
    (OLD, OLD.replace(b"b\n", b"").replace(b"i\n", b"I\nI\n")),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_agrees_with_difflib(old: bytes, new: bytes) -> None:
    expected = difflib.diff_bytes(difflib.unified_diff, _lines(old), _lines(new), b"a/x.py", b"b/x.py")
    text = b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in expected
    )
    assert unified_diff(old, new, "x.py") == text


def test_is_empty_for_equal_texts() -> None:
    assert unified_diff(OLD, OLD, "x.py") == b""


@pytest.mark.parametrize("command", [["patch", "-p1", "--binary"], ["git", "apply", "--unsafe-paths", "-"]])
@pytest.mark.parametrize("name", ["x.py", "my script.py", 'sub/q"\\é.py', "sub/tab\t.py"])
def test_can_be_applied(here: Path, command: list[str], name: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    path = here / name
    path.parent.mkdir(exist_ok=True)
    rng = random.Random(4)
    pairs = [*PAIRS, *(_random_pair(rng) for _ in range(20))]
    for old, new in pairs:
        if not old or not new:  # An emptied file is removed by `patch`.
            continue
        path.write_bytes(old)
        result = subprocess.run(command, input=unified_diff(old, new, name), capture_output=True, check=False)
        assert result.returncode == 0, result
        assert path.read_bytes() == new


def test_random_texts_are_rebuilt_from_the_diff() -> None:
    rng = random.Random(1)
    for _ in range(500):
        old, new = _random_pair(rng)
        assert _applied(old, unified_diff(old, new, "x.py")) == new


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "new_block"),
    [
        (b"    x = f(x)\n    print(x)\n\n" * 10, b"    x = f(x)\n    if r:\n        print(x)\n\n" * 10),
        (b"print(x)\ny\n", b"if r: print(x)\ny\n"),
        (b"print(x)\n", b"if r: print(x)\n"),
        (b"x\ny\nz\n", b"z\ny\nx\n"),
    ],
)
def test_50_000_repeated_lines_do_not_take_quadratic_time(block: bytes, new_block: bytes) -> None:
    times = 50_000 // block.count(b"\n")
    started = time.process_time()
    diff = unified_diff(block * times, new_block * times, "x.py")
    assert time.process_time() - started < 30  # About 1 s when run alone; quadratic time would be minutes.
    assert _applied(block * times, diff) == new_block * times


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train.py", "train.py"),
        ("./sub/../train.py", "train.py"),
        ("/elsewhere/train.py", "elsewhere/train.py"),
        ("<stdin>", "<stdin>"),
    ],
)
def test_header_names(here: Path, path: str, name: str) -> None:
    assert header_name(path) == name
    assert header_name(str(here / "train.py")) == "train.py"


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.replace(b"\n", b"\n\0").split(b"\0") if line]


def _random_pair(rng: random.Random) -> tuple[bytes, bytes]:
    old = [rng.choice([b"a\n", b"b\n", b"\n", b"c\r\n", b"%d\n" % rng.randrange(50)]) for _ in range(60)]
    new = list(old)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(new))
        new[at : at + rng.randrange(3)] = [b"new %d\n" % rng.randrange(3)] * rng.randrange(3)
    new.append(b"last")
    return b"".join(old), b"".join(new)


def _applied(old: bytes, diff: bytes) -> bytes:
    """Apply `diff` to `old` strictly: context and removed lines must match."""
    source, result, at = _lines(old), list[bytes](), 0
    body = _lines(diff)[2:]
    for index, line in enumerate(body):
        if line.startswith(b"@@"):
            start, _, length = line.split()[1][1:].partition(b",")
            first = int(start) - (1 if length != b"0" else 0)
            result += source[at:first]
            at = first
        elif line.startswith(b"\\"):
            continue
        else:
            ends = index + 1 < len(body) and body[index + 1].startswith(b"\\")
            content = line[1:-1] if ends else line[1:]
            if line[:1] in b" -":
                assert source[at] == content
                at += 1
            if line[:1] in b" +":
                result.append(content)
    return b"".join(result + source[at:])
