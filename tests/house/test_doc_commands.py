"""Every command of the README and of the docs is run on sample scripts, or checked in another way.

`trainshift` commands run in this process; of `prove`, `doctor` and `--watch` only the options are read.
`make` commands name targets of the Makefile.  `REASONS` lists all others, each with the reason why it is not
run here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from e2e.cli.notebooks import CHECKED, document
from import_graph import ROOT
from trainshift.cli.main import cli
from trainshift.libraries import toml

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "server" / "ARCHITECTURE.md",
    ROOT / "vscode-extension" / "README.md",
    *sorted((ROOT / "server" / "docs").glob("*.md")),
]
# The exit statuses of commands that find something in the sample scripts; all others end with 0.
FINDS = {
    "trainshift check src/": 1,
    "trainshift check --statistics .": 1,
    "trainshift check --format sarif .": 1,
    "trainshift check --output-file report.txt .": 1,
    "trainshift convert --check src/": 1,
    "trainshift differentiate model.py:loss --check": 1,
    "trainshift calculus equal f.txt g.txt": 1,
}
# Commands that are not run here, by their beginning, with the reason and what checks them.
REASONS = {
    "horovodrun ": "needs Horovod: tests/e2e/cli/test_horovodrun.py and tests/proof start its ranks",
    "pip install .": "installs: tests/house/test_release.py and the workflow `release` do, with the wheel",
    "python -m pip ": "installs: tests/e2e/cli/test_doctor.py compares it with the output of `doctor`",
    "export ": "belongs to an installation: as above",
    "tar ": "belongs to an installation: as above",
    "patch ": "belongs to an installation: as above",
    "PATH=": "belongs to an installation: as above",
    "python -m trainshift.dev.": "a tool for developers: its module exists, see below",
    "code ": "needs an editor: tests/e2e/editors install the packages",
    "code-server ": "needs an editor: tests/e2e/editors install the packages",
    "pytest ": "runs tests: the options exist, see below",
    "python tests/": "runs a gate, as `make lint` does",
    "git ": "changes a repository",
    "sbatch ": "needs a cluster: run by hand, as the table on the page says",
    "docker ": "needs Docker, as the table on the page says",
    "kubectl ": "needs a cluster, as the table on the page says",
    "srun ": "needs a cluster: run by hand, as the table on the page says",
    "eval ": "belongs to a shell: test_the_shells_of_the_docs_are_completed",
    "_TRAINSHIFT_COMPLETE=": "belongs to a shell: as above",
}
COMMAND = re.compile(
    r"(?!python -m$)(?:trainshift|make|horovodrun|pip|python|code|code-server|git|pytest)\s"
    r"|(?:sbatch|srun|docker|kubectl|export|tar|patch|eval)\s|PATH=|_TRAINSHIFT_COMPLETE="
)


class Command(NamedTuple):
    """A command, and the page that it is from."""

    page: Path
    text: str


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands in a page's blocks of code and in its lines of prose."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^(?: {4,}.*\n?)+|^```(?:console|sh)?\n(?:.*\n)*?```$", text, re.M):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if COMMAND.match(line := line.strip().removeprefix("$ ")):
                yield Command(page, line)
    prose = re.sub(r"^```(?:.*\n)*?```$|^ {4}.*$", "", text, flags=re.M)
    for line in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose):
        if COMMAND.match(line):
            yield Command(page, line)


COMMANDS = sorted({command for page in PAGES for command in commands(page)})
OURS = [command for command in COMMANDS if command.text.startswith("trainshift ")]

TRAINER = """\
import tensorflow as tf

from data import batches


def train(model, optimizer):
    for x, y in batches():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
DATA = """\
import tensorflow as tf


def batches():
    data = tf.data.Dataset.from_tensor_slices((tf.ones([80, 4]), tf.ones([80, 1])))
    return data.batch(8)
"""
PROGRAM = """\
import tensorflow as tf

from trainer import train

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(1e-3)
train(model, optimizer)
print("done")
"""
MODEL = """\
import paddle
from paddle.static import InputSpec


class Net(paddle.nn.Layer):
    def forward(self, x):
        return x * 2


@paddle.jit.to_static(full_graph=True, input_spec=[InputSpec([2], "float32")])
def f(x):
    if x.sum() > 0:
        x = x * 2
    return x


def loss(w, b, x, y):
    return (w * x + b - y) ** 2
"""


