"""`check` as a process: a terminal, several processes, closed pipes and signals."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from e2e.cli import dying_worker
from e2e.cli.test_process import on_a_terminal
from trainshift.cli.checks import check
from trainshift.cli.checks.check import MANY_FILES
from trainshift.cli.main import cli
from trainshift.host.walk import Input

COMMAND = [sys.executable, "-m", "trainshift"]
FINDING = "import tensorflow as tf\nx = 1  # trainshift: ignore[TF33]\n"

pytestmark = pytest.mark.slow


def run(*args: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *args], capture_output=True, check=False, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def many(here: Path) -> Path:
    """A directory with so many files that several processes check them."""
    for number in range(MANY_FILES + 15):
        folder = here / "src" / f"p{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"m{number:03}.py").write_text(FINDING if number % 2 else "x = 1\n")
    (here / "src" / "p0" / "broken.py").write_text("x = (\n")
    (here / "src" / "p1" / "latin.py").write_bytes(b"# \xe9\n")
    return here


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github"])
def test_several_processes_say_what_one_says(many: Path, format_: str) -> None:
    one = run("check", "src", "--format", format_, "--jobs", "1")
    three = run("check", "src", "--format", format_, "--jobs", "3")
    assert one.returncode == three.returncode == 2
    assert (one.stdout, one.stderr) == (three.stdout, three.stderr)
    assert one.stdout.count(b"TF33 is not a code") == (MANY_FILES + 15) // 2


def test_a_process_that_dies_takes_few_files_with_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"m{number:03}.py" for number in range(200)]
    names[100] = "kill.py"
    jobs = [check.Job(Input(name, problem="there"), name) for name in names]
    monkeypatch.setattr(check, "_check_batch", dying_worker.check_batch)
    results = list(check._in_processes(jobs, 2, None, lambda name: None))
    assert [job.name for job, _ in results] == names
    lost = [job.name for job, result in results if result.error != "there"]
    assert "kill.py" in lost
    assert len(lost) < 100
    assert all(result.is_defect for job, result in results if job.name in lost)


def test_a_process_that_dies_ahead_of_the_checks_takes_no_file_with_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [check.Job(Input(name, problem="there"), name) for name in ("a.py", "kill.py", "z.py") * 40]
    monkeypatch.setattr(check, "_may_start", lambda job: True)
    monkeypatch.setattr(check, "_looked_ahead", dying_worker.looked_ahead)
    results = list(check._in_processes(jobs, 2, None, lambda name: None))
    assert [result.error for _, result in results] == ["there"] * len(jobs)


def test_a_system_without_processes_checks_one_by_one(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise OSError("no semaphores")

    monkeypatch.setattr(multiprocessing, "get_context", fail)
    jobs = [check.Job(Input(str(path)), str(path)) for path in sorted((many / "src").rglob("*.py"))]
    assert (
        len(
            [
                result
                for _, result in check._in_processes(jobs, 2, None, lambda name: None)
                if not result.is_silent
            ]
        )
        > MANY_FILES // 2
    )


def test_several_processes_fix(many: Path) -> None:
    for path in (many / "src").rglob("m*.py"):
        path.write_text(path.read_text().replace("TF33", "TF03"))
    result = run("check", "src", "--fix", "--jobs", "2", "--format", "json")
    assert json.loads(result.stdout)["summary"]["fixed"] == (MANY_FILES + 15) // 2
    assert not [path for path in (many / "src").rglob("m*.py") if "ignore" in path.read_text()]


def test_starts_without_what_it_does_not_need(here: Path) -> None:
    (here / "a.py").write_text(FINDING)
    result = run("check", "a.py", env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"})
    assert b"trainshift.cli.checks.check" in result.stderr
    for name in (b" rich", b" pygls", b" multiprocessing.pool", b" numpy", b" tensorflow"):
        assert name not in result.stderr


def test_a_strange_name(here: Path) -> None:
    (here / "\udcff.py").write_text(FINDING)
    result = run("check", ".")
    assert result.returncode == 1
    assert result.stdout.startswith(b"\\udcff.py\n  2:8 TS02 warning")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_reader_that_stops_early_is_no_error(many: Path, jobs: str) -> None:
    for path in (many / "src").rglob("m*.py"):
        path.write_text("import tensorflow\n" + "x = 1  # trainshift: ignore[TF33]\n" * 200)
    with subprocess.Popen(
        [*COMMAND, "check", "src", "--jobs", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert "Traceback" not in process.stderr.read().decode()
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github"])
def test_a_full_standard_output(here: Path, format_: str) -> None:
    (here / "a.py").write_text(FINDING)
    with open("/dev/full", "wb") as full:
        command = [*COMMAND, "check", "--format", format_, "a.py"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 2
    assert b"standard output cannot be written: " in result.stderr
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(("jobs", "action"), [("1", "--isolated"), ("2", "--isolated"), ("2", "--fix")])
def test_an_interrupt_ends_it(many: Path, jobs: str, action: str) -> None:
    slow = "import tensorflow as tf\n" + "x = tf.constant([1])\nprint(x, x.numpy())\n" * 500
    for path in sorted((many / "src").rglob("m*.py"))[10:]:
        path.write_text(slow)
    with subprocess.Popen(
        [*COMMAND, "check", "src", "--jobs", jobs, action],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A suite that runs in the background of a shell hands an ignored SIGINT down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"src/p0/broken.py\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == b"Interrupted: later files were not checked.\n"
    assert not list(many.rglob(".trainshift-*"))


class TestTerminal:
    def test_shows_colours_links_and_wrapped_messages(self, here: Path) -> None:
        (here / "train.py").write_text(FINDING)
        status, shown = on_a_terminal("check", "train.py")
        assert status == 1
        assert "\x1b[33mwarning\x1b[0m" in shown
        assert "\x1b]8;" in shown
        assert "\n      " in shown

    @pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_without_colours(self, here: Path, environment: dict[str, str]) -> None:
        (here / "train.py").write_text(FINDING)
        _, shown = on_a_terminal("check", "train.py", environment=environment)
        assert "\x1b" not in shown
        assert "  2:8 TS02 warning This comment suppresses nothing" in shown

    def test_shows_progress_and_takes_it_away(self, many: Path) -> None:
        status, shown = on_a_terminal("check", "src")
        assert status == 2
        assert "Checking" in shown
        assert "not checked" in shown.rpartition("Checking")[2]


def test_findings_of_static_graphs_ask_for_no_programs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(check, "Programs", asked.append)
    script = here / "model.py"
    script.write_text(
        "import paddle\n\n\n@paddle.jit.to_static(full_graph=True)\ndef step(x):\n"
        "    for i in range(3):\n        x = x + i\n    else:\n        x = x * 2\n    return x\n"
    )
    result = CliRunner().invoke(cli, ["check", "--select", "PD", "model.py"])
    assert "PD09" in result.stdout
    assert asked == []
