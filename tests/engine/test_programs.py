"""What programs claim of the files that they share."""

from __future__ import annotations

import posixpath

from trainshift.engine.programs import KeptClaims
from trainshift.engine.workspace import ParsedFiles

NET = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD({rate})
model.compile(optimizer, "mse")
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
