"""The contract of the language server with every editor."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.editors.session import ROOT, Editor, Shown
from support.finding_fixtures import finding_cases
from trainshift.engine.conversion import convert_program
from trainshift.host.disk import files_on_disk

TRAINSHIFT = Path(sys.executable).with_name("trainshift")
MNIST = ROOT / "fixtures" / "scripts" / "mnist_tape" / "before.py"
ALIASES = ROOT / "fixtures" / "restrictions" / "tf03_tensorflow_member_alias.md"
# The learning rate, the tape, and a print inside a loop inside a condition.
STATEMENTS = ("optimizer = tf.keras", "with tf.GradientTape()", 'print(f"step {step:3d}')

# A plain one; one that distinguishes UTF-16 from code points; one with Windows line endings and no final
# one.
SCRIPTS = ("mnist_tape", "emoji_bom", "crlf_tabs")
PROGRAM = ROOT / "fixtures" / "editors" / "three_files"
WHOLE_PROGRAM = "Trainshift: Make distributed (train.py and 2 more files)"
WHOLE_FILE = "Trainshift: Make distributed (whole file)"
# A text of two UTF-16 units comes before the edit; the finding shows that the server is ready.
PENDULUM = """\
import math
import tensorflow as tf

Adam = tf.keras.optimizers.Adam
optimizer = Adam(1e-3)


def energy(angle, speed):
    # \N{PARTY POPPER} per unit of mass
    return 0.5 * speed * speed + 9.81 * (1 - math.cos(angle))
"""


# As above: a text of two UTF-16 units comes before the expansion; the finding is Paddle's, and `halve` is
# refused.
HALVED = """\
import paddle

NAME = "\N{PARTY POPPER}"


@paddle.jit.to_static(full_graph=True)
def halve(x):
    # until it is small
    while x.max() > 1:
        x = x // 2
    else:
        x = x + 1
    return x


@paddle.jit.to_static(full_graph=True)
def grow(x):
    while x.max() < 1:  # \N{PARTY POPPER}
        x = x * 2
    return x
"""


Edit = Callable[[bytes], Editor]


def converted(path: Path, *options: str) -> str:
    """The result of `trainshift convert` for a file."""
    command = [str(TRAINSHIFT), "convert", "--quiet", *options, "-o", "-", str(path)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def differentiated(path: Path, mode: str) -> str:
    """The result of `trainshift differentiate` for a file with PENDULUM."""
    options = ["--quiet", "--mode", mode, "-o", "-", f"{path}:energy"]
    command = [str(TRAINSHIFT), "differentiate", *options]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def in_graph_code(path: Path) -> str:
    """The result of `trainshift static` for a file."""
    command = [str(TRAINSHIFT), "static", "--quiet", "-o", "-", str(path)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout.decode()


def changes(path: Path) -> list[Shown]:
    """The changes that `trainshift convert` would make in a file, with their places."""
    command = [str(TRAINSHIFT), "convert", "--format", "json", str(path)]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return [Shown(change["rule"], change["line"]) for change in report["files"][0]["applied"]]


def line_of(path: Path, beginning: str) -> int:
    """The line, from 1, of the only statement that begins with a text."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    (line,) = (number for number, each in lines if each.lstrip().startswith(beginning))
    return line


def texts(paths: Iterable[str]) -> dict[str, str]:
    """The contents of files."""
    return {path: Path(path).read_bytes().decode() for path in paths}


