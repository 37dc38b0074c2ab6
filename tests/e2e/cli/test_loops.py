"""The command `loops`: the tree, the JSON, and the messages without a loop or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainshift.cli.main import cli

TRAINER = """\
import tensorflow as tf


def train(model, data):
    optimizer = tf.keras.optimizers.Adam()
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
MAIN = """\
import tensorflow as tf
from trainer import train

net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
train(net, load())
net.compile(optimizer="sgd", loss="mse")
net.fit(load(), epochs=2)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script and the file that it imports, in the current directory."""
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "trainer.py").write_text(TRAINER)
    (tmp_path / "notes.py").write_text("print('no training here')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """Run the command: exit status, standard output and standard error."""
    result = CliRunner().invoke(cli, ["loops", *arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_the_tree_shows_each_loop_with_its_parts(project: Path) -> None:
    status, out, err = run("main.py")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "main.py: model.fit and GradientTape",
        "├── 7:1  net.fit(load(), epochs=2)",
        "│   ├── model      net",
        '│   └── optimizer  "sgd"',
        "└── trainer.py:6:5  for x, y in data",
        "    ├── trains     optimizer.apply_gradients(...)  trainer.py:10:9 in train()",
        "    ├── model      model",
        "    ├── optimizer  optimizer",
        "    └── tape       tape",
    ]


def test_a_file_that_another_one_imports_is_shown_with_its_program(project: Path) -> None:
    _, out, _ = run(".")
    assert out.count("model.fit and GradientTape") == 1
    assert "trainer.py: GradientTape" not in out
    assert out.endswith("1 other file without a training loop.\n")
    _, named, _ = run("trainer.py")
    assert named.startswith("trainer.py: GradientTape")
    assert "in train(), which nothing calls by name" in named


def test_json_carries_patterns_spans_and_summaries(project: Path) -> None:
    status, out, _ = run("main.py", "--format", "json")
    (program,) = json.loads(out)["programs"]
    assert status == 0
    assert program["pattern"] == "several"
    assert sorted(program["patterns"]) == program["runs"] == ["GradTape", "Optimizer"]
    tape = program["loops"][1]
    assert (tape["path"], tape["line"], tape["column"]) == ("trainer.py", 6, 5)
    assert tape["loop"] == {"path": "trainer.py", "line": 6, "column": 5, "end_line": 6, "end_column": 21}
    assert (tape["models"], tape["optimizers"], tape["tapes"]) == (["model"], ["optimizer"], ["tape"])
    assert tape["function"] == "train"
    (alone,) = json.loads(run("trainer.py", "--format", "json")[1])["programs"]
    assert alone["functions"] == {"train": ["GradTape"]}
    assert alone["runs"] == []


def test_no_loop_is_no_error_and_says_what_was_looked_for(project: Path) -> None:
    status, out, _ = run("notes.py")
    assert status == 0
    assert "no training loop: looked for" in out
    (program,) = json.loads(run("notes.py", "--format", "json")[1])["programs"]
    assert (program["pattern"], program["loops"]) == ("none", [])
    assert program["reason"].startswith("no training loop")


def test_standard_input(project: Path) -> None:
    status, out, _ = run("-", stdin=TRAINER)
    assert status == 0
    assert out.startswith("<stdin>: GradientTape")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.py", None, "cannot be read"),
        ("broken.py", b"def f(:\n", "broken.py:1:7: error: not Python"),
        ("binary.py", b"\xff\xfe\x00\x01", "error: "),
        ("null.py", b"x = 1\0\n", "a null byte"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_shown(
    project: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (project / name).write_bytes(content)
    status, out, err = run(name, "trainer.py")
    assert status == 2
    assert name in err
    assert message in err
    assert "trainer.py: GradientTape" in out


def test_files_that_import_each_other(project: Path) -> None:
    (project / "trainer.py").write_text("import main\n" + TRAINER)
    status, out, _ = run("main.py")
    assert status == 0
    assert "trainer.py:7:5  for x, y in data" in out


def test_a_module_is_told_to_belong_to_its_programs(project: Path) -> None:
    status, _, err = run("trainer.py")
    assert (status, err) == (0, "trainer.py belongs to the program of main.py.\n")
    (program,) = json.loads(run("main.py", "--format", "json")[1])["programs"]
    assert (program["files"], program["belongs_to"]) == (["main.py", "trainer.py"], [])
    (alone,) = json.loads(run("trainer.py", "--format", "json")[1])["programs"]
    assert (alone["files"], alone["belongs_to"]) == (["trainer.py"], ["main.py"])


def test_a_file_that_is_started_and_imported_is_shown_twice(project: Path) -> None:
    guarded = TRAINER + '\n\nif __name__ == "__main__":\n    train(tf.keras.Sequential(), [])\n'
    (project / "trainer.py").write_text(guarded)
    _, out, _ = run(".")
    assert [line for line in out.splitlines() if line.endswith(("Optimizer", "Tape"))] == [
        "main.py: model.fit and GradientTape",
        "trainer.py: GradientTape",
    ]
