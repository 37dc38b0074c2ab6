"""Notebooks as files, for the tests of the command line."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

IMPORTS = "%matplotlib inline\n!pip install tensorflow 🎉\nimport tensorflow as tf"
MODEL = "# 🎉\nopt = tf.keras.optimizers.Adam(1e-3)\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])"
STEP = """\
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
"""
LOOP = "%%time\nfor i in range(10):\n    step(tf.ones([4, 2]))\n    print(i)"
ALIAS = "x = 1\nAdam = tf.keras.optimizers.Adam  # 🎉"
CELLS = (("code", IMPORTS), ("markdown", "# Not Python: (("), ("code", MODEL), ("code", STEP), ("code", LOOP))
CHECKED = (
    ("code", "import tensorflow as tf"),
    ("markdown", "# x"),
    ("code", ALIAS),
    ("code", "opt = Adam(1e-3)"),
)
TRAINER = """\
import tensorflow as tf


class Trainer:
    def __init__(self, rate):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        self.optimizer = tf.keras.optimizers.Adam(rate)

    def run(self, data):
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - y) ** 2)
            grads = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
"""
USING = (
    ("code", "import tensorflow as tf\nfrom trainer import Trainer"),
    ("markdown", "# Data"),
    ("code", "x = tf.ones((64, 3))\ndata = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)"),
    ("code", "%%time\ntrainer = Trainer(1e-3)\ntrainer.run(data)"),
    ("code", "trainer.model.save('m.h5')"),
)


def document(
    cells: Iterable[tuple[str, str]], *, language: str = "python", as_list: bool = True
) -> dict[str, Any]:
    """A notebook of format 4 in JSON."""
    listed: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells):
        source = text.splitlines(keepends=True) if as_list else text
        cell: dict[str, Any] = {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source}
        if kind == "code":
            output = {"data": {"text/plain": ["é 🎉"]}, "output_type": "display_data", "source": ["no"]}
            cell = {"execution_count": number, **cell, "outputs": [output]}
        listed.append(cell)
    kernel = {"display_name": language, "language": language, "name": "kernel"}
    return {"cells": listed, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def notebook(cells: Iterable[tuple[str, str]] = CELLS, **options: Any) -> str:
    """A notebook in Jupyter's format."""
    return json.dumps(document(cells, **options), indent=1, ensure_ascii=False) + "\n"


def sources(text: str) -> list[str]:
    """The sources of all cells."""
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def cut(script: str) -> list[str]:
    """A script as cells: one for every few top-level statements, with the comments before them."""
    lines = script.splitlines(keepends=True)
    starts = [
        min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
        for node in ast.parse(script).body
    ]
    ends = [node.end_lineno for node in ast.parse(script).body]
    alone = [start for start, end in zip(starts[1:], ends, strict=False) if end is not None and start >= end]
    bounds = [0, *alone[::2], len(lines)]
    return ["".join(lines[a:b]).rstrip("\n") for a, b in pairwise(bounds) if a < b]
