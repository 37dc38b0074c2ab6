"""What programs make of the files that they are of."""

from __future__ import annotations

import posixpath

from trainshift.engine.conversion import convert_program
from trainshift.engine.programs import KeptClaims
from trainshift.engine.workspace import ParsedFiles

NET = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD({rate})
model.compile(optimizer, "mse")
"""
STARRED = """\
from ops import *

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


step(tf.ones([8, 3]))
"""
TRAIN = "from net import model\n\nmodel.fit([1.0], [1.0])\n"


def test_claims_are_kept_while_the_files_of_their_program_stay() -> None:
    texts = {"/p/net.py": NET.format(rate=0.1), "/p/train.py": TRAIN, "/p/other.py": "print(1)\n"}
    names = frozenset(map(posixpath.basename, texts))
    files = ParsedFiles(texts.get, lambda folder: names if folder == "/p" else frozenset())
    claims = KeptClaims(files)
    first = claims.of("/p/train.py")
    assert first is not None
    assert {path for path, _, _ in first.wanted} == {"/p/net.py"}

    texts["/p/other.py"] = "print(2)\n"
    files.forget("/p/other.py", is_edit=True)
    assert claims.of("/p/train.py") is first

    texts["/p/net.py"] = NET.format(rate=0.25)
    files.forget("/p/net.py", is_edit=True)
    second = claims.of("/p/train.py")
    assert second is not None
    assert second.wanted.keys() != first.wanted.keys()


def test_a_star_import_at_the_top_names_tensorflow() -> None:
    texts = {"/p/ops.py": "import tensorflow as tf\n", "/p/train.py": STARRED}
    files = ParsedFiles(texts.get, lambda folder: frozenset({"ops.py", "train.py"} if folder == "/p" else ()))
    result = convert_program(STARRED, "/p/train.py", files).text
    assert "import tensorflow" not in result
    assert "with tf.init_scope():" in result
    assert result.index("from ops import *") < result.index("import horovod.tensorflow as hvd")
