"""What parameters get, by a table, and as Python itself binds random calls."""

from __future__ import annotations

import ast
import random

import pytest

from trainshift.python.syntax.call_binding import Source, bind


def bound(signature: str, call: str, skipped: int = 0) -> dict[str, str]:
    function = ast.parse(f"def f({signature}): pass").body[0]
    node = ast.parse(call, mode="eval").body
    assert isinstance(function, ast.FunctionDef)
    assert isinstance(node, ast.Call)
    return {
        name: " ".join([each.source.name.lower(), *map(ast.unparse, each.values)])
        for name, each in bind(node, function.args, skipped).items()
    }


CASES = {
    "by position and name": ("a, b", "f(1, b=2)", 0, {"a": "given 1", "b": "given 2"}),
    "a default": ("a, b=3", "f(1)", 0, {"a": "given 1", "b": "default 3"}),
    "missing": ("a, *, k", "f()", 0, {"a": "missing", "k": "missing"}),
    "a bound method": ("self, a", "o.f(1)", 1, {"a": "given 1"}),
    "a star": ("a, b, c=3", "f(1, *x)", 0, {"a": "given 1", "b": "unknown", "c": "unknown"}),
    "behind a star": ("a, b, c", "f(*x, c=1)", 0, {"a": "unknown", "b": "unknown", "c": "given 1"}),
    "two stars": ("a, b=2, *, k=3", "f(1, **x)", 0, {"a": "given 1", "b": "unknown", "k": "unknown"}),
    "the rest": (
        "a, *r, **o",
        "f(1, 2, 3, k=4)",
        0,
        {"a": "given 1", "r": "collected 2 3", "o": "collected 4"},
    ),
    "the rest of a star": ("a, *r", "f(1, 2, *x)", 0, {"a": "given 1", "r": "unknown"}),
    "by position alone": ("a, /, **o", "f(1, a=2)", 0, {"a": "given 1", "o": "collected 2"}),
    "by position alone, by name": ("a=1, /", "f(**x)", 0, {"a": "default 1"}),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters(case: str) -> None:
    signature, call, skipped, expected = CASES[case]
    assert bound(signature, call, skipped) == expected


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(200))
def test_parameters_get_what_python_gives_them(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        signature = _signature(rng)
        given = [str(number) for number in range(10, 10 + rng.randint(0, 4))]
        names = rng.sample("abcdkz", rng.randint(0, 3))
        given += [f"{name}={20 + at}" for at, name in enumerate(names)]
        star = rng.random() < 0.3
        if star:
            at = rng.randint(0, len(given) - len(names))
            given.insert(at, f"*{[30 + each for each in range(rng.randint(0, 2))]}")
        if rng.random() < 0.2:
            given.append(f"**{dict.fromkeys(rng.sample('abk', rng.randint(0, 2)), 40)}")
        call = f"f({', '.join(given)})"
        space: dict[str, object] = {}
        exec(f"def f({signature}): return dict(locals())", space)
        try:
            truth = eval(call, space)
        except TypeError:
            continue
        node = ast.parse(call, mode="eval").body
        function = ast.parse(f"def f({signature}): pass").body[0]
        assert isinstance(node, ast.Call)
        assert isinstance(function, ast.FunctionDef)
        for name, each in bind(node, function.args).items():
            values = tuple(ast.literal_eval(value) for value in each.values)
            got = truth[name]
            told = got if isinstance(got, tuple) else tuple(got.values()) if isinstance(got, dict) else (got,)
            assert each.source is not Source.MISSING
            assert each.source is Source.UNKNOWN or values == told, (signature, call, name)


def _signature(rng: random.Random) -> str:
    names = list("abcd")[: rng.randint(0, 4)]
    first = rng.randint(0, len(names))
    parts = [name + (f"={at}" if at >= first else "") for at, name in enumerate(names)]
    if parts and rng.random() < 0.3:
        parts.insert(rng.randint(1, len(parts)), "/")
    if rng.random() < 0.4:
        parts.append("*r")
        parts.append("k=5")
    if rng.random() < 0.4:
        parts.append("**o")
    return ", ".join(parts)
