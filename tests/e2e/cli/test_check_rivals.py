"""`check` of programs that share a file: the same findings, whatever else is checked with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trainshift.cli.checks.check import MANY_FILES
from trainshift.cli.main import cli

SHARED = "import random\n\n\ndef pick():\n    rate = random.uniform(1e-4, 1e-2)\n    return rate\n"
PROGRAM = """import numpy as np
import tensorflow as tf
from shared import pick


def main():
    x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(pick()), "mse")
    model.fit(x, y, epochs=2)


main()
"""
# It is refused itself, and runs the shared draw where ranks cannot meet.
REFUSED = """import gym
import numpy as np
import tensorflow as tf
from shared import pick

cluster = tf.distribute.experimental.ParameterServerStrategy(None)


def main():
    env = gym.make("CartPole-v1")
    state, done = env.reset(), False
    while not done:
        state, reward, done, _ = env.step(int(pick() > 0.5))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=2)


main()
"""


def findings(*args: str) -> list[str]:
    found = CliRunner().invoke(cli, ["check", "--format", "github", *args]).output
    return [line for line in found.splitlines() if "a.py" in line.partition(",")[0]]


@pytest.mark.parametrize("number", [0, MANY_FILES])
def test_a_refused_rival_counts_whichever_files_are_checked(here: Path, number: int) -> None:
    """Also in several processes, and by the kept results of an earlier check."""
    (here / "pyproject.toml").write_text("")
    for name, text in (("shared", SHARED), ("a", PROGRAM), ("b", REFUSED)):
        (here / f"{name}.py").write_text(text)
    for each in range(number):
        (here / f"z{each:03}.py").write_text("x = 1\n")
    expected = findings("--no-cache", "a.py")
    assert any("a.py and b.py need different changes" in line for line in expected)
    assert findings("--no-cache", "--jobs", "2", ".") == expected
    assert findings("--no-cache", "--exclude", "b.py", ".") == expected
    findings(".")
    (here / "a.py").write_text(f"{PROGRAM}# edited\n")
    assert findings(".") == expected
