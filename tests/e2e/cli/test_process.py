"""The command as a process: a terminal, closed pipes, signals, and imported modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.cli import fake_engine
from e2e.cli.conftest import CONVERTED, SCRIPT
from trainshift import __version__

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, str(Path(fake_engine.__file__))]


def run(*args: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *args], capture_output=True, check=False, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


def on_a_terminal(*args: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the command with all three streams on a pseudo-terminal: its exit status and its output."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "COLUMNS": "100", **(environment or {})})
        os.execv(sys.executable, [*COMMAND, *args])
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode().replace("\r\n", "\n")


def test_python_m_trainshift() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "trainshift", "--version"], capture_output=True, check=True
    )
    assert result.stdout.decode().strip() == f"trainshift {__version__}"


def test_a_diff_in_a_pipe_can_be_applied(script: Path) -> None:
    result = run("convert", "train.py")
    assert result.returncode == 0
    subprocess.run(["patch", "-p1"], input=result.stdout, check=True, capture_output=True)
    assert script.read_text() == CONVERTED


def test_starts_without_rich_and_libcst() -> None:
    code = (
        "import sys; from trainshift.cli.main import cli; cli(['convert', '-h'], standalone_mode=False); "
        "print({'rich', 'libcst', 'pathspec', 'lsprotocol'} & set(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert result.stderr == "set()\n"


def test_a_piped_run_does_not_load_rich(script: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "convert", "train.py"],
        capture_output=True,
        check=True,
    )
    assert b"trainshift.engine.conversion" in result.stderr
    assert b"rich" not in result.stderr


def test_a_reader_that_stops_early_is_no_error(script: Path) -> None:
    script.write_text(SCRIPT + "print(1)\nx\ny\nz\n" * 20_000)
    with subprocess.Popen(
        [*COMMAND, "convert", "train.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "args", [("convert", "train.py"), ("convert", "--format", "json", "train.py"), ("--help",)]
)
def test_a_full_standard_output(script: Path, args: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run([*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 2
    assert b"standard output cannot be written: " in result.stderr
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stream(script: Path, closed: str) -> None:
    command = f'"$@" {closed}'
    result = subprocess.run(
        ["sh", "-c", command, "sh", *COMMAND, "convert", "-", "train.py"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"standard" in result.stderr


@pytest.mark.parametrize("args", [("convert", "--write"), ("convert", "--format", "json")])
def test_an_interrupt_leaves_whole_files(script: Path, args: tuple[str, ...]) -> None:
    Path("slow.py").write_text("# slow\n" + SCRIPT)
    with subprocess.Popen(
        [*COMMAND, *args, "train.py", "slow.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A suite that runs in the background of a shell hands an ignored SIGINT down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        deadline = time.monotonic() + 20
        while not Path("started").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert Path("slow.py").read_text() == "# slow\n" + SCRIPT
    if "--write" in args:
        assert stderr.decode().splitlines() == [
            "train.py: converted (1 change), written",
            "Interrupted: files that are not listed above were left alone.",
        ]
        assert script.read_text() == CONVERTED
    else:
        assert b'"interrupted": true}' in stdout


class TestTerminal:
    def test_shows_colours(self, script: Path) -> None:
        status, shown = on_a_terminal("convert", "train.py")
        assert status == 0
        assert "\x1b[31m-print(x)\x1b[0m\n" in shown
        assert "\x1b[32m+import horovod.tensorflow as hvd\x1b[0m\n" in shown
        assert "\x1b[32mconverted\x1b[0m" in shown

    @pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_without_colours(self, script: Path, environment: dict[str, str]) -> None:
        _, shown = on_a_terminal("convert", "train.py", environment=environment)
        assert "\x1b" not in shown
        assert "\n+import horovod.tensorflow as hvd\n" in shown

    def test_shows_progress_for_many_files_and_takes_it_away(self, here: Path) -> None:
        for number in range(12):
            (here / f"m{number}.py").write_text(SCRIPT)
        status, shown = on_a_terminal("convert", "--write", ".")
        assert status == 0
        assert "Converting" in shown
        assert "/12" in shown
        assert shown.index("m0.py\x1b[0m: ") > shown.rindex("Converting")
        assert "12 files: 12 converted" in shown

    def test_quiet_shows_no_progress(self, here: Path) -> None:
        for number in range(12):
            (here / f"m{number}.py").write_text(SCRIPT)
        assert on_a_terminal("convert", "--write", "-q", ".") == (0, "")
