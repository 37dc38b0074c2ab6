"""`trainshift prove` without a run: requirements, copies and messages."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from trainshift.cli import proof_report
from trainshift.cli.main import cli
from trainshift.cli.proof_report import Live, show
from trainshift.cli.prove_command import projects
from trainshift.dev.docgen import PAGES
from trainshift.proving.interpreter import Interpreter, ask
from trainshift.proving.interrupts import interruptible
from trainshift.proving.observed.links import Links, Others
from trainshift.proving.project import Copier, Project, as_module, top_of
from trainshift.proving.prove import IDLE, Request, Watch, marked, processor_time, surroundings, waiting
from trainshift.proving.words import count, headline

SCRIPT = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit([[1.0]], [[1.0]])
"""
READY = Interpreter("python", (3, 11, 7), "2.15.1", "0.28.1", True, True)


def told(*arguments: str) -> tuple[int, str]:
    """The exit status and all output of `prove`."""
    result = CliRunner().invoke(cli, ["prove", *arguments])
    return result.exit_code, result.output


def fake(folder: Path, answer: str) -> str:
    """A stand-in for a Python, with these answers."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


def test_nobody_is_asked_where_nobody_can_answer(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ready = {"python": [3, 11, 7], "tensorflow": "2.15.1", "horovod": "0.28.1", "gloo": True, "binding": True}
    status, output = told("--python", fake(tmp_path, json.dumps(ready)), str(script))
    assert (status, "--yes" in output) == (2, True)


def test_a_python_named_by_a_relative_path_is_found_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = fake(
        tmp_path, json.dumps({"python": [3, 11, 7], "tensorflow": "", "horovod": "", "gloo": 0, "binding": 0})
    )
    monkeypatch.chdir(tmp_path.parent)
    assert ask(f"{tmp_path.name}/python").path == python


def test_a_python_that_lacks_something_is_named_with_the_commands_that_help(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    bare = {"python": [3, 11, 7], "tensorflow": "", "horovod": "", "gloo": False, "binding": False}
    python = fake(tmp_path, json.dumps(bare))
    status, output = told("--yes", "--python", python, str(script))
    assert status == 2
    assert f"{python} (Python 3.11) has no TensorFlow" in output
    assert f"{python} -m pip install" in output
    assert "horovod==0.28.1" in output
    status, output = told("--yes", "--format", "json", "--python", "/no/such/python", str(script))
    assert (status, json.loads(output)["verdict"]) == (2, "error")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"python": (3, 14, 1), "tensorflow": ""}, "needs Python 3.9 to 3.13"),
        ({"tensorflow": "2.11.0"}, "runs on TensorFlow 2.12 to 2.21"),
        ({"tensorflow": "2.20.0", "horovod": ""}, "--write-patch"),
        ({"horovod": ""}, "has no Horovod"),
        ({"has_binding": False}, "built without TensorFlow"),
        ({"problem": "no such file"}, "cannot be run: no such file"),
    ],
)
def test_what_is_lacking_is_said(changes: dict[str, object], says: str) -> None:
    assert READY.lacks == ""
    assert says in Interpreter(**{**vars(READY), **changes}).lacks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("print(1)\n", "nothing to prove"),
        ("import tensorflow as tf\ndef f(:\n", "does not convert it"),
    ],
)
def test_what_cannot_be_proven_is_said(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Horovod may be installed only while this runs.
    monkeypatch.setattr("trainshift.proving.interpreter.ask", lambda path: READY)
    script = tmp_path / "train.py"
    script.write_text(text)
    status, output = told("--yes", "--python", sys.executable, str(script))
    assert (status, says in output) == (2, True), output


def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("trainshift.proving.interpreter.ask", lambda path: READY)
    monkeypatch.setattr("trainshift.proving.prove.prove", full)
    script = tmp_path / "train.py"
    script.write_text("import horovod.tensorflow as hvd\nhvd.init()\n")
    status, output = told("--yes", "--python", sys.executable, str(script))
    assert (status, "No space left on device. Make room, or name another folder: " in output) == (2, True), (
        output
    )


def project(tmp_path: Path) -> tuple[Path, Path, Copier]:
    """A project with data, a place for its copy, and the copier."""
    top, copy = tmp_path / "project", tmp_path / "copy"
    for folder in ("data", "images", ".git", "env"):
        (top / folder).mkdir(parents=True)
    (top / "train.py").write_text("1\n")
    (top / "data" / "large.bin").write_bytes(bytes(300_000))
    (top / "data" / "small.txt").write_text("small")
    (top / "env" / "pyvenv.cfg").write_text("")
    # Files kept there by another proof are not part of the project.
    (top / "kept" / "original" / "rank0" / "record").mkdir(parents=True)
    for number in range(600):
        (top / "images" / f"{number}.png").write_text("")
    copy.mkdir()
    texts = {"train.py": b"2\n", "images/new.py": b"3\n"}
    return top, copy, Copier(Project(str(top), str(top), (str(top / "train.py"), "--x"), texts), str(copy))


def test_code_is_copied_and_data_are_linked(tmp_path: Path) -> None:
    top, copy, copier = project(tmp_path)
    given = copier.copy(copy)
    work = copy / "work"
    assert (work / "train.py").read_text() == "2\n"
    assert not (work / "data" / "small.txt").is_symlink()
    assert (work / "data" / "large.bin").is_symlink()
    assert (work / "images" / "new.py").read_text() == "3\n"
    assert not (top / "images" / "new.py").exists()
    assert len([*(work / "images").iterdir()]) == 601
    assert not (work / ".git").exists()
    assert not (work / "env").exists()
    assert not (work / "kept").exists()
    assert set(given) == {"work/train.py", "work/data/small.txt", "work/images/new.py"}
    assert copier.project.arguments == ("train.py", "--x")
    assert copier.changed() == []
    os.utime(top / "data" / "large.bin", (1, 1))
    assert copier.changed() == [str(top / "data" / "large.bin")]


def test_what_is_linked_is_not_written_through(tmp_path: Path) -> None:
    top, copy, copier = project(tmp_path)
    copier.copy(copy)
    links = Links([str(copy)])
    large = copy / "work" / "data" / "large.bin"
    links.own(str(large))
    assert not large.is_symlink()
    assert large.stat().st_size == 300_000
    large.write_bytes(b"other")
    links.own(str(copy / "work" / "images" / "0.png"), keep=False)
    (copy / "work" / "images" / "0.png").write_text("other")
    links.own(str(tmp_path / "elsewhere"))
    links.own(3)
    assert (top / "data" / "large.bin").stat().st_size == 300_000
    assert (top / "images" / "0.png").read_text() == ""


def test_what_a_rank_writes_the_others_find_and_own_only_what_they_write(tmp_path: Path) -> None:
    top, _, copier = project(tmp_path)
    (top / "old.h5").write_text("old")
    (top / "same.txt").write_text("same")
    homes = [tmp_path / "run" / f"rank{rank}" for rank in range(2)]
    for home in homes:
        (home / "record").mkdir(parents=True)
        copier.copy(home)
    (homes[0] / "work" / "same.txt").write_text("same")
    zero, one = (Others(str(home)) for home in homes)
    first, second = (home / "work" for home in homes)
    one.look()
    assert not [path for path in second.iterdir() if str(homes[0]) in str(path.resolve())]
    for name in ("old.h5", "new.h5", "out/new.txt", "data/large.bin", "both.txt", "images/0.png"):
        zero.links.own(first / name, keep=False)
        (first / name).parent.mkdir(exist_ok=True)
        (first / name).write_text("of rank 0")
    (second / "both.txt").write_text("of rank 1")
    one.look()
    assert {name: (second / name).read_text() for name in ("old.h5", "out/new.txt", "images/0.png")} == {
        "old.h5": "of rank 0",
        "out/new.txt": "of rank 0",
        "images/0.png": "of rank 0",
    }
    assert (second / "data" / "large.bin").read_text() == "of rank 0"
    assert ((second / "both.txt").read_text(), (second / "same.txt").is_symlink()) == ("of rank 1", False)
    one.links.own(second / "new.h5")
    (second / "new.h5").write_text("of rank 1")
    zero.look()
    assert [(home / "new.h5").read_text() for home in (first, second)] == ["of rank 0", "of rank 1"]
    zero.links.own(first / "old.h5")
    (first / "old.h5").unlink()
    one.look()
    assert not (second / "old.h5").is_symlink()
    assert (top / "data" / "large.bin").stat().st_size == 300_000
    assert (top / "images" / "0.png").read_text() == ""


def test_a_program_is_copied_with_all_that_it_is_made_of() -> None:
    assert top_of("/p", ["/p/src/train.py", "/p/lib/data.py"]) == "/p"
    assert top_of("/p/src", ["/p/src/train.py", "/p/lib/data.py"]) == "/p"
    assert top_of("/somewhere", ["/p/src/train.py"]) == "/p/src"
    elsewhere = Project("/p/src", "/somewhere", ("/p/src/train.py",))
    assert (elsewhere.start, elsewhere.arguments) == ("here", (os.path.join("..", "work", "train.py"),))
    below = Project("/p", "/p/src", ("/p/src/train.py",))
    assert (below.start, below.arguments) == ("work/src", ("train.py",))


def test_a_script_of_a_package_is_run_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "vision" / "jobs"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    script = str(package / "train.py")
    for text in ("from . import data\n", "import os\nfrom vision.models import net\n", "import vision\n"):
        assert as_module(script, text) == (str(tmp_path), "vision.jobs.train")
    assert as_module(script, "import visionary\n") is None
    assert as_module(str(tmp_path / "train.py"), "import train\n") is None
    project = Project(str(tmp_path), str(tmp_path), ("-m", "vision.jobs.train", "--x"))
    assert project.arguments == ("-m", "vision.jobs.train", "--x")


def test_what_a_launcher_has_started_is_not_taken_for_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainshift.proving.prove.IDLE_LIMIT", -1.0)
    process = SimpleNamespace(pid=os.getpid(), poll=lambda: None)
    ranks = [tmp_path / "rank0", tmp_path / "rank1"]
    assert not Watch(ranks, [process], 300.0).is_over()
    assert Watch(ranks, [process, process], 300.0).is_over()


LIMIT = 60.0
SPIN = """
import os, sys, threading, time
from pathlib import Path
spin = threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True)
spin.start()
Path(sys.argv[1], "threads").write_text(str(spin.native_id) if sys.argv[2] == "waits" else "")
Path(sys.argv[1], "ready").touch()
time.sleep(3600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("what", "is_stuck"), [("waits", True), ("computes", False)])
def test_what_only_waits_for_others_is_idle(what: str, is_stuck: bool, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.mkdir()
    with subprocess.Popen([sys.executable, "-c", SPIN, str(record), what], start_new_session=True) as process:
        try:
            limit = time.monotonic() + LIMIT
            while not (record / "ready").exists() and time.monotonic() < limit:
                time.sleep(0.01)
            threads = waiting([record / "progress"])
            assert bool(threads) == is_stuck
            before = processor_time(process.pid, threads)
            # One second of processor time: the thread gets it eventually, however busy the machine is.
            while processor_time(process.pid, ()) < before + 1 and time.monotonic() < limit:
                time.sleep(0.05)
            assert (processor_time(process.pid, threads) - before <= IDLE) == is_stuck
        finally:
            process.kill()


def test_a_run_that_does_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([10.0, 10.05, 10.3])
    monkeypatch.setattr("trainshift.proving.prove.processor_time", lambda *_: next(used))
    watch = Watch([tmp_path / "progress"], [SimpleNamespace(pid=1, poll=lambda: None)], 300.0)
    for over in (False, True, False):
        watch.looked, watch.last_step, watch.last_busy = (watch.looked - 100 for _ in range(3))
        watch.stuck = ""
        assert watch.is_over() == over


# A complete Python that starts an extra process when it runs a script.
WAITING = """#!{python}
import json, os, sys, time
if "find_spec" in sys.argv[2]:
    ready = dict(python=[3, 11, 7], tensorflow="2.15.1", horovod="0.28.1", gloo=True, binding=True)
    print(json.dumps(ready))
else:
    if not os.fork():
        os.setsid()
    open({started!r}, "w").close()
    time.sleep(3600)
"""
# Runs the command, and interrupts it when it imports a module.
IMPORTING = """import os, signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from trainshift.entry import main
main()
"""


def interrupted(tmp_path: Path, module: str) -> tuple[int, str]:
    """The status and the errors of a proof that is interrupted at an import, or while a process runs."""
    python, started, scratch = tmp_path / "python", tmp_path / "started", tmp_path / "scratch"
    python.write_text(WAITING.format(python=sys.executable, started=str(started)))
    python.chmod(0o755)
    scratch.mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-c", IMPORTING, "prove", "--yes", "--python", str(python), "train.py"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch), "INTERRUPTED_AT": module},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background of a shell hands an ignored SIGINT down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        limit = time.monotonic() + LIMIT
        while not module and not started.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        if not module:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)
    assert [*scratch.iterdir()] == []
    assert marked(f"TRAINSHIFT_PROVE_SCRATCH={scratch}") == []
    return process.returncode, errors.replace("Proving: run 1 of 3, on one process ...\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["click", "trainshift.engine.conversion", "trainshift.proving.prove", "tempfile", ""]
)
def test_ctrl_c_ends_all_with_a_line(module: str, tmp_path: Path) -> None:
    assert interrupted(tmp_path, module) == (130, "Interrupted.\n")


