"""The arguments of Horovod's launcher, and the message if it starts no ranks."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from trainshift.proving.horovodrun import hosts_of, launched, take_leave, tell_launcher
from trainshift.proving.interpreter import Interpreter, Unfit
from trainshift.proving.launch import end


@pytest.mark.parametrize(
    ("hosts", "ranks", "expected"),
    [
        ("", 3, ["", "", ""]),
        ("localhost:2", 2, ["localhost", "localhost"]),
        ("a:1, b:4", 3, ["a", "b", "b"]),
        ("a:1,b:1", 3, "--hosts a:1,b:1 has 2 slots for 3 ranks"),
        ("a", 2, "HOST:SLOTS"),
        ("a:x", 2, "HOST:SLOTS"),
        (":2", 2, "HOST:SLOTS"),
    ],
)
def test_hosts_are_looked_at_before_anything_runs(hosts: str, ranks: int, expected: list[str] | str) -> None:
    if isinstance(expected, list):
        assert hosts_of(hosts, ranks) == expected
        return
    with pytest.raises(Unfit, match=expected):
        hosts_of(hosts, ranks)


def test_a_launcher_may_tidy_up_before_it_is_killed(tmp_path: Path) -> None:
    launcher, left = tmp_path / "horovodrun", tmp_path / "session"
    launcher.write_text(f"#!/bin/sh\ntrap 'sleep 0.1; rm {left}; exit 1' TERM\n: > {left}\nsleep 60 & wait\n")
    launcher.chmod(0o755)
    python = Interpreter(str(tmp_path / "python"), has_gloo=True)
    process = launched(python, [], 2, "", tmp_path, {"PATH": "/usr/bin:/bin"})
    limit = time.monotonic() + 20
    while not left.exists() and time.monotonic() < limit:
        time.sleep(0.01)
    assert left.exists()
    take_leave(process)
    end([process])
    assert not left.exists()


def said_by(folder: Path, python: Interpreter, hosts: str, script: str) -> list[str]:
    """The arguments and the output of a fake launcher, line by line."""
    launcher = folder / "horovodrun"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    process = launched(python, ["train.py", "--epochs"], 2, hosts, folder, {"PATH": "/usr/bin:/bin"})
    try:
        limit = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
    finally:
        end([process])
    return (folder / "launcher.txt").read_text().splitlines()


def test_the_launcher_is_given_hosts_and_what_horovod_was_built_with(tmp_path: Path) -> None:
    gloo = Interpreter(str(tmp_path / "python"), has_gloo=True)
    for python, hosts, expected in (
        (gloo, "a:1,b:1", ["-np", "2", "-H", "a:1,b:1", gloo.path, "-c"]),
        (replace(gloo, has_gloo=False), "", ["-np", "2", "--mpi", gloo.path, "-c"]),
    ):
        given = said_by(tmp_path, python, hosts, 'for each in "$@"; do echo "$each"; done')
        assert given[: len(expected)] == expected
        assert given[-4:] == [str(tmp_path), "-", "train.py", "--epochs"]


def test_what_a_launcher_says_explains_a_rank_that_says_nothing(tmp_path: Path) -> None:
    ranks = [tmp_path / "rank0", tmp_path / "rank1"]
    for rank in ranks:
        (rank / "record").mkdir(parents=True)
    (ranks[0] / "record" / "stdout.txt").write_text("")
    (ranks[0] / "record" / "record.json").write_text("{}")
    (tmp_path / "launcher.txt").write_text("ssh: unknown host\n")
    tell_launcher(tmp_path / "launcher.txt", ranks)
    assert not (ranks[0] / "record" / "noise.txt").exists()
    assert (ranks[1] / "record" / "noise.txt").read_text() == "ssh: unknown host\n"


def test_a_launcher_that_starts_nobody_is_no_fault_of_the_script(tmp_path: Path) -> None:
    ranks = [tmp_path / "rank0", tmp_path / "rank1"]
    for rank in ranks:
        (rank / "record").mkdir(parents=True)
    python = Interpreter(str(tmp_path / "python"), has_gloo=True)
    script = "echo -----; echo '    sys.exit(run())'; echo 'could not connect to some hosts via ssh'; exit 1"
    said_by(tmp_path, python, "a:2", script)
    with pytest.raises(Unfit) as told:
        tell_launcher(tmp_path / "launcher.txt", ranks)
    assert str(told.value).splitlines()[1:] == ["  could not connect to some hosts via ssh"]
