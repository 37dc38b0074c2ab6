"""Layouts: a program in a repository is found, with the same result, by every kind of request.

Each layout is checked and converted by the command line from the project's root, from the folder of its start
file and from elsewhere, and by editors that have the root, that folder or no folder open.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from e2e.cli.notebooks import notebook, sources
from e2e.lsp.session import PULLING, Session, serve
from e2e.lsp.test_notebooks import NOTEBOOK, Notebook
from e2e.lsp.test_programs import made, opened, whole
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
    """The files of a repository, and the files that the conversion of each start file changes.

    The paragraphs of a notebook are its cells.
    """

    files: Mapping[str, str]
    changed: Mapping[str, set[str]]


FROM_STEPS, FROM_LIB = main("from steps import train_step"), main("from lib.steps import train_step")
BESIDE = (
    "import os\nimport sys\nsys.path.append(os.path.join(os.path.dirname(__file__), '..', '..', 'common'))\n"
)
CELL = "\n\n"
ABOVE = "import sys\nsys.path.append('..')\n"
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
    "run_both_ways": Layout(
        {
            "pkg/__init__.py": "",
            "pkg/steps.py": STEPS,
            "pkg/train.py": FROM_STEPS,
            "pkg/again.py": main("from pkg.steps import train_step"),
            "other.py": "print(1)\n",
        },
        {
            "pkg/train.py": {"pkg/train.py", "pkg/steps.py"},
            "pkg/again.py": {"pkg/again.py", "pkg/steps.py"},
        },
    ),
    "notebooks_beside_a_package": Layout(
        {
            "pyproject.toml": "[project]\nname = 'lib'\n",
            "lib/__init__.py": "",
            "lib/steps.py": STEPS,
            "explore.ipynb": FROM_LIB,
            "notebooks/train.ipynb": main("from lib.steps import train_step", before=ABOVE),
        },
        {
            "explore.ipynb": {"explore.ipynb", "lib/steps.py"},
            "notebooks/train.ipynb": {"notebooks/train.ipynb", "lib/steps.py"},
        },
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
        written = notebook(cells_of(text)) if name.endswith(".ipynb") else text
        (root / name).write_text(written, encoding="utf-8")
    return root


def cells_of(text: str) -> list[tuple[str, str]]:
    """The cells of a notebook."""
    return [("code", cell) for cell in text.split(CELL)]


def text_of(path: Path) -> str:
    """The text of a script, or of a notebook as a script."""
    text = path.read_text(encoding="utf-8")
    return CELL.join(sources(text)) if path.suffix == ".ipynb" else text


Findings = set[tuple[int, int, str, str]]
Answer = tuple[dict[str, str], Findings]
"""The texts of the files that a conversion changes, and the findings in the start file: cell, line, code,
message."""


def answer_by_command(layout: Layout, root: Path, argument: str) -> Answer:
    """The answer of the command line in the current folder."""
    result = CliRunner().invoke(cli, ["check", "--no-cache", "--format", "json", argument])
    (file,) = json.loads(result.stdout)["files"]
    assert not file["error"]
    found = {
        (each.get("cell", 1), each["line"], each["code"], each["message"]) for each in file["diagnostics"]
    }
    result = CliRunner().invoke(cli, ["convert", "--write", argument], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    texts = {name: text_of(root / name) for name in layout.files}
    return {name: text for name, text in texts.items() if text != layout.files[name]}, found


async def answer_by_editor(session: Session, layout: Layout, root: Path, start: str) -> Answer:
    """The answer of an editor, after one action."""
    documents, is_notebook = [], start.endswith(".ipynb")
    if is_notebook:
        cells = [("python", text) for _, text in cells_of(layout.files[start])]
        book = Notebook(session, cells, uri=(root / start).as_uri())
        documents = book.documents
        await session.outline(documents[0].uri)
        (action,) = await session.actions(documents[0], 0, only=[NOTEBOOK])
    else:
        documents = [opened(session, root / start)]
        action = await whole(session, documents[0])
    found = {
        (number, each.range.start.line + 1, str(each.code), each.message)
        for number, document in enumerate(documents, 1)
        for each in await session.pulled(document)
        if not str(each.code).startswith("HV")
    }
    after = await made(session, action)
    texts = {uri.removeprefix(f"{root.as_uri()}/"): text for uri, text in after.items()}
    if is_notebook:
        now = [texts.pop(each.uri, each.text) for each in documents]
        texts[start] = CELL.join(now)
        book.close()
    session.clear()
    return texts, found


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
            answers.append(answer_by_command(layout, root, argument))
        assert answers[0][0].keys() == changed
        laid_out(layout, root)
        answers.append(await answer_by_editor(puller, layout, root, start))
        # A separate server takes a second: one start file of each layout has both.
        for folder in (root, (root / start).parent) if start in [*layout.changed][:1] else ():
            async with serve(PULLING, folders=[folder]) as session:
                answers.append(await answer_by_editor(session, layout, root, start))
        for each in answers:
            assert each == answers[0]
