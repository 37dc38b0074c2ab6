"""The values of names: every spelling, through scopes, attributes, containers and calls."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Iterator

import pytest

from trainshift.libraries import api
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.values import UNKNOWN, Instance, Value

ADAM = "tensorflow.keras.optimizers.Adam"


def last_value(text: str) -> tuple[Script, set[Value]]:
    """The possible values of the last expression statement in a script."""
    script = read_script(text)
    assert isinstance(script, Script)
    statement = next(s for s in reversed(script.statements) if isinstance(s.node, ast.Expr))
    assert isinstance(statement.node, ast.Expr)
    return script, set(script.names.values(statement.node.value, statement.scope, statement))


def names(text: str) -> frozenset[str]:
    """The full names that the last expression of a script resolves to."""
    script, _ = last_value(text)
    statement = next(s for s in reversed(script.statements) if isinstance(s.node, ast.Expr))
    assert isinstance(statement.node, ast.Expr)
    return script.names.full_names(statement.node.value, statement.scope, statement)


def classes(text: str) -> set[str]:
    """The library classes of the last expression's possible values; "?" for unknown."""
    _, values = last_value(text)
    return {
        value.cls if isinstance(value, Instance) else "?" if value == UNKNOWN else str(value)
        for value in values
    }


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\ntf.keras.optimizers.Adam",
        "import tensorflow as tf\ntf.optimizers.Adam",
        "import tensorflow\ntensorflow.keras.optimizers.Adam",
        "import os, tensorflow as T\nT.keras.optimizers.Adam",
        "import tensorflow.keras as K\nK.optimizers.Adam",
        "import tensorflow.keras\ntensorflow.keras.optimizers.Adam",
        "from tensorflow import keras\nkeras.optimizers.Adam",
        "from tensorflow.keras import optimizers as opt\nopt.Adam",
        "from tensorflow.keras.optimizers import Adam\nAdam",
        "from tensorflow.keras.optimizers import Adam as Best\nBest",
        "from tensorflow.keras import *\noptimizers.Adam",
        "from tensorflow import *\nkeras.optimizers.Adam",
        "from keras import *\noptimizers.Adam",
        "from tensorflow.compat.v2 import *\noptimizers.Adam",
        "from numpy import *\nfrom tensorflow.keras.optimizers import *\nAdam",
        "import keras\nkeras.optimizers.Adam",
        "import tensorflow.compat.v2 as tf\ntf.keras.optimizers.Adam",
        "try:\n    import tensorflow.compat.v2 as tf\nexcept ImportError:\n    import tensorflow as tf\n"
        "tf.optimizers.Adam",
        "import tensorflow as tf\nkeras = tf.keras\nkeras.optimizers.Adam",
        "import tensorflow as tf\n\n\ndef f():\n    tf.optimizers.Adam",
        "def f():\n    import tensorflow as tf\n    tf.optimizers.Adam",
    ],
)
def test_every_spelling_of_a_name_is_one_name(text: str) -> None:
    assert names(text) == {ADAM}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "import tensorflow.compat.v1 as tf\ntf.train.AdamOptimizer",
            "tensorflow.compat.v1.train.AdamOptimizer",
        ),
        ("import tensorflow as tf\ntf.Session", "tensorflow.compat.v1.Session"),
        ("import tensorflow as tf\ntf.compat.v1.Session", "tensorflow.compat.v1.Session"),
        ("import tensorflow as tf\ntf.keras.optimizers.legacy.SGD", "tensorflow.keras.optimizers.legacy.SGD"),
        ("print", "builtins.print"),
    ],
)
def test_names_are_canonical(text: str, expected: str) -> None:
    assert names(text) == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "from os import *\ntf.optimizers.Adam",
        "import tensorflow as tf\n\n\ndef f(tf):\n    tf.optimizers.Adam",
        "import tensorflow as tf\n\n\ndef f():\n    tf = object()\n    tf.optimizers.Adam",
        "import tensorflow as tf\nfor tf in range(3):\n    tf.optimizers.Adam",
        "from .tensorflow import optimizers\noptimizers.Adam",
    ],
)
def test_a_shadowed_or_unseen_name_is_not_the_module(text: str) -> None:
    assert ADAM not in names(text)