def _at_line(text: str, statement: str, line: int) -> str:
    """Put blank lines above a statement so that it is on a given line."""
    before, _, after = text.partition(statement)
    return before + "\n" * (line - before.count("\n") - 1) + statement + after


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files that the commands in the docs name."""
    folder = tmp_path_factory.mktemp("samples")
    lines = {"train.py": ("optimizer = ", PROGRAM), "data.py": ("    return", DATA)}
    for name, (statement, text) in lines.items():
        (folder / name).write_text(_at_line(text, statement, 42))
    (folder / "trainer.py").write_text(TRAINER)
    (folder / "model.py").write_text(MODEL)
    (folder / "src").mkdir()
    shutil.copy(ROOT / "fixtures" / "readme" / "train.py", folder / "src")
    shutil.copy(ROOT / "fixtures" / "readme" / "by_hand.py", folder / "src")
    (folder / "fixtures").mkdir()
    shutil.copytree(ROOT / "fixtures" / "readme", folder / "fixtures" / "readme")
    shutil.copy(ROOT / "fixtures" / "readme" / "by_hand.py", folder)
    kind, text = CHECKED[2]
    cells = (*CHECKED[:2], (kind, "\n" * (12 - text.count("\n") - 1) + text), *CHECKED[3:])
    (folder / "train.ipynb").write_text(json.dumps(document(cells)))
    (folder / "f.txt").write_text("λx. x * x + 3 * x")
    (folder / "g.txt").write_text("λx. x * x")
    return folder


@pytest.fixture
def here(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sample folder, made the current directory."""
    folder = tmp_path / "project"
    shutil.copytree(samples, folder)
    monkeypatch.chdir(folder)
    return folder


def _one_script(folder: Path) -> None:
    shutil.copy(folder / "src" / "train.py", folder)


def _derivative(folder: Path) -> None:
    CliRunner().invoke(cli, ["differentiate", str(folder / "model.py:loss"), "--write"])


def _own_library(folder: Path) -> None:
    (folder / "trainshift.toml").write_text('[libraries."acme.tracking"]\n"start" = { role = "tracker" }\n')


# Set-up for commands that need a file with a text.
PREPARED: dict[str, Callable[[Path], None]] = {
    "train_hvd.py": _one_script,
    "loss_grad": _derivative,
    "acme.": _own_library,
}


def _arguments(text: str) -> tuple[list[str], str | None]:
    """The arguments of a command without its comment, and the file that is its standard input."""
    words = shlex.split(text.replace("PYTHON", sys.executable).replace("CODE", "HV04"), comments=True)
    if "<" in words:
        at = words.index("<")
        return words[1:at], words[at + 1]
    return words[1:], None


@pytest.mark.parametrize("command", OURS, ids=lambda command: f"{command.page.stem}: {command.text[:60]}")
def test_a_command_of_the_docs_runs(command: Command, here: Path) -> None:
    arguments, stdin = _arguments(command.text)
    name = arguments[0]
    group = cli.get_command(click.Context(cli), name)
    assert group is not None, command.text
    if len(arguments) == 1:  # the command itself is meant
        return
    if name == "prove" or "--watch" in arguments or (name == "doctor" and "--write-patch" not in arguments):
        words = [sys.executable if word.endswith("bin/python") else word for word in arguments[1:]]
        group.make_context(name, words)  # reads the options, and runs nothing
        return
    for part, prepare in PREPARED.items():
        if part in command.text:
            prepare(here)
    given = (here / stdin).read_bytes() if stdin else None
    result = CliRunner().invoke(cli, arguments, input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    wanted = FINDS.get(command.text.partition("  #")[0].strip(), 0)
    assert result.exit_code == wanted, (result.stdout, result.stderr)
    assert result.output.strip() or [*here.glob("*.patch"), *here.glob("report.txt")]


def test_the_shells_of_the_docs_are_completed() -> None:
    texts = [each.text for each in COMMANDS if "_TRAINSHIFT_COMPLETE=" in each.text]
    values = [match[1] for text in texts if (match := re.search(r"_TRAINSHIFT_COMPLETE=(\w+)", text))]
    assert len(values) == len(texts) == 3
    for value in values:
        environment = {**os.environ, "_TRAINSHIFT_COMPLETE": value}
        command = [sys.executable, "-m", "trainshift"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert "trainshift" in done.stdout, done.stderr


def test_the_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = [command for command in COMMANDS if command.text.startswith("make ")]
    assert [each for each in named if each.text.split()[1] not in targets] == []


def test_all_other_commands_are_listed_with_a_reason() -> None:
    others = [each for each in COMMANDS if not each.text.startswith(("trainshift ", "make "))]
    assert [each for each in others if not each.text.startswith(tuple(REASONS))] == []
    assert [each for each in REASONS if not any(other.text.startswith(each) for other in others)] == []


def test_installed_extras_and_modules_exist() -> None:
    extras = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    options = (ROOT / "tests" / "support" / "turns.py").read_text() + (
        ROOT / "tests" / "conftest.py"
    ).read_text()
    for _, text in COMMANDS:
        for extra in re.findall(r'"\.\[([\w-]+)\]"', text):
            assert extra in extras
        if module := re.match(r"python -m (trainshift\.[\w.]+)", text):
            assert (ROOT / "server" / (module[1].replace(".", "/") + ".py")).exists()
        if text.startswith("pytest ") and (option := re.search(r" --[\w-]+", text)):
            assert option[0].strip() in options
