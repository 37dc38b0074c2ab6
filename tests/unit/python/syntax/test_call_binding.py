"""Bind calls to parameters, and compare with Python's own binding."""

from __future__ import annotations

import ast
import inspect
import random

import pytest

from trainshift.python.syntax.call_binding import bind_call, defaults, parameters

CASES = [
    ("f(1, 2)", "a, b", {"a": "1", "b": "2"}, {}, (), (), False),
    ("f(1, b=2)", "a, b", {"a": "1", "b": "2"}, {}, (), (), False),
    ("f(1)", "a, b=3, *, c=4", {"a": "1"}, {"b": "3", "c": "4"}, (), (), False),
    ("f()", "a, *, c", {}, {}, ("a", "c"), (), False),
    ("f(1, 2, 3)", "a, /, b", {"a": "1", "b": "2"}, {}, (), ("3",), False),
    ("f(a=1)", "a, /", {}, {}, ("a",), ("1",), False),
    ("f(1, *rest)", "a, b, c=2", {"a": "1"}, {"c": "2"}, ("b",), (), True),
    ("f(1, **rest)", "a, b", {"a": "1"}, {}, ("b",), (), True),
    ("f(*rest, 2, c=3)", "a, b, c", {"c": "3"}, {}, ("a", "b"), (), True),
    ("f(1, a=2)", "a", {"a": "1"}, {}, (), ("2",), False),
]


@pytest.mark.parametrize(("call", "signature", "given", "defaulted", "missing", "surplus", "hidden"), CASES)
def test_arguments_go_to_their_parameters(
    call: str,
    signature: str,
    given: dict[str, str],
    defaulted: dict[str, str],
    missing: tuple[str, ...],
    surplus: tuple[str, ...],
    hidden: bool,
) -> None:
    found = bind_call(_call(call), _arguments(signature))
    assert {name: ast.unparse(each) for name, each in found.given.items()} == given
    assert {name: ast.unparse(each) for name, each in found.defaulted.items()} == defaulted
    assert found.missing == missing
    assert tuple(map(ast.unparse, found.surplus)) == surplus
    assert found.is_hidden == hidden
    assert found.fits == (not missing and not surplus and not hidden)


def test_the_object_of_a_method_is_left_out() -> None:
    found = bind_call(_call("f(1, c=2)"), _arguments("self, b, c"), first=1)
    assert {name: ast.unparse(each) for name, each in found.given.items()} == {"b": "1", "c": "2"}
    assert found.fits


def test_random_calls_are_bound_as_python_binds_them() -> None:
    draw = random.Random(7)
    fitting = 0
    for _ in range(1000):
        names = list("abcde")[: draw.randint(0, 5)]
        only, rest = draw.randint(0, len(names)), draw.randint(0, len(names))
        by_place, by_name = names[:rest], names[rest:]
        with_default = draw.randint(0, len(by_place))
        parts = [f"{each}=0" if place >= with_default else each for place, each in enumerate(by_place)]
        if 0 < only <= len(parts):
            parts.insert(only, "/")
        parts += ["*"] if by_name else []
        parts += [each if draw.random() < 0.5 else f"{each}=0" for each in by_name]
        signature = ", ".join(parts)
        words = [each for each in (*names, "g") if draw.random() < 0.3]
        numbers = [str(number) for number in range(1, draw.randint(1, 5))]
        text = ", ".join([*numbers, *(f"{each}={ord(each)}" for each in words)])
        found = bind_call(_call(f"f({text})"), _arguments(signature))
        function = eval(f"lambda {signature}: None")
        try:
            bound = eval(f"bind({text})", {"bind": inspect.signature(function).bind})
        except TypeError:
            assert not found.fits, (signature, text)
            continue
        fitting += 1
        assert found.fits, (signature, text)
        assert {name: ast.literal_eval(each) for name, each in found.given.items()} == bound.arguments
    assert fitting > 30


def test_parameters_have_their_defaults() -> None:
    arguments = _arguments("a, /, b=1, *args, c, d=2, **words")
    assert [each.arg for each in parameters(arguments)] == ["a", "b", "c", "d"]
    assert {name: ast.unparse(each) for name, each in defaults(arguments).items()} == {"b": "1", "d": "2"}


def _call(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def _arguments(signature: str) -> ast.arguments:
    node = ast.parse(f"lambda {signature}: 0", mode="eval").body
    assert isinstance(node, ast.Lambda)
    return node.args
