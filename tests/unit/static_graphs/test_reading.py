"""The reading of static functions: entries, modes, kinds, and the forms of control flow."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from trainshift.core.program import Program
from trainshift.engine.workspace import files_in_memory, read_linked
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.domain.abstract_values import AbstractValue, Dim
from trainshift.static_graphs.reading.function import Mode, StaticFunction, Truth
from trainshift.static_graphs.reading.reading import Reading


def reading_of(text: str, **others: str) -> Reading:
    """The reading of a script, with other files next to it."""
    files = files_in_memory({f"/w/{name}.py": dedent(body) for name, body in others.items()})
    script = read_linked(dedent(text), "/w/main.py", files) if others else read_script(dedent(text))
    assert isinstance(script, Script)
    return Program(script).fact(Reading)


def last(text: str, **others: str) -> tuple[StaticFunction, AbstractValue]:
    """The first static function of a script, and its last result."""
    function = reading_of(text, **others).functions[0]
    return function, list(function.returned.values())[-1]


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        ("@paddle.jit.to_static\ndef f(x):\n    return x", Mode.SOT),
        ("from paddle.jit import to_static as s\n@s\ndef f(x):\n    return x", Mode.SOT),
        ("from paddle import jit\n@jit.to_static(full_graph=True)\ndef f(x):\n    return x", Mode.FULL),
        ("def f(x):\n    return x\ng = paddle.jit.to_static(f, full_graph=True)", Mode.FULL),
        (
            "class N(paddle.nn.Layer):\n    def forward(self, x):\n        return x\n"
            "paddle.jit.save(N(), 'm')",
            Mode.FULL,
        ),
        (
            "class N(paddle.nn.Layer):\n    def forward(self, x):\n        return x\n"
            "n = paddle.jit.to_static(N())\npaddle.onnx.export(n, 'm')",
            Mode.FULL,
        ),
        (
            "class N(paddle.nn.Layer):\n    def forward(self, x):\n        return x\n"
            "n = N()\nn.forward = paddle.jit.to_static(n.forward)",
            Mode.SOT,
        ),
        ("class N(paddle.nn.Layer):\n    def forward(self, x):\n        return x", Mode.OPEN),
        ("class N:\n    @staticmethod\n    @paddle.jit.to_static\n    def f(x):\n        return x", Mode.SOT),
    ],
)
def test_entries_are_found_in_every_spelling(code: str, mode: Mode) -> None:
    assert [each.mode for each in reading_of(f"import paddle\n{code}\n").functions] == [mode]


@pytest.mark.parametrize(
    "code",
    [
        "@paddle.jit.to_static(property=True)\ndef f(x):\n    return x",
        "@paddle.jit.not_to_static\n@paddle.jit.to_static\ndef f(x):\n    return x",
        "def to_static(f):\n    return f\n@to_static\ndef f(x):\n    return x",
        "paddle = something()\n@paddle.jit.to_static\ndef f(x):\n    return x",
    ],
)
def test_what_is_no_entry(code: str) -> None:
    assert reading_of(f"import paddle\n{code}\n").functions == []


def test_what_an_entry_calls_is_static_through_files_in_its_mode() -> None:
    text = """
        import paddle
        from helpers import twice

        @paddle.jit.to_static(full_graph=True)
        def f(x):
            return twice(paddle.abs(x))
        """
    helpers = """
        import paddle
        def twice(t):
            if t.sum() > 0:
                return t * 2
            return t
        """
    reading = reading_of(text, helpers=helpers)
    inner = next(each for each in reading.everywhere if each.name == "twice")
    assert inner.mode is Mode.FULL
    assert inner.why.caller is reading.functions[0]
    assert inner.truth(inner.block[0].node) is Truth.GRAPH
    assert inner.returns.is_tensor


HEAD = """
import paddle
from paddle.static import InputSpec