def test_an_interrupt_comes_within_a_window_alone() -> None:
    seen = []

    def ask(within: bool) -> None:
        with interruptible() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            seen.append("outside")
            if within:
                with interrupts.window():
                    seen.append("inside")
            seen.append("to the end")

    with pytest.raises(KeyboardInterrupt):
        ask(within=True)
    assert seen == ["outside"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(KeyboardInterrupt):
        ask(within=False)
    assert seen == ["outside", "outside", "to the end"]


def test_a_page_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ready = {"python": [3, 11, 7], "tensorflow": "2.15.1", "horovod": "0.28.1", "gloo": True, "binding": True}
    python = fake(tmp_path, json.dumps(ready))
    for option, name in (("--html", "x.html"), ("--badge", "x.svg")):
        status, output = told("--yes", "--python", python, option, str(tmp_path / "no" / name), str(script))
        assert (status, f"{name} cannot be written" in output) == (2, True), output


def test_a_result_is_a_table_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    place = {"path": "train.py", "line": 7, "own": 7, "rank": 1, "what": "", "text": "print(1)"}
    claim = {
        "id": "output",
        "title": "Only rank 0 prints",
        "do": "Do this.",
        "code": "HV07",
        "places": [place],
    }
    result = {
        "script": "train.py",
        "problem": "",
        "converted": True,
        "np": 2,
        "steps": 20,
        "stopped": True,
        "verdict": "fails",
        "claims": [
            {**claim, "verdict": "fails", "says": "Rank 1 printed."},
            {**claim, "verdict": "not seen", "says": "Nothing."},
        ],
        "written_elsewhere": [{"rank": 1, "path": "/x\x1b[31m"}],
        "changed": [],
    }
    show(result, "text", "never")
    assert capsys.readouterr().out == (
        "train.py: its conversion on 2 ranks, 20 steps\n\n"
        "  FAILS     Only rank 0 prints\n"
        "            Rank 1 printed.\n"
        "            train.py:7 (rank 1): print(1)\n"
        "            Do this.\n"
        "            Read: trainshift explain HV07\n"
        "  not seen  Only rank 0 prints\n"
        "            Nothing.\n\n"
        "Rank 1 wrote outside the scratch copy: /x␛[31m\n\n"
        "Stopped after 20 steps; --steps 0 runs to the end.\n\n"
        "It does not hold. Of 2 claims, 1 fails, 1 was not seen.\n"
    )


def test_a_table_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = {"id": "gpu", "title": "A title", "says": "word " * 50, "verdict": "holds"}
    result = {"script": "a.py", "problem": "", "converted": True, "np": 2, "steps": 20, "stopped": True}
    monkeypatch.setenv("COLUMNS", "60")
    show(
        {**result, "verdict": "holds", "claims": [claim], "written_elsewhere": [], "changed": []},
        "text",
        "never",
    )
    lines = capsys.readouterr().out.splitlines()
    assert 50 < max(map(len, lines)) <= 60
    assert lines[-1] == "It holds for 20 steps. Of 1 claims, 1 holds."


def test_the_last_line_says_what_was_not_seen_of_what_holds() -> None:
    claims = [{"id": each, "verdict": "not seen"} for each in ("data", "gpu", "worth")]
    told = {"verdict": "holds", "claims": [{"id": "ends", "verdict": "holds"}, *claims]}
    unseen = "Not seen: which data each rank has, which GPU each rank has. "
    assert count(told) == f"{unseen}Of 4 claims, 1 holds, 3 were not seen."
    assert count({**told, "verdict": "fails"}) == "Of 4 claims, 1 holds, 3 were not seen."


def progress(ranks: int, monkeypatch: pytest.MonkeyPatch, *, live: bool, columns: int = 80) -> Live:
    """A progress display for some ranks, on a terminal or not, with a clock that a test sets."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live)
    monkeypatch.setattr(proof_report, "monotonic", lambda: CLOCK[0])
    monkeypatch.setenv("COLUMNS", str(columns))
    return Live(ranks, 20, is_quiet=False)


DOCUMENTED = set(re.findall(r"`(\w+)`", (PAGES.parent / "proving.md").read_text(encoding="utf-8")))


def test_json_names_the_lines_of_the_persons_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def proof(request: Request, _: object) -> dict[str, object]:
        lines = request.after.texts["train.py"].decode().splitlines()
        places = [
            {"path": "train.py", "line": 1 + lines.index(line), "rank": 0, "what": "", "text": line}
            for line in (SCRIPT.splitlines()[1], "hvd.init()")
        ]
        return {"verdict": "fails", "problem": "", "claims": [{"places": places}]}

    monkeypatch.setattr("trainshift.proving.interpreter.ask", lambda path: READY)
    monkeypatch.setattr("trainshift.proving.prove.prove", proof)
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    status, output = told("--yes", "--format", "json", "--python", sys.executable, str(script))
    result = json.loads(output)
    places = result["claims"][0]["places"]
    assert (status, result["folder"]) == (1, str(tmp_path))
    assert [place["own"] for place in places] == [2, 0]
    assert places[0]["line"] > 2
    assert {*result, *places[0]} <= DOCUMENTED


CLOCK = [0.0]


@pytest.mark.parametrize(
    ("ranks", "columns", "line"),
    [
        (2, 100, "Proving: run 2 of 3, on 2 ranks: rank 0 at step 4, rank 1 at step 3 of 20 (7 s)"),
        (8, 80, "Proving: run 2 of 3, on 8 ranks: steps 4 3 3 3 3 3 3 3 of 20 (7 s)"),
    ],
)
def test_a_terminal_shows_each_rank_on_one_line(
    ranks: int, columns: int, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CLOCK[0] = 0.0
    live = progress(ranks, monkeypatch, live=True, columns=columns)
    for rank in range(ranks):
        live.tell("ranks", rank, 0, 20)
    assert capsys.readouterr().err.endswith("starting (0 s)")
    CLOCK[0] = 7.0
    for rank in range(ranks):
        live.tell("ranks", rank, 4 if rank == 0 else 3, 20)
    assert capsys.readouterr().err.split("\x1b[K")[-1] == line


def test_a_long_run_is_never_silent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CLOCK[0] = 0.0
    live = progress(2, monkeypatch, live=False)
    for CLOCK[0] in range(100):
        for rank in range(2):
            live.tell("ranks", rank, int(CLOCK[0]) // 10, 0)
    assert capsys.readouterr().err.splitlines() == [
        "Proving: run 2 of 3, on 2 ranks ...",
        "Proving: run 2 of 3, on 2 ranks: rank 0 at step 3, rank 1 at step 3 (31 s)",
        "Proving: run 2 of 3, on 2 ranks: rank 0 at step 6, rank 1 at step 6 (62 s)",
        "Proving: run 2 of 3, on 2 ranks: rank 0 at step 9, rank 1 at step 9 (93 s)",
    ]


@pytest.mark.parametrize(
    ("imports", "is_distributed"),
    [
        ("import horovod.tensorflow as hvd", True),
        ("import os, horovod.tensorflow as hvd", True),
        ("import os; from horovod import tensorflow as hvd", True),
        ("from .horovod import tensorflow as hvd", False),
        ("from horovod_utils import hvd", False),
        ("HELP = '''\nimport horovod\n'''", False),
    ],
)
def test_what_imports_horovod_is_run_as_it_is(imports: str, is_distributed: bool, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        f"{imports}\nimport tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(x, y)\n"
    )
    before, after, _, _ = projects(str(script), (), READY)
    assert (before == after) == is_distributed


@pytest.mark.parametrize(
    ("requirements", "variables"),
    [("tensorflow==2.21\ntf-keras\n", {"TF_USE_LEGACY_KERAS": "1"}), ("tensorflow==2.21\n", {})],
)
def test_what_is_for_tf_keras_is_run_with_it(
    requirements: str, variables: dict[str, str], tmp_path: Path
) -> None:
    """The original does not choose it itself, but its conversion does."""
    (tmp_path / "requirements.txt").write_text(requirements)
    script = tmp_path / "train.py"
    script.write_text(
        "import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(x, y)\n"
    )
    newer = Interpreter(**{**vars(READY), "tensorflow": "2.21.0"})
    before, after, _, given = projects(str(script), (), newer)
    assert given == variables
    assert surroundings(Request(before, after, newer, variables=given)).items() >= variables.items()


def test_a_badge_claims_nothing_where_nothing_is_proven() -> None:
    claims = [{"verdict": "holds"}] * 6 + [{"verdict": "not seen"}] * 3
    said = [headline({"claims": claims, "np": 2, "verdict": verdict}) for verdict in ("holds", "not seen")]
    assert said == ["6 of 9 claims proven on 2 ranks", "nothing proven: 6 of 9 claims hold on 2 ranks"]
