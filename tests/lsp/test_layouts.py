"""Layouts: a program in a repository is found, with the same result, by every kind of request.

Each layout is converted by the command line from the project's root, from the folder of its start file and
from elsewhere, and by editors that have the root, that folder or no folder open.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from lsp.session import PULLING, Session, serve
from lsp.test_programs import made, opened, whole
from trainshift.cli.main import cli

pytestmark = pytest.mark.asyncio(loop_scope="session")

STEPS = """\
import tensorflow as tf

optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function
def train_step(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss
"""
OTHER_STEPS = STEPS.replace("0.1", "0.2")
TEST = """\
from steps import train_step


def test_it():
    assert train_step
"""


def main(imported: str, called: str = "train_step", before: str = "") -> str:
    """A start file with an imported step."""
    return f"""\
{before}import tensorflow as tf
{imported}

model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
data = tf.data.Dataset.from_tensor_slices((tf.ones((64, 4)), tf.ones((64, 1)))).batch(8)
for x, y in data:
    loss = {called}(model, x, y)
print("loss", loss)
"""


class Layout(NamedTuple):
    """The files of a repository, and the files that the conversion of each start file changes."""

    files: Mapping[str, str]
    changed: Mapping[str, set[str]]


FROM_STEPS, FROM_LIB = main("from steps import train_step"), main("from lib.steps import train_step")
BESIDE = (
    "import os\nimport sys\nsys.path.append(os.path.join(os.path.dirname(__file__), '..', '..', 'common'))\n"
)
LAYOUTS = {
    "below_another_file": Layout(
        {"other.py": "print(1)\n", "mnist/main.py": FROM_STEPS, "mnist/steps.py": STEPS},
        {"mnist/main.py": {"mnist/main.py", "mnist/steps.py"}},
    ),
    "examples_of_a_package": Layout(
        {
            "setup.py": "from setuptools import setup\n\nsetup(name='lib')\n",
            "lib/__init__.py": "",
            "lib/steps.py": STEPS,
            "examples/mnist/train.py": FROM_LIB,
            "examples/cifar/train.py": main("from lib import steps", "steps.train_step"),
        },
        {
            "examples/mnist/train.py": {"examples/mnist/train.py", "lib/steps.py"},
            "examples/cifar/train.py": {"examples/cifar/train.py", "lib/steps.py"},
        },
    ),
    "src_and_tests": Layout(
        {
            "pyproject.toml": "[project]\nname = 'lib'\n",
            "src/lib/__init__.py": "",
            "src/lib/steps.py": STEPS,
            "src/lib/train.py": FROM_LIB,
            "examples/run.py": FROM_LIB,
            "tests/test_steps.py": TEST.replace("steps", "lib.steps"),
        },
        {
            "src/lib/train.py": {"src/lib/train.py", "src/lib/steps.py"},
            "examples/run.py": {"examples/run.py", "src/lib/steps.py"},
        },
    ),
    "run_as_a_module": Layout(
        {
            "pkg/__init__.py": "",
            "pkg/steps.py": STEPS,
            "pkg/train.py": main("from pkg.steps import train_step"),
            "pkg/again.py": main("from .steps import train_step"),
        },
        {
            "pkg/train.py": {"pkg/train.py", "pkg/steps.py"},
            "pkg/again.py": {"pkg/again.py", "pkg/steps.py"},
        },
    ),
    "run_in_its_folder": Layout(
        {"pkg/__init__.py": "", "pkg/steps.py": STEPS, "pkg/train.py": FROM_STEPS},
        {"pkg/train.py": {"pkg/train.py", "pkg/steps.py"}},
    ),
    "ten_start_files": Layout(
        {"steps.py": STEPS, **{f"train_{number}.py": FROM_STEPS for number in range(10)}},
        {"train_3.py": {"train_3.py", "steps.py"}},
    ),
    "a_path_that_is_appended": Layout(
        {
            "common/steps.py": STEPS,
            "apps/a/train.py": main("from steps import train_step", before=BESIDE),
            "apps/b/train.py": main(
                "from common.steps import train_step", before="import sys\nsys.path.append('../..')\n"
            ),
        },
        {
            "apps/a/train.py": {"apps/a/train.py", "common/steps.py"},
            "apps/b/train.py": {"apps/b/train.py", "common/steps.py"},
        },
    ),
    "a_path_in_a_file": Layout(
        {".env": "PYTHONPATH=lib:other\n", "lib/steps.py": STEPS, "scripts/train.py": FROM_STEPS},
        {"scripts/train.py": {"scripts/train.py", "lib/steps.py"}},
    ),
    "folders_with_files_of_one_name": Layout(
        {
            "a/steps.py": STEPS,
            "a/train.py": FROM_STEPS,
            "b/steps.py": OTHER_STEPS,
            "b/train.py": main("import steps", "steps.train_step"),
        },
        {"a/train.py": {"a/train.py", "a/steps.py"}, "b/train.py": {"b/train.py", "b/steps.py"}},
    ),
    "tests_beside": Layout(
        {"steps.py": STEPS, "train.py": FROM_STEPS, "tests/__init__.py": "", "tests/test_steps.py": TEST},
        {"train.py": {"train.py", "steps.py"}},
    ),
    "several_projects": Layout(
        {
            "a/pyproject.toml": "[project]\nname = 'a'\n",
            "a/steps.py": STEPS,
            "a/train.py": FROM_STEPS,
            "b/pyproject.toml": "[project]\nname = 'b'\n",
            "b/steps.py": OTHER_STEPS,
            "b/train.py": FROM_STEPS,
            "common/tool.py": "x = 1\n",
        },
        {"a/train.py": {"a/train.py", "a/steps.py"}, "b/train.py": {"b/train.py", "b/steps.py"}},
    ),
}


def laid_out(layout: Layout, root: Path) -> Path:
    """A repository with the files of a layout."""
    shutil.rmtree(root, ignore_errors=True)
    (root / ".git").mkdir(parents=True)
    for name, text in layout.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


async def texts_by_editor(session: Session, root: Path, start: str) -> dict[str, str]:
    """The texts after one action, by file name."""
    texts = await made(session, await whole(session, opened(session, root / start)))
    session.clear()
    return {uri.removeprefix(f"{root.as_uri()}/"): text for uri, text in texts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_a_layout_is_answered_alike(
    layout: Layout, puller: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, away = tmp_path / "repository", tmp_path / "away"
    away.mkdir()
    for start, changed in layout.changed.items():
        answers = []
        for here, argument in (
            (root, start),
            ((root / start).parent, Path(start).name),
            (away, str(root / start)),
        ):
            laid_out(layout, root)
            monkeypatch.chdir(here)
            result = CliRunner().invoke(cli, ["convert", "--write", argument], catch_exceptions=False)
            assert result.exit_code == 0, result.stderr
            texts = {name: (root / name).read_text(encoding="utf-8") for name in layout.files}
            answers.append({name: text for name, text in texts.items() if text != layout.files[name]})
        assert answers[0].keys() == changed
        laid_out(layout, root)
        answers.append(await texts_by_editor(puller, root, start))
        # A separate server takes a second: one start file of each layout has both.
        for folder in (root, (root / start).parent) if start in [*layout.changed][:1] else ():
            async with serve(PULLING, folders=[folder]) as session:
                answers.append(await texts_by_editor(session, root, start))
        assert all(answer == answers[0] for answer in answers)
