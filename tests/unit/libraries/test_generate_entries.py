"""The generator of entries, on a package that the test creates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainshift.dev import generate_entries
from trainshift.libraries import entries

OPTIMIZERS = """
import tensorflow as tf


class Base(tf.keras.optimizers.legacy.Optimizer):
    def __init__(self, learning_rate: float = 0.1, *, name: str = "Base", **kwargs):
        super().__init__(name, **kwargs)


class Heir(Base):
    pass


class _Hidden(Base):
    pass


class Plain:
    pass
"""
MODELS = """
from .optimizers import Base
from tensorflow import keras


class Tape(keras.Model):
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.loss(data)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights))


class Minimizing(keras.Model):
    def train_step(self, data):
        self.optimizer.minimize(self.loss(data), self.weights, tape=tape)


class AsKeras(keras.Model):
    pass


class Stop(keras.callbacks.Callback):
    def __init__(self, seconds):
        pass
"""
SIGNATURE = "learning_rate=0.1, *, name='Base', **kwargs"
MADE = """\
# A package that is made.
"optimizers.Base" = { role = "optimizer", signature = "learning_rate=0.01" }
"Stop" = { role = "callback", ranks = "every" }
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a package `made`, two of whose classes have entries."""
    package, data = tmp_path / "made", tmp_path / "data"
    package.mkdir()
    data.mkdir()
    for name, text in (("__init__", ""), ("optimizers", OPTIMIZERS), ("models", MODELS)):
        (package / f"{name}.py").write_text(text, "utf-8")
    (package / "models_test.py").write_text(
        "class Test(keras.Model):\n    def train_step(self): minimize()\n"
    )
    (data / "made.toml").write_text(MADE, "utf-8")
    monkeypatch.setattr(entries, "DATA", data)
    entries.table.cache_clear()
    yield tmp_path
    entries.table.cache_clear()


def test_what_an_entry_lacks_is_proposed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate_entries.main(["made", "--path", str(made)])
    assert capsys.readouterr().out.splitlines() == [
        '"models.Tape" = { role = "model", step = "tape" }',
        '"models.Minimizing" = { role = "model", step = "minimize" }',
        f'"optimizers.Heir" = {{ role = "optimizer", signature = "{SIGNATURE}" }}',
    ]


def test_signatures_are_refreshed(made: Path) -> None:
    generate_entries.main(["made", "--path", str(made), "--write"])
    text = (made / "data" / "made.toml").read_text("utf-8")
    assert text == MADE.replace("learning_rate=0.01", SIGNATURE)


def test_a_package_that_is_not_there(made: Path) -> None:
    with pytest.raises(SystemExit, match="There is no package 'other' here"):
        generate_entries.main(["other", "--path", str(made)])