@paddle.jit.to_static(full_graph=True, input_spec=[InputSpec([None, 4], "float32"), InputSpec([3], "int64")])
def f(x, y, k=2, flag=True):
"""


@pytest.mark.parametrize(
    ("code", "dtype", "shape"),
    [
        ("x + 1", "float32", (Dim.SPEC, 4)),
        ("x > 0", "bool", (Dim.SPEC, 4)),
        ("x.sum()", "float32", ()),
        ("x.mean(axis=1)", "float32", (Dim.SPEC,)),
        ("paddle.argmax(x, axis=1)", "int64", (Dim.SPEC,)),
        ("paddle.zeros([x.shape[0], 2])", "float32", (Dim.SPEC, 2)),
        ("x.reshape([y[0], -1])", "float32", (Dim.DATA, Dim.DATA)),
        ("x[x > 0]", "float32", (Dim.CHOSEN,)),
        ("x[0]", "float32", (4,)),
        ("x[:, 0]", "float32", (Dim.SPEC,)),
        ("paddle.nonzero(y)", "int64", (Dim.CHOSEN, 1)),
        ("x.astype('int64')", "int64", (Dim.SPEC, 4)),
        ("paddle.to_tensor([[1, 2], [3, 4]])", "int64", (2, 2)),
        ("paddle.concat([y, y])", "int64", (6,)),
        ("not x.any()", "bool", ()),
        ("int(y[0])", "int64", ()),
        ("x.shape[0]", "int32", ()),
        ("len(x)", "int32", ()),
    ],
)
def test_tensors_have_the_dtype_and_shape_that_is_seen(code: str, dtype: str, shape: object) -> None:
    _, value = last(f"{HEAD}    return {code}\n")
    assert value.is_tensor
    assert value.tensor is not None
    assert (value.tensor.dtype, value.tensor.shape) == (dtype, shape)


@pytest.mark.parametrize(
    "code", ["x.shape[1]", "x is None", "x.ndim", "x.dtype", "k", "flag", "len([x, y])", "isinstance(x, int)"]
)
def test_python_stays_python(code: str) -> None:
    assert last(f"{HEAD}    return {code}\n")[1].is_python


def test_a_name_is_a_tensor_where_only_a_tensor_can_be_used_so() -> None:
    function, _ = last(
        """
        import paddle
        @paddle.jit.to_static
        def f(x, n):
            y = x.astype("float32")
            if x:
                y = y + 1
            if n:
                y = y + 2
            return y
        """
    )
    tests = [each.node for each in function.statements if isinstance(each.node, ast.If)]
    assert [function.truth(each) for each in tests] == [Truth.GRAPH, Truth.EITHER]


@pytest.mark.parametrize(
    ("code", "truth"),
    [
        pytest.param("for t, k in [[x, 1], [x * 2, 2]]: t.sum()", Truth.GRAPH, id="rows unpacked"),
        pytest.param("rows = [[x, 1]]\nfor t, k in rows: t.sum()", Truth.GRAPH, id="named rows unpacked"),
        pytest.param("c = [x, 1]\nd = c[0]\nd.sum()", Truth.GRAPH, id="an element with a name"),
        pytest.param("a, *rest = (1, x + 1, 2)\nrest[0].sum()", Truth.GRAPH, id="a starred target"),
        pytest.param("p = {'w': x}\np['w'].sum()", Truth.GRAPH, id="a value of a dict"),
        pytest.param("t = (2, x)\na, b = t\nb.sum()", Truth.GRAPH, id="a tuple unpacked"),
        pytest.param("c = [x, 1]\nc[1].sum()", Truth.EITHER, id="another element"),
        pytest.param("c = [x, 1]\nc[0] = n\nc[0].sum()", Truth.EITHER, id="an element replaced"),
        pytest.param("c = [x, 1]\nc.reverse()\nc[0].sum()", Truth.EITHER, id="a list changed"),
        pytest.param("c = [x, 1]\nfill(c)\nc[0].sum()", Truth.EITHER, id="a list handed on"),
        pytest.param("c = [[x], 1]\nc[0][0] = n\nc[0][0].sum()", Truth.EITHER, id="a row changed"),
        pytest.param("c = [x, n] if n else [n, x]\nc[0].sum()", Truth.EITHER, id="one of two lists"),
        pytest.param("c = [x, n]\nc[n].sum()", Truth.EITHER, id="an unknown index"),
    ],
)
def test_a_tensor_is_known_by_the_use_of_a_containers_element(code: str, truth: Truth) -> None:
    reading = reading_of(
        "import paddle\ndef fill(v):\n    v[0] = paddle.zeros([1])\n@paddle.jit.to_static\n"
        f"def f(x, n):\n    if x: pass\n{indent(code, '    ')}\n    return n\n"
    )
    function = next(each for each in reading.functions if each.name == "f")
    test = next(each.node for each in function.statements if isinstance(each.node, ast.If))
    assert function.truth(test) is truth


def test_names_that_are_read_later_are_told_from_those_that_are_not() -> None:
    function, _ = last(
        """
        import paddle
        @paddle.jit.to_static
        def f(x):
            while x.sum() > 0:
                a = x + 1
                x = a * 2
                b = a
            return x
        """
    )
    loop = function.block[0]
    assert function.live_after(loop) == {"x"}
    assert function.live_after(loop.branches["body"][0]) == {"a", "paddle"} - {"paddle"}