HEAD = "import tensorflow as tf\nAdam, SGD = tf.optimizers.Adam, tf.optimizers.SGD\n"
SGD = "tensorflow.keras.optimizers.SGD"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = Adam()\na", {ADAM}),
        ("a, b = Adam(), SGD()\nb", {SGD}),
        ("a = b = Adam()\nb", {ADAM}),
        ("a = Adam() if x else SGD()\na", {ADAM, SGD}),
        ("a = Adam()\na = SGD()\na", {SGD}),
        ("a = Adam()\nif x:\n    a = SGD()\na", {ADAM, SGD}),
        ("if x:\n    a = Adam()\nelse:\n    a = SGD()\na", {ADAM, SGD}),
        ("all = {'a': Adam(), 'b': SGD()}\nall['b']", {SGD}),
        ("all = [Adam(), SGD()]\nall[0]", {ADAM}),
        ("all = {}\nall['a'] = Adam()\nall['a']", {ADAM}),
        ("all = []\nall.append(Adam())\nall[0]", {ADAM}),
        ("def other():\n    all = []\n    all.append(SGD())\nall = [Adam()]\nall[0]", {ADAM}),
        ("all = []\nall.append(Adam())\ndef first(some):\n    return some[0]\nfirst(all)", {ADAM}),
        ("all = dict(a=Adam())\nall['a']", {ADAM}),
        ("all = [Adam() for _ in range(2)]\nall[1]", {ADAM}),
        ("for a in [Adam(), SGD()]:\n    a", {ADAM, SGD}),
        ("for i, a in enumerate([Adam()]):\n    a", {ADAM}),
        ("for a, b in zip([Adam()], [SGD()]):\n    b", {SGD}),
        ("from tqdm import tqdm\nfor a in tqdm([Adam()], total=1):\n    a", {ADAM}),
        ("from tqdm.contrib import tenumerate\nfor i, a in tenumerate([Adam()]):\n    a", {ADAM}),
        ("for k, a in {'x': Adam()}.items():\n    a", {ADAM}),
        ("def make():\n    return Adam()\n\n\na = make()\na", {ADAM}),
        ("def make():\n    return Adam(), SGD()\n\n\na, b = make()\nb", {SGD}),
        ("def use(a):\n    a\n\n\nuse(Adam())\nuse(a=SGD())", {ADAM, SGD}),
        ("def use(a=Adam()):\n    a\n\n\nuse()", {ADAM}),
        ("def use(a):\n    a\n\n\nuse(*rest)", {"?"}),
        ("def use(a):\n    a", {"?"}),
        ("make = lambda: Adam()\na = make()\na", {ADAM}),
        ("class T:\n    def f(self):\n        self.a = Adam()\n\n    def g(self):\n        self.a", {ADAM}),
        ("class B:\n    def f(self):\n        self.a = Adam()\n\n\nclass T(B):\n    pass\n\n\nT().a", {ADAM}),
        ("class T:\n    def __init__(self, a):\n        self.a = a\n\n\nt = T(SGD())\nt.a", {SGD}),
        ("class T:\n    @property\n    def a(self):\n        return Adam()\n\n\nT().a", {ADAM}),
        ("class T:\n    a = Adam()\n\n\nT.a", {ADAM}),
        ("a = (b := Adam())\nb", {ADAM}),
        ("@tf.function\ndef make():\n    return Adam()\n\n\nmake()", {ADAM}),
        ("def make():\n    return Adam()\n\n\nmade = tf.function(make)\na = made()\na", {ADAM}),
        ("d = tf.data.Dataset.range(9)\nd = d.map(f).batch(2)\nd", {"tensorflow.data.Dataset"}),
        ("m = tf.keras.applications.ResNet50()\nm", {"tensorflow.keras.Model"}),
        ("a = unseen()\na", {"?"}),
        ("while x:\n    a\n    a = Adam()", {ADAM}),
    ],
)  # fmt: skip
def test_values_are_followed(text: str, expected: set[str]) -> None:
    lines = (HEAD + text).split("\n")
    if text.endswith(("(Adam())", "use(a=SGD())", "use()", "use(*rest)", "a = Adam()")):
        # The question is the expression inside the function, not the call below it.
        lines = [*lines]
        script = read_script("\n".join(lines))
        assert isinstance(script, Script)
        statement = next(
            s
            for s in script.statements
            if isinstance(s.node, ast.Expr) and isinstance(s.node.value, ast.Name)
        )
        assert isinstance(statement.node, ast.Expr)
        values = script.names.values(statement.node.value, statement.scope, statement)
        found = {value.cls if isinstance(value, Instance) else "?" for value in values}
        assert found == expected
    else:
        assert classes("\n".join(lines)) == expected


