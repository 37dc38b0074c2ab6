"""Every row of NumPy and math in the table of derivatives, against central differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from trainshift.derivatives.tables.helpers import closed, text_of
from trainshift.derivatives.tables.helpers_numpy import HELPERS
from trainshift.derivatives.tables.rows import rows
from trainshift.derivatives.tables.table import ARRAY_POWER, OPERATORS, Row
from trainshift.derivatives.tables.table_einsum import einsum

ROWS = {name: row for name, row in rows().items() if not name.startswith("tensorflow.")}
SHAPES = [(), (3,), (2, 3), (2, 1), (1, 3), (1,), (4, 2, 3)]
STEP = 1e-6
# The domain of a function, if it is not between 0.2 and 0.9.
DOMAINS = {
    "acosh": (1.2, 3.0),
    "log10": (0.2, 5.0),
    "sin": (-3.0, 3.0),
    "abs": (-2.0, 2.0),
    "sinh": (-2.0, 2.0),
}
DOMAINS |= {"maximum": (-2.0, 2.0), "minimum": (-2.0, 2.0), "tan": (-1.0, 1.0), "exp": (-2.0, 2.0)}


def namespace() -> dict[str, Any]:
    """The names available to templates: the modules and the helpers."""
    found: dict[str, Any] = {"np": np, "math": math}
    for name in closed([*HELPERS, "_unbroadcast", "_like", "_zeros", "_cells", "_add", "_add_at"]):
        exec(text_of(name, arrays=True), found)
    return found


NAMES = namespace()


def evaluated(template: str, values: Mapping[str, Any]) -> Any:
    return eval(template, {**NAMES, **values})


def flat(value: Any) -> np.ndarray[Any, Any]:
    """All numbers of a value in one array."""
    if isinstance(value, list | tuple):
        return np.concatenate([flat(each) for each in value]) if value else np.zeros(0)
    return np.ravel(np.asarray(value, dtype=float))


def moved(value: Any, along: Any, step: float) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(moved(each, other, step) for each, other in zip(value, along, strict=True))
    return value + step * along


def like(value: Any, generator: np.random.Generator) -> Any:
    """Random numbers in the structure of a value."""
    if isinstance(value, list | tuple):
        return type(value)(like(each, generator) for each in value)
    return generator.normal(size=np.shape(value)) if np.shape(value) else float(generator.normal())


def check(row: Row, call: str, given: Mapping[str, Any], seed: int = 0, only: str = "") -> None:
    """Check both templates of each parameter of a row, where `call` computes its value from arguments."""
    generator = np.random.default_rng(seed)
    values = {name: eval(text) for name, text in row.defaults.items()} | dict(given)
    y = evaluated(call, values)
    for param in row.reverse:
        if (only and param != only) or values[param] is None:
            continue
        along = like(values[param], generator)
        ahead, behind = (
            evaluated(call, {**values, param: moved(values[param], along, step)}) for step in (STEP, -STEP)
        )
        slope = (flat(ahead) - flat(behind)) / (2 * STEP)
        bar = like(y, generator)
        made = evaluated(row.reverse[param], {**values, "y": y, "d": bar})
        if row.elementwise:
            made = NAMES["_unbroadcast"](made, values[param])
        if isinstance(values[param], list | tuple):
            assert type(made) is type(values[param])
        if not row.elementwise or np.ndim(y):
            assert [np.shape(each) for each in pieces(made)] == [
                np.shape(each) for each in pieces(values[param])
            ]
        assert flat(made) @ flat(along) == pytest.approx(flat(bar) @ slope, rel=1e-5, abs=1e-6), (
            row.name,
            param,
        )
        if isinstance(y, float):
            made = evaluated(row.reverse[param], {**values, "y": y, "d": 1.0})
            assert flat(made) @ flat(along) == pytest.approx(slope[0], rel=1e-5, abs=1e-6)
        tangent = evaluated(row.forward[param], {**values, "y": y, "d": along})
        tangent = tangent + 0.0 * y if row.elementwise else tangent
        assert flat(tangent) == pytest.approx(slope, rel=1e-5, abs=1e-6), (row.name, param)


def pieces(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def array(*shape: int, seed: int = 1, low: float = -2.0, high: float = 2.0) -> Any:
    found = np.random.default_rng([seed, *shape]).uniform(low, high, size=shape)
    return found if shape else float(found)


OPERATIONS = {"Add": "a + b", "Sub": "a - b", "Mult": "a * b", "Div": "a / b", "Mod": "a % b", "USub": "-a"}
OPERATIONS |= {"UAdd": "+a", "Pow": "a ** b"}
OPERATIONS |= {"numpy.clip.low": "np.clip(x, low, None)", "numpy.clip.high": "np.clip(x, None, high)"}
BROADCAST = dict([*OPERATORS.items(), ("Pow", ARRAY_POWER)]) | {
    name: row for name, row in ROWS.items() if row.elementwise and name.startswith("numpy.")
}


@pytest.mark.parametrize("name", BROADCAST)
def test_rows_that_work_element_by_element(name: str) -> None:
    row = BROADCAST[name]
    operands = [each for each in row.params if each in row.reverse]
    call = OPERATIONS.get(name) or f"np.{name.partition('.')[2]}({', '.join(row.params)})"
    short = name.rpartition(".")[2].replace("arc", "a")
    low, high = DOMAINS.get(short, (0.2, 0.9))
    for i, shapes in enumerate(product(SHAPES[: None if len(operands) < 3 else 5], repeat=len(operands))):
        try:
            whole = np.broadcast_shapes(*shapes)
        except ValueError:
            continue
        given = {
            each: array(*shape, seed=10 * i + k, low=low, high=high)
            for k, (each, shape) in enumerate(zip(operands, shapes, strict=True))
        }
        if name == "numpy.where":
            given["test"] = array(*whole, seed=i) > 0
        if name == "numpy.clip":
            given |= {"low": given["low"] * 0.5, "high": given["high"] * 0.5 + 0.5}
        if short in ("Mod", "mod", "remainder"):
            given["a"] = given["a"] * 7.3
        check(row, call, given, seed=i)


@pytest.mark.parametrize(
    "name", [name for name in ROWS if name.startswith("math.") and ROWS[name].elementwise]
)
def test_rows_of_math(name: str) -> None:
    row = ROWS[name]
    short = name.partition(".")[2]
    call = "math.log(x, b)" if short == "log2arguments" else f"{name}({', '.join(row.params)})"
    low, high = DOMAINS.get(short, (0.2, 0.9))
    for seed in range(5):
        given = {each: array(seed=10 * seed + k, low=low, high=high) for k, each in enumerate(row.params)}
        if short == "fmod":
            given["a"] *= 7.3
        check(row, call, given, seed)


A, B, C, V, W = array(2, 3), array(3, 4), array(4, 2, 3), array(3), array(3, seed=2)
SQUARE = array(3, 3) + 3 * np.eye(3)
# NumPy 2 has another name for it.
TRAPEZOIDS = [name for name in ("trapz", "trapezoid") if hasattr(np, name)]
POSITIVE = SQUARE @ SQUARE.T
TIES = np.array([[1.0, 2.0, 2.0], [0.0, 2.0, -1.0]])
ZEROS = np.array([[1.5, 0.0, 2.0], [0.0, 0.0, -1.0]])
AXES: list[dict[str, Any]] = [
    {"axis": 0},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": None, "keepdims": True},
]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (name, f"np.{name}(x)", {"x": x})
        for name in ("sum", "mean", "var", "std", "max", "min", "amax", "amin", "cumsum", "prod")
        for x in (A, C, V)
    ),
    *(
        (f"{name}", f"np.{name}(x, axis=axis, keepdims=keepdims)", {"x": x, **axis})
        for name in ("sum", "mean", "max", "min", "amax", "amin", "prod")
        for x in (A, C)
        for axis in AXES
    ),
    *(
        (f"{name}", f"np.{name}(x, axis=axis, ddof=ddof, keepdims=keepdims)", {"x": x, "ddof": ddof, **axis})
        for name in ("var", "std")
        for x in (A, C)
        for axis in AXES
        for ddof in (0, 1)
    ),
    *(
        (f"{name}", f"np.{name}(x, axis=(0, 2))", {"x": C, "axis": (0, 2)})
        for name in ("sum", "mean", "max", "var")
    ),
    ("prod", "np.prod(x)", {"x": ZEROS}),
    ("prod", "np.prod(x, axis=1)", {"x": ZEROS, "axis": 1}),
    *(("cumsum", "np.cumsum(x, axis=axis)", {"x": C, "axis": axis}) for axis in (0, 1, -1)),
    ("trace", "np.trace(x)", {"x": A}),
    *(
        ("diagonal", "np.diagonal(x, k)", {"x": x, "k": k})
        for x in (A, SQUARE, np.stack([SQUARE, 2 * SQUARE]))
        for k in (0, 1)
    ),
    ("trace", "np.trace(x)", {"x": SQUARE}),
    *(
        (name, call, {"x": x})
        for name, call in (
            ("ravel", "np.ravel(x)"),
            ("flatten", "x.flatten()"),
            ("atleast_1d", "np.atleast_1d(x)"),
            ("atleast_2d", "np.atleast_2d(x)"),
            ("transpose", "np.transpose(x)"),
            ("copy", "np.copy(x)"),
            ("flip", "np.flip(x)"),
            ("fliplr", "np.fliplr(x)"),
            ("flipud", "np.flipud(x)"),
            ("triu", "np.triu(x)"),
            ("tril", "np.tril(x)"),
        )
        for x in (A, C, V)
        if not call.startswith(("np.tri", "np.fliplr")) or x is A
    ),
    *(("reshape", "np.reshape(x, shape)", {"x": x, "shape": (-1,)}) for x in (A, C, V)),
    *(
        (f"{name}", call, {"x": array(2, 1, 3), "axis": 1})
        for name, call in (
            ("squeeze", "np.squeeze(x, axis=axis)"),
            ("expand_dims", "np.expand_dims(x, axis)"),
        )
    ),
    ("reshape", "x.reshape(shape)", {"x": C, "shape": (6, -1, 2)}),
    *((name, call, {"x": V}) for name, call in (("diff", "np.diff(x)"), ("sort", "np.sort(x)"))),
    *((name, f"np.{name}(x, k)", {"x": A, "k": k}) for name in ("triu", "tril") for k in (1, -1)),
    *(
        (name, f"np.{name}(x, axis=axis)", {"x": C, "axis": axis})
        for name in ("diff", "sort")
        for axis in (0, 1, -1)
    ),
    ("diff", "np.diff(x)", {"x": A, "n": 1}),
    ("average", "np.average(x)", {"x": A}),
    ("average", "np.average(x, weights=weights)", {"x": V, "weights": np.abs(W)}),
    *(
        (name, f"np.{name}(f, a, dx=dx)", {"f": V, **more})
        for name in TRAPEZOIDS
        for more in ({"a": W, "dx": None}, {"a": None, "dx": 0.3})
    ),
    ("append", "np.append(arr, values)", {"arr": V, "values": 1.5}),
    ("append", "np.append(arr, values)", {"arr": A, "values": W}),
    ("column_stack", "np.column_stack(x)", {"x": [V, W, array(3, 2)]}),
    *(("cross", "np.cross(a, b)", {"a": V, "b": b}) for b in (W, A)),
    *(
        ("convolve", "np.convolve(a, v, mode)", {"a": a, "v": v, "mode": mode})
        for a, v in ((array(5), V), (V, array(5)), (array(4), array(2)))
        for mode in ("full", "same", "valid")
    ),
    *(("polyder", "np.polyder(x)", {"x": x}) for x in ([2.0, -1.0, 0.5], V, array(1))),
    *(("polyval", "np.polyval(p, x)", {"p": p, "x": x}) for p in ([2.0, -1.0, 0.5], V) for x in (1.5, A)),
    ("take", "np.take(x, index)", {"x": V, "index": np.array([2, 0, 2])}),
    ("item", "x.item()", {"x": array(1)}),
    ("transpose", "np.transpose(x, axes)", {"x": C, "axes": (1, 2, 0)}),
    ("swapaxes", "np.swapaxes(x, i, j)", {"x": C, "i": 0, "j": 2}),
    ("moveaxis", "np.moveaxis(x, i, j)", {"x": C, "i": 0, "j": 2}),
    ("flip", "np.flip(x, axis)", {"x": C, "axis": 1}),
    ("roll", "np.roll(x, shift)", {"x": V, "shift": 2}),
    ("roll", "np.roll(x, shift, axis)", {"x": C, "shift": 1, "axis": 1}),
    ("broadcast_to", "np.broadcast_to(x, shape)", {"x": V, "shape": (2, 3)}),
    ("broadcast_to", "np.broadcast_to(x, shape)", {"x": array(2, 1), "shape": (4, 2, 3)}),
    *(
        ("tile", "np.tile(x, reps)", {"x": x, "reps": reps})
        for x in (V, A)
        for reps in (2, (2, 3), (2, 1, 3), (1,))
    ),
    *(
        ("repeat", "np.repeat(x, repeats, axis=axis)", {"x": A, "repeats": n, "axis": axis})
        for n, axis in ((2, None), (3, 0), (2, -1), (np.array([2, 0, 1]), 1))
    ),
    *(("pad", "np.pad(x, width)", {"x": A, "width": width}) for width in (1, (2, 1), ((1, 0), (0, 2)))),
    *(("diag", "np.diag(x, k)", {"x": x, "k": k}) for x in (V, SQUARE, B) for k in (0, 1, -1)),
    ("pad", "np.pad(x, width, constant_values=2.0)", {"x": A, "width": 1}),
    *(
        ("pad.repeating", "np.pad(x, width, mode)", {"x": A, "width": width, "mode": mode})
        for width, mode in ((1, "edge"), ((2, 1), "reflect"), (((1, 0), (0, 3)), "symmetric"), (2, "wrap"))
    ),
    ("arange.whole", "np.arange(test)", {"test": 4}),
    ("arange", "np.arange(x, test)", {"x": 0.5, "test": 3.2}),
    ("arange.step", "np.arange(x, test, step)", {"x": 0.5, "test": 3.2, "step": 0.7}),
    ("linspace", "np.linspace(a, b)", {"a": 0.5, "b": 2.0}),
    ("linspace", "np.linspace(a, b, num)", {"a": V, "b": 2.0, "num": 4}),
    ("linspace", "np.linspace(a, b, num)", {"a": 0.5, "b": C, "num": 3}),
    ("full", "np.full(shape, x)", {"shape": (2, 3), "x": 1.5}),
    ("full_like", "np.full_like(like, x)", {"like": A, "x": 1.5}),
    *(
        (name, f"np.{name}(x)", {"x": x})
        for name in ("array", "asarray", "ascontiguousarray")
        for x in ([1.0, 2.5], [[1.0, 2.0], [3.0, 4.0]], A, [V, W])
    ),
    ("float64", "np.float64(x)", {"x": 1.5}),
    ("astype", "x.astype(dtype)", {"x": A, "dtype": float}),
    *(
        ("concatenate", "np.concatenate(x, axis=axis)", {"x": [A, array(2, 5)], "axis": axis})
        for axis in (1, -1)
    ),
    ("concatenate", "np.concatenate(x)", {"x": (V, array(2), W)}),
    ("vstack", "np.vstack(x)", {"x": [A, V, array(4, 3)]}),
    ("vstack", "np.vstack(x)", {"x": [V, W]}),
    ("hstack", "np.hstack(x)", {"x": [A, array(2, 5)]}),
    ("hstack", "np.hstack(x)", {"x": [V, 1.5, W]}),
    ("stack", "np.stack(x)", {"x": [A, array(2, 3, seed=4)]}),
    ("stack", "np.stack(x)", {"x": (1.5, 2.5)}),
    ("vstack", "np.vstack(x)", {"x": A}),
    *(
        ("stack", "np.stack(x, axis=axis)", {"x": [A, array(2, 3, seed=4)], "axis": axis})
        for axis in (0, 1, -1)
    ),
    ("split", "np.split(x, parts)", {"x": array(6), "parts": 3}),
    ("array_split", "np.array_split(x, parts)", {"x": array(7), "parts": 3}),
    ("split", "np.split(x, parts, axis=axis)", {"x": C, "parts": [1], "axis": 1}),
    *(
        ("matmul", "a @ b", {"a": a, "b": b})
        for a, b in (
            (A, B),
            (V, B),
            (A, V),
            (V, W),
            (C, B),
            (V, array(5, 3, 2)),
            (C, V),
            (A, array(5, 3, 2)),
            (array(5, 1, 2, 3), array(4, 3, 2)),
        )
    ),
    *(
        ("dot", "np.dot(a, b)", {"a": a, "b": b})
        for a, b in (
            (A, B),
            (V, B),
            (A, V),
            (V, W),
            (C, B),
            (1.5, A),
            (A, 1.5),
            (1.5, 2.0),
            (A, array(5, 3, 2)),
            (V, array(5, 3, 2)),
        )
    ),
    *(("inner", "np.inner(a, b)", {"a": a, "b": b}) for a, b in ((V, W), (A, V), (A, array(4, 3)), (C, A))),
    ("vdot", "np.vdot(a, b)", {"a": A, "b": array(2, 3, seed=4)}),
    *(("outer", "np.outer(a, b)", {"a": a, "b": b}) for a, b in ((V, array(4)), (A, V))),
    *(
        ("tensordot", "np.tensordot(a, b, axes)", {"a": a, "b": b, "axes": axes})
        for a, b, axes in (
            (A, B, 1),
            (C, array(2, 3, 5), 2),
            (A, B, 0),
            (C, array(3, 5, 4), ([0, 2], [2, 0])),
            (C, array(5, 3), (2, 1)),
            (C, array(3, 5, 2), ([-1, 1], [0, 2])),
        )
    ),
    ("linalg.inv", "np.linalg.inv(x)", {"x": SQUARE}),
    ("linalg.inv", "np.linalg.inv(x)", {"x": np.stack([SQUARE, POSITIVE])}),
    *(("linalg.solve", "np.linalg.solve(a, b)", {"a": SQUARE, "b": b}) for b in (V, B)),
    ("linalg.det", "np.linalg.det(x)", {"x": SQUARE}),
    *(("linalg.norm", "np.linalg.norm(x)", {"x": x}) for x in (V, A)),
    *(
        ("linalg.norm", "np.linalg.norm(x, axis=axis, keepdims=keepdims)", {"x": A, **axis})
        for axis in AXES[:3]
    ),
    ("linalg.cholesky", "np.linalg.cholesky(x)", {"x": POSITIVE}),
]


SUMS: list[tuple[str, list[Any]]] = [
    ("ij->ji", [A]),
    ("ij->", [A]),
    ("ij,jk->ik", [A, B]),
    ("ij,jk", [A, B]),
    ("i,ij,j->", [array(2), A, V]),
    ("ijk, ki -> j", [C, array(3, 4)]),
    ("i,i->i", [V, W]),
    ("ij,k->i", [A, V]),
    ("a,b,c,d->acdb", [V, array(2), W, array(2, seed=3)]),
]


@pytest.mark.parametrize(("subscripts", "operands"), SUMS, ids=[each for each, _ in SUMS])
def test_einsum_has_a_row_for_its_subscripts(subscripts: str, operands: list[Any]) -> None:
    row = einsum(subscripts)
    assert row
    given = dict(zip(row.params[1:], operands, strict=True))
    check(row, f"np.einsum({subscripts!r}, {', '.join(given)})", given)
    assert einsum("ii->i") is einsum("...i->i") is None


def row_of(name: str, given: Mapping[str, Any]) -> Row:
    whole = ROWS.get(f"numpy.{name}.whole")
    return whole if whole and list(given) == ["x"] else ROWS[f"numpy.{name}"]


@pytest.mark.parametrize(
    ("name", "call", "given"), CALLS, ids=[f"{i}-{each[0]}" for i, each in enumerate(CALLS)]
)
def test_rows_of_arrays(name: str, call: str, given: dict[str, Any]) -> None:
    row = row_of(name, given)
    for seed in range(5):
        check(row, call, given, seed)


def test_every_row_is_tried() -> None:
    arrays = {name for name, row in ROWS.items() if name.startswith("numpy.") and not row.elementwise}
    arrays -= {f"numpy.{name}" for name in ("trapz", "trapezoid") if name not in TRAPEZOIDS}
    assert arrays == {row_of(name, given).name for name, _, given in CALLS}


def test_ties_are_shared_and_first_arguments_win() -> None:
    bar = evaluated(ROWS["numpy.max.whole"].reverse["x"], {"x": TIES, "y": 2.0, "d": 3.0})
    assert bar.tolist() == [[0.0, 1.0, 1.0], [0.0, 1.0, 0.0]]
    for name in ("maximum", "minimum"):
        row = ROWS[f"numpy.{name}"]
        found = [evaluated(row.reverse[each], {"a": V, "b": V, "y": V, "d": V}) for each in "ab"]
        assert found[0].tolist() == V.tolist()
        assert not found[1].any()
    clip = evaluated(
        ROWS["numpy.clip"].reverse["x"], {"x": np.array([0.0, 1.0, 2.0]), "low": 0.0, "high": 1.0, "d": 1.0}
    )
    assert clip.tolist() == [1.0, 1.0, 0.0]


def test_no_adjoint_is_a_view_of_another() -> None:
    """A helper returns new arrays: adding to one must not change another."""
    bar = np.ones((2, 3))
    for name, values in (
        ("concatenate", {"x": [array(1, 3), array(1, 3)], "axis": 0}),
        ("pad", {"x": array(1, 3), "width": ((0, 1), (0, 0))}),
        ("diag", {"x": array(2), "k": 0}),
    ):
        template = ROWS[f"numpy.{name}"].reverse["x"]
        made = evaluated(template, {**values, "d": np.ones((2, 2)) if name == "diag" else bar, "y": bar})
        for each in pieces(made):
            assert not np.shares_memory(each, bar)
            each += 1.0
