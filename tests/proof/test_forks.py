"""Forked processes are like new ones, are independent of each other, and end when they must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proof import forks, originals, zygote
from proof.code import Code
from proof.harness import ENVIRONMENT, Run, run_converted, run_original
from trainshift.proving import launch

pytestmark = pytest.mark.proof

TESTS = Path(__file__).parents[1]

TELL = """
import atexit, json, os, random, resource, signal, sys, tempfile, threading
import numpy as np
import tensorflow as tf

print(json.dumps({
    "argv": sys.argv[1:], "name": __name__, "file": __file__, "cwd": os.getcwd(),
    "home": os.path.expanduser("~"), "temporary": tempfile.gettempdir(),
    "path": sys.path, "environment": dict(os.environ),
    "leads": os.getsid(0) == os.getpgid(0) == os.getpid(), "stdin": sys.stdin.read(),
    "streams": [(one.encoding, one.errors, one.line_buffering) for one in (sys.stdout, sys.stderr)],
    "open": sorted(os.listdir("/proc/self/fd"))[:3], "threads": threading.active_count(),
    "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
    "random": [random.random(), np.random.rand(), float(tf.random.uniform([]))],
    "own": __import__("os").path.basename(sys.modules["__main__"].__file__),
    "flags": str(sys.flags), "limits": resource.getrlimit(resource.RLIMIT_STACK),
}))
print("to standard error", file=sys.stderr)
tf.print("native")
atexit.register(print, "at exit")
open("written", "w").close()
"""


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run every original."""
    monkeypatch.setattr(originals, "KEPT", tmp_path / "kept")


def alike(run: Run) -> tuple[object, ...]:
    """The results of a run, without its own directory and port."""
    text, *rest = run.stdout.splitlines()
    told: dict[str, Any] = json.loads(text)
    del told["environment"]["HOROVOD_GLOO_RENDEZVOUS_PORT"]
    text = json.dumps(told, sort_keys=True).replace(str(Path(told["cwd"]).parent), "")
    return text, rest, run.exit_code, run.stderr, run.native, run.files


def test_forked_processes_are_like_new_ones() -> None:
    forked, single = (run_converted(TELL, ["one", "--two"], single=single) for single in (False, True))
    for one, two in zip(forked, single, strict=True):
        assert alike(one) == alike(two)
        assert "at exit" in one.stdout


def test_strings_are_hashed_differently_on_the_ranks() -> None:
    first, second = run_converted("print(hash('a string'))")
    assert first.stdout != second.stdout


def test_a_module_is_run_as_python_runs_it() -> None:
    tell = """
import os, sys
from .two import NAME
print(NAME, __name__, __package__, sys.argv[1:], os.path.relpath(sys.argv[0]), sys.path[0] == os.getcwd())
open("package/written", "w").close()
"""
    files = {
        "package/__init__.py": b"",
        "package/one.py": tell.encode(),
        "package/two.py": b"NAME = __name__",
    }
    run = run_original(Code(files, ("-m", "package.one", "--two")))
    assert run.stdout == "package.two __main__ package ['--two'] package/one.py True\n"
    assert run.files == ("work/package/written",)


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("sys.exit('enough')", 1, "enough"),
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("raise ValueError('no')", 1, "ValueError: no"),
    ],
)
def test_exit_statuses(end: str, status: int, error: str) -> None:
    run = run_original(f"import atexit, sys\natexit.register(print, 'at exit')\n{end}")
    assert (run.exit_code, run.stdout) == (status, "at exit\n")
    assert run.record
    assert run.record.error.strip().endswith(error)


def test_what_crashes_or_is_stuck_is_ended_and_spoils_nothing() -> None:
    crashed = run_original("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert crashed.exit_code == -signal.SIGSEGV
    stuck = run_original("import time\ndef wait():\n    time.sleep(3600)\nwait()", time_limit=5)
    assert stuck.exit_code == -signal.SIGKILL
    assert "in wait" in stuck.log
    assert run_original("print('well')").stdout == "well\n"


def test_what_a_process_leaves_running_is_ended() -> None:
    left = run_original("import subprocess\nprint(subprocess.Popen(['sleep', '3600'], stdout=-3).pid)")
    assert left.exit_code == 0
    wait_for_end([int(left.stdout)])


def test_there_is_another_where_the_one_to_fork_from_has_ended() -> None:
    assert run_original("print(1)").stdout == "1\n"
    os.kill(forks._ZYGOTES[0, sys.executable, ""].process.pid, signal.SIGKILL)
    forks._ZYGOTES[0, sys.executable, ""].process.wait()
    assert run_original("print(2)").stdout == "2\n"


def test_all_end_with_the_process_that_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\nprint('here', flush=True)\ntime.sleep(3600)\n")
    asking = f"""
import os, signal, sys, time
from pathlib import Path
from proof import forks
from trainshift.proving import launch
here = Path({str(tmp_path)!r})
out = here / "stdout"
asked = launch.Launch([str(here), "0", str(here / "script.py")], here, dict(os.environ), out, here / "stderr")
process = forks.forked(asked, 0)
while not out.exists() or not out.read_text():
    time.sleep(0.05)
print(process.pid, forks._ZYGOTES[0, sys.executable, ""].process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": f"{TESTS}:{launch.PACKAGE.parent}"}
    asked = subprocess.run([sys.executable, "-c", asking], env=environment, stdout=subprocess.PIPE, text=True)
    assert asked.returncode == -signal.SIGKILL
    wait_for_end([int(pid) for pid in asked.stdout.split()])


def wait_for_end(pids: list[int]) -> None:
    """Wait until none of the processes runs."""
    limit = time.monotonic() + 20
    while any(running(pid) for pid in pids):
        assert time.monotonic() < limit
        time.sleep(0.05)


def running(pid: int) -> bool:
    """Return whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_nothing_is_forked_where_a_runtime_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(_context=None)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert "threads run" in zygote.started()
    finally:
        done.set()
        thread.join()
    context._context = object()
    assert "eager context" in zygote.started()


def test_a_zygote_that_cannot_fork_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Its module is found before TensorFlow's own.
    (tmp_path / "tensorflow.py").write_text("raise ImportError('no such thing')")
    asked = launch.Launch([], tmp_path, {"PYTHONPATH": f"{tmp_path}:{TESTS}"}, tmp_path / "o", tmp_path / "e")
    one = forks.Zygote(asked.environment)
    with pytest.raises(RuntimeError, match="no such thing"):
        one.wait_until_ready()
    assert not one.alive()
