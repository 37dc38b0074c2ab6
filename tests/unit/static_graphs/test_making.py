"""Making a function static: the decorator's place, its options, and the refusals."""

from __future__ import annotations

from textwrap import dedent

import pytest

from trainshift.core.program import Program
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.decorate import Made, make_static, makeable, named

NET = """\
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(4, 2)

    # the way
    def forward(self, x, scale=1.0):
        y = self.fc(x)
        if y.mean() > 0:
            y = y * scale
        return y
"""


def _read(text: str) -> Program:
    script = read_script(text)
    assert isinstance(script, Script)
    return Program(script)


def made(text: str, name: str) -> Made:
    """The result of making a function of a script static."""
    program = _read(dedent(text))
    function = named(program.script, name)
    assert function is not None
    return make_static(program, function, _read)


def test_a_layer_gets_the_full_graph_with_what_it_is_given() -> None:
    found = made(NET + "\nnet = Net()\nnet(paddle.rand([8, 4]))\nnet(paddle.rand([2, 4]))\n", "Net")
    spec = 'input_spec=[paddle.static.InputSpec([None, 4], "float32")]'
    assert (
        found.result.count(f"    # the way\n    @paddle.jit.to_static(full_graph=True, {spec})\n    def fo")
        == 1
    )
    assert found.title == "Make static: forward (None for the batch)"
    again = made(found.result, "Net.forward")
    assert (again.edits, again.reason) == ([], "")


def test_what_nobody_gives_has_no_spec() -> None:
    assert made(NET, "Net").decorator == "@paddle.jit.to_static(full_graph=True)"
    given = NET + "\nnet = Net()\nnet(paddle.rand([8, 4]))\nnet(load())\n"
    assert made(given, "Net").decorator == "@paddle.jit.to_static(full_graph=True)"


def test_a_size_that_python_needs_is_not_free() -> None:
    text = NET.replace("y = self.fc(x)", "y = self.fc(x) + max(x.shape[0], 3)")
    found = made(text + "\nnet = Net()\nnet(paddle.rand([8, 4]))\n", "Net")
    assert 'InputSpec([8, 4], "float32")' in found.decorator
    assert found.title == "Make static: forward"


def test_findings_keep_a_function_from_the_full_graph() -> None:
    text = """\
    import paddle

    def f(x):
        for row in x:
            for i in range(3):
                if row.sum() > i:
                    break
                row = row + 1
        return row

    f(paddle.rand([3, 2]))
    """
    found = made(text, "f")
    assert (found.decorator, found.is_full) == ("@paddle.jit.to_static", False)
    assert {each.code for each in found.in_the_way} >= {"PD06"}
    assert all(dedent(text)[each.offset :].lstrip() for each in found.in_the_way)


def test_paddle_is_imported_where_the_file_has_no_name_for_it() -> None:
    text = '''\
    """Models."""
    from __future__ import annotations
    from paddle.nn import Layer

    class Net(Layer):
        @staticmethod
        def shift(x):
            return x + 1
    '''
    found = made(text, "shift")
    head = '"""Models."""\nfrom __future__ import annotations\nfrom paddle.nn import Layer\nimport paddle\n'
    assert found.result.startswith(head)
    assert "    @staticmethod\n    @paddle.jit.to_static(full_graph=True)\n    def shift" in found.result


def test_line_ends_and_indentation_are_the_files_own() -> None:
    text = NET.replace("    ", "\t").replace("\n", "\r\n")
    found = made(text, "Net")
    assert "\r\n\t@paddle.jit.to_static(full_graph=True)\r\n\tdef forward" in found.result


def test_a_line_names_its_function_and_a_class_its_forward() -> None:
    script = _read(NET).script
    for line in (3, 6, 9, 11):
        function = makeable(script, line)
        assert function is not None
        assert function.name == ("__init__" if line == 6 else "forward")
    assert makeable(script, 1) is None


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("class A:\n    def f(self, x):\n        return x", "f", "not a layer"),
        ("class A(Unseen):\n    def f(self, x):\n        return x", "f", "cannot see"),
        (
            "class A(paddle.nn.Layer):\n    @classmethod\n    def f(cls, x):\n        return x",
            "f",
            "class method",
        ),
        ("class A(paddle.nn.Layer):\n    @property\n    def f(self):\n        return 1", "f", "property"),
        ("def f(x):\n    yield x", "f", "generator"),
        ("async def f(x):\n    return x", "f", "async"),
        ("def g():\n    def f(x):\n        return x\n    return f", "f", "nested"),
        ("@paddle.jit.not_to_static\ndef f(x):\n    return x", "f", "is excluded"),
        (
            "class A(paddle.nn.Layer):\n    def __init__(self):\n        self.forward = self.g\n"
            "    def g(self, x):\n        return x\n    def forward(self, x):\n        return x",
            "A",
            "run time",
        ),
    ],
)
def test_refused_with_a_reason(code: str, name: str, said: str) -> None:
    found = made(f"import paddle\n{code}\n", name)
    assert said in found.reason
    assert not found.edits