class Contract:
    """The tests of an editor; a subclass names it."""

    editor: type[Editor]

    @pytest.fixture
    def home(self) -> Iterator[Path]:
        """A directory for one session; its path is short, because a socket's path must be."""
        with tempfile.TemporaryDirectory(prefix="trainshift-", ignore_cleanup_errors=True) as directory:
            yield Path(directory).resolve()

    @pytest.fixture
    def edit(self, home: Path) -> Iterator[Edit]:
        """`edit(script)`: the editor, with a copy of the script open in a project of its own."""
        with ExitStack() as stack:

            def start(script: bytes) -> Editor:
                path = home / "project" / "train.py"
                path.parent.mkdir()
                path.write_bytes(script)
                return stack.enter_context(self.editor(path, home))

            yield start

    def test_a_violated_restriction_is_shown(self, edit: Edit) -> None:
        case = next(case for case in finding_cases(ALIASES) if case.heading == "an optimizer class")
        assert case.findings.startswith("2:1 TF03 violated")
        editor = edit(case.script.encode())
        editor.wait_for(Shown("TF03", 2))

    def test_what_could_be_made_distributed_is_shown(self, edit: Edit) -> None:
        editor = edit(MNIST.read_bytes())
        editor.wait_for(*changes(editor.path))

    @pytest.mark.parametrize("statement", STATEMENTS)
    def test_a_statement_is_made_distributed(self, edit: Edit, statement: str) -> None:
        editor = edit(MNIST.read_bytes())
        line = line_of(editor.path, statement)
        editor.wait_for(*changes(editor.path))
        editor.apply("Trainshift: Make distributed: ", line)
        editor.wait_for_text(converted(editor.path, "--at", str(line)))
        assert WHOLE_FILE in editor.ask("offered")

    @pytest.mark.parametrize("name", SCRIPTS)
    def test_the_whole_file_is_made_distributed(self, edit: Edit, name: str) -> None:
        folder = ROOT / "fixtures" / "scripts" / name
        editor = edit((folder / "before.py").read_bytes())
        editor.wait_for(*changes(editor.path))
        editor.apply(WHOLE_FILE, 1, "source.makeDistributed.trainshift")
        editor.wait_for_text(converted(editor.path))
        after = (folder / "after.py").read_bytes()
        # Both editors terminate the last line when they save.
        assert editor.save() in (after, after + b"\r\n")

    @pytest.mark.parametrize("name", ["train.py", "steps.py"])
    def test_a_program_of_several_files_is_made_distributed(self, home: Path, name: str) -> None:
        """A program converts from any of its files, without opening the others; all changes are saved."""
        project = shutil.copytree(PROGRAM, home / "project")
        start = project / "train.py"
        text = start.read_bytes().decode()
        conversion = convert_program(text, start.as_posix(), files_on_disk())
        wanted = {each.path: each.text for each in conversion.files}
        shown = [
            Shown(each.rule, each.line)
            for each in conversion.applied
            if Path(each.path or start) == project / name
        ]
        with self.editor(project / name, home) as editor:
            editor.wait_for(*shown)
            editor.apply(WHOLE_PROGRAM, 1, "source.makeDistributed.trainshift")
            editor.wait_for_text(wanted[(project / name).as_posix()])
            # The files are edited one after another.
            editor.until("all files are saved", lambda: editor.ask("save_all") and texts(wanted) == wanted)

    def test_the_command_takes_the_buffer_as_it_is(self, edit: Edit) -> None:
        editor = edit(MNIST.read_bytes())
        line = line_of(editor.path, STATEMENTS[0])
        editor.wait_for(*changes(editor.path))
        editor.apply("Trainshift: Make distributed: ", line, "quickfix")
        editor.wait_for_text(converted(editor.path, "--at", str(line)))
        editor.ask("execute", "trainshift.makeDistributed")
        editor.wait_for_text(converted(editor.path))

    @pytest.mark.parametrize("mode", ["forward", "reverse"])
    def test_a_function_is_differentiated(self, edit: Edit, mode: str) -> None:
        editor = edit(PENDULUM.encode())
        editor.wait_for(Shown("TF03", 4))
        editor.apply(f"Trainshift: Differentiate ({mode} mode)", line_of(editor.path, "return 0.5"))
        editor.wait_for_text(differentiated(editor.path, mode))

    def test_a_static_function_is_expanded(self, edit: Edit) -> None:
        editor = edit(HALVED.encode())
        editor.wait_for(Shown("PD09", line_of(editor.path, "while x.max() > 1")))
        title = "Trainshift: Expand to static graph code (for reading): grow"
        editor.apply(title, line_of(editor.path, "x = x * 2"))
        editor.wait_for_text(in_graph_code(editor.path))