def test_user_classes_extend_the_hierarchy() -> None:
    script, values = last_value(
        "import tensorflow as tf\n\n\nclass A(tf.keras.Model):\n    pass\n\n\nclass B(A):\n    pass\n\n\nB()"
    )
    assert script.names.may_be(frozenset(values), *api.MODEL)
    assert not script.names.may_be(frozenset(values), *api.OPTIMIZERS)


BASE = "import tensorflow as tf\nclass Base:\n    def run(self):\n"
ADAM_ATTRIBUTE = "        self.opt = tf.optimizers.Adam()\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{BASE}        self.opt\nclass Heir(Base):\n    def __init__(self):\n{ADAM_ATTRIBUTE}",
            {ADAM},
        ),
        (
            f"{BASE}        self.opt\nclass Heir(Base):\n    opt = tf.optimizers.Adam()",
            {ADAM},
        ),
        (
            f"{BASE}        self.make()\nclass Heir(Base):\n"
            "    def make(self):\n        return tf.optimizers.Adam()",
            {ADAM},
        ),
        (
            f"{BASE}        self.opt\nclass Heir(Base): pass\nclass Last(Heir):\n"
            f"    def __init__(self):\n{ADAM_ATTRIBUTE}",
            {ADAM},
        ),
        (
            "import tensorflow as tf\nclass Base(tf.keras.Model):\n    def run(self):\n"
            "        self.count_params()\n"
            "class Heir(Base):\n    def count_params(self):\n        return tf.optimizers.Adam()",
            {ADAM, "?"},
        ),
        # `super()` is never an object of a subclass, and neither is one that the class itself made.
        (
            f"{BASE}        pass\nclass Heir(Base):\n    def go(self):\n        super().opt\n"
            "class Last(Base):\n    opt = tf.optimizers.Adam()",
            {"?"},
        ),
        (
            f"{BASE}        pass\nclass Heir(Base):\n    opt = tf.optimizers.Adam()\nBase().opt",
            {"?"},
        ),
    ],
)
def test_self_may_be_of_an_heir(text: str, expected: set[str]) -> None:
    assert classes(text) == expected


def test_a_question_that_was_given_up_is_answered_when_asked_again() -> None:
    text = "def f(a):\n    return a\n\n\nf(1)\nf(2)\n"

    class GivenUp(BaseException):
        pass

    def pauses(number: int) -> Iterator[None]:
        yield from itertools.repeat(None, number)
        raise GivenUp

    expected = last_value(text)[1]
    for number in range(20):
        script = read_script(text)
        assert isinstance(script, Script)
        statement = script.statements[-1]
        assert isinstance(statement.node, ast.Expr)
        with contextlib.suppress(GivenUp), script.names.memo.pausing(pauses(number).__next__):
            script.names.values(statement.node.value, statement.scope, statement)
        assert script.names.values(statement.node.value, statement.scope, statement) == expected
