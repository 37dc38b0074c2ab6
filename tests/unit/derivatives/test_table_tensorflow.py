"""Every row of TensorFlow in the table of derivatives, against GradientTape and central differences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from trainshift.derivatives.tables.helpers import text_of
from trainshift.derivatives.tables.helpers_tensorflow import HELPERS
from trainshift.derivatives.tables.rows import rows
from trainshift.derivatives.tables.table import TENSOR_POWER, Row
from trainshift.derivatives.tables.table_einsum import einsum

pytestmark = pytest.mark.proof
ROWS = {name: row for name, row in rows().items() if name.startswith("tensorflow.")}
SHAPES = [(), (3,), (2, 3), (2, 1)]
STEP = 1e-6
DOMAINS = {
    "acosh": (1.2, 3.0),
    "sin": (-3.0, 3.0),
    "abs": (-2.0, 2.0),
    **dict.fromkeys(("relu", "leaky_relu", "elu", "silu", "swish"), (-2.0, 2.0)),
    "relu6": (-2.0, 8.0),
    "exp": (-2.0, 2.0),
}
DOMAINS |= {"maximum": (-2.0, 2.0), "minimum": (-2.0, 2.0), "sigmoid": (-3.0, 3.0), "softplus": (-3.0, 3.0)}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names available to templates: the module and the helpers."""
    import tensorflow as tf

    found: dict[str, Any] = {"tf": tf, "np": np}
    for name in (*HELPERS, "_add"):
        exec(text_of(name, arrays=True, tensors=True), found)
    return found


def flat(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return np.concatenate([flat(each) for each in value])
    if hasattr(value, "indices"):  # a gradient that is sparse
        import tensorflow as tf

        value = tf.convert_to_tensor(value)
    return np.ravel(np.asarray(value, dtype=float))


def moved(value: Any, along: Any, step: float) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(moved(each, other, step) for each, other in zip(value, along, strict=True))
    return value + step * along


def like(value: Any, generator: np.random.Generator, tf: Any) -> Any:
    if isinstance(value, list | tuple):
        return [like(each, generator, tf) for each in value]
    return tf.constant(generator.normal(size=value.shape), dtype=tf.float64)


def check(
    row: Row, call: str, given: Mapping[str, Any], names: dict[str, Any], seed: int = 0, graph: bool = True
) -> None:
    """Check both templates of each parameter, eagerly and, if requested, in a graph."""
    tf, generator = names["tf"], np.random.default_rng(seed)
    values = {name: eval(text) for name, text in row.defaults.items()}
    for name, value in given.items():
        is_array = isinstance(value, np.ndarray) and value.dtype == float
        values[name] = tf.constant(value) if is_array else value
        if isinstance(value, list) and isinstance(value[0], np.ndarray):
            values[name] = [tf.constant(each) for each in value]

    def evaluated(template: str, more: Mapping[str, Any]) -> Any:
        return eval(template, {**names, **values, **more})

    y = evaluated(call, {})
    for param in row.reverse:
        along, bar = like(values[param], generator, tf), like(y, generator, tf)
        with tf.GradientTape() as tape:
            tape.watch(values[param])
            result = evaluated(call, {})
        wanted = tape.gradient(result, values[param], output_gradients=bar)
        ends = [evaluated(call, {param: moved(values[param], along, step)}) for step in (STEP, -STEP)]
        slope = (flat(ends[0]) - flat(ends[1])) / (2 * STEP)
        templates = ((row.reverse[param], {"y": y, "d": bar}), (row.forward[param], {"y": y, "d": along}))
        for way in (lambda made: made, tf.function)[: 1 + graph]:
            made, tangent = (way(partial(evaluated, *each))() for each in templates)
            if row.elementwise:
                made, tangent = names["_unbroadcast"](made, values[param]), tangent + 0.0 * y
            assert flat(made) @ flat(along) == pytest.approx(flat(bar) @ slope, rel=1e-5, abs=1e-6), param
            if wanted is not None:
                assert flat(made) == pytest.approx(flat(wanted), rel=1e-9, abs=1e-9), param
            assert flat(tangent) == pytest.approx(slope, rel=1e-5, abs=1e-6), param
        if not isinstance(y, list) and not y.shape:  # the cotangent that FUNCTION_grad begins with
            made = evaluated(row.reverse[param], {"y": y, "d": 1.0})
            made = names["_unbroadcast"](made, values[param]) if row.elementwise else made
            assert flat(made) @ flat(along) == pytest.approx(slope[0], rel=1e-5, abs=1e-6)


def array(*shape: int, seed: int = 1, low: float = -2.0, high: float = 2.0) -> Any:
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(low, high, size=shape))


ELEMENTWISE = {name: row for name, row in ROWS.items() if row.elementwise} | {
    "tensorflow.power": TENSOR_POWER
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_rows_that_work_element_by_element(name: str, names: dict[str, Any]) -> None:
    row = ELEMENTWISE[name]
    operands = [each for each in row.params if each in row.reverse]
    short = name.rpartition(".")[2]
    given_as = ", ".join(f"{each}={each}" if "logits" in name else each for each in row.params)
    call = "a ** b" if row is TENSOR_POWER else f"tf.{name.partition('.')[2]}({given_as})"
    low, high = DOMAINS.get(short, (0.2, 0.9))
    shapes_of = SHAPES if len(operands) < 3 else SHAPES[:3]
    for i, shapes in enumerate(product(shapes_of, repeat=len(operands))):
        if "logits" in name and len(set(shapes)) > 1:
            continue
        if short == "clip_by_value" and (shapes[1] or shapes[2]):
            continue
        whole = np.broadcast_shapes(*shapes)
        given = {
            each: array(*shape, seed=10 * i + k, low=low, high=high)
            for k, (each, shape) in enumerate(zip(operands, shapes, strict=True))
        }
        if short == "where":
            given["test"] = array(*whole, seed=i) > 0
        if short == "clip_by_value":
            given |= {"low": np.asarray(0.4), "high": np.asarray(0.7)}
        if short == "floormod":
            given["a"] = np.asarray(given["a"] * 7.3)
        check(row, call, given, names, seed=i, graph=shapes[0] == (2, 3) == shapes[-1])


A, B, C, V = array(2, 3), array(3, 4), array(4, 2, 3), array(3)
SQUARE = array(3, 3) + 3 * np.eye(3)
LABELS = np.abs(array(2, 3)) / np.sum(np.abs(array(2, 3)), axis=1, keepdims=True)
AXES: list[dict[str, Any]] = [
    {"axis": 0},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": None, "keepdims": True},
]
SPREAD = [f"math.reduce_{name}" for name in ("variance", "std")]
REDUCED = [
    f"{prefix}reduce_{name}"
    for prefix in ("", "math.")
    for name in ("sum", "mean", "max", "min", "prod", "logsumexp")
]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (name, f"tf.{name}(x, axis=axis, keepdims=keepdims)", {"x": C, "keepdims": False} | axes)
        for name in SPREAD
        for axes in AXES
    ),
    ("range.whole", "tf.range(test)", {"test": 4}),
    *((name, f"tf.{name}(x)", {"x": x}) for name in REDUCED for x in (A, V)),
    *(
        (f"{name}", f"tf.{name}(x, axis=axis, keepdims=keepdims)", {"x": C, **axis})
        for name in REDUCED
        for axis in AXES
    ),
    *((name, f"tf.{name}(x, axis=axis)", {"x": V, "axis": 0}) for name in REDUCED[:6]),
    ("reverse", "tf.reverse(x, axis)", {"x": C, "axis": [0, -1]}),
    ("reduce_prod", "tf.reduce_prod(x)", {"x": np.array([[1.5, 0.0, 2.0], [0.0, 0.5, -1.0]])}),
    *(
        (name, f"tf.{name}(x, axis=axis)", {"x": C, "axis": 1})
        for name in (
            "cumsum",
            "math.cumsum",
            "nn.softmax",
            "math.softmax",
            "nn.log_softmax",
            "math.log_softmax",
        )
    ),
    *(
        (
            name,
            f"tf.{name}(a, b, transpose_a=transpose_a, transpose_b=transpose_b)",
            {
                "a": a.swapaxes(-1, -2) if ta else a,
                "b": b.swapaxes(-1, -2) if tb else b,
                "transpose_a": ta,
                "transpose_b": tb,
            },
        )
        for name in ("matmul", "linalg.matmul")
        for a, b in ((A, B), (C, array(4, 3, 2)), (array(5, 1, 2, 3), array(4, 3, 2)))
        for ta in (False, True)
        for tb in (False, True)
    ),
    ("linalg.matvec", "tf.linalg.matvec(a, b)", {"a": A, "b": V}),
    ("linalg.matvec", "tf.linalg.matvec(a, b, transpose_a)", {"a": A, "b": array(2), "transpose_a": True}),
    ("linalg.matrix_transpose", "tf.linalg.matrix_transpose(a)", {"a": A}),
    (
        "nn.softmax_cross_entropy_with_logits",
        "tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)",
        {"labels": LABELS, "logits": A},
    ),
    (
        "nn.sparse_softmax_cross_entropy_with_logits",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)",
        {"labels": np.array([2, 0]), "logits": A},
    ),
    *(
        (
            "cumsum",
            "tf.cumsum(x, axis, exclusive, reverse)",
            {"x": C, "axis": 1, "exclusive": exclusive, "reverse": reverse},
        )
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    ("nn.bias_add", "tf.nn.bias_add(x, bias)", {"x": A, "bias": V}),
    ("nn.l2_loss", "tf.nn.l2_loss(x)", {"x": A}),
    *((name, f"tf.{name}(x)", {"x": x}) for name in ("norm", "linalg.norm") for x in (A, V)),
    *(
        (name, f"tf.{name}(x, axis=axis, keepdims=keepdims)", {"x": C, "keepdims": False} | axes)
        for name in ("norm", "linalg.norm")
        for axes in AXES[:3]
    ),
    *(
        ("tensordot", "tf.tensordot(a, b, axes)", {"a": a, "b": b, "axes": axes})
        for a, b, axes in (
            (A, B, 1),
            (C, array(2, 3, 5), 2),
            (C, array(3, 5, 4), [[0, 2], [2, 0]]),
            (C, array(3, 5, 2), ([-1, 1], [0, 2])),
            (C, array(5, 3), [2, 1]),
        )
    ),
    *(
        (f"linalg.{name}", f"tf.linalg.{name}(x)", {"x": x})
        for name in ("inv", "det", "trace", "diag_part", "diag")
        for x in (SQUARE, np.stack([SQUARE, 2 * SQUARE.T]))
    ),
    *(
        ("linalg.solve", "tf.linalg.solve(a, b, adjoint)", {"a": SQUARE, "b": B, "adjoint": adjoint})
        for adjoint in (False, True)
    ),
    *(("tile", "tf.tile(x, reps)", {"x": A, "reps": reps}) for reps in ([2, 3], [1, 2])),
    ("pad", "tf.pad(x, width)", {"x": A, "width": [[1, 0], [0, 2]]}),
    ("slice", "tf.slice(x, begin, size)", {"x": C, "begin": [1, 0, 1], "size": [2, 1, -1]}),
    ("add_n", "tf.add_n(x)", {"x": [A, array(2, 3, seed=4), A]}),
    ("reshape", "tf.reshape(x, shape)", {"x": C, "shape": [6, -1]}),
    ("squeeze", "tf.squeeze(x)", {"x": array(2, 1, 3)}),
    ("squeeze", "tf.squeeze(x, axis=axis)", {"x": array(2, 1, 3), "axis": 1}),
    ("expand_dims", "tf.expand_dims(x, axis)", {"x": A, "axis": 1}),
    ("transpose", "tf.transpose(x)", {"x": A}),
    ("transpose", "tf.transpose(x, perm)", {"x": C, "perm": [1, 2, 0]}),
    ("broadcast_to", "tf.broadcast_to(x, shape)", {"x": V, "shape": [2, 3]}),
    *(("concat", "tf.concat(x, axis)", {"x": [A, array(2, 5)], "axis": axis}) for axis in (1, -1)),
    *(
        ("stack", "tf.stack(x, axis=axis)", {"x": [A, array(2, 3, seed=4)], "axis": axis})
        for axis in (0, 1, -1)
    ),
    *(
        ("gather", "tf.gather(x, indices, axis=axis)", {"x": C, "indices": np.array(indices), "axis": axis})
        for indices in ([1, 0, 1], [[0, 1], [1, 1]], 1)
        for axis in (0, 1, -1)
    ),
    ("unstack", "tf.unstack(x, axis=axis)", {"x": A, "axis": 1}),
    ("split", "tf.split(x, parts, axis)", {"x": C, "parts": 2, "axis": 0}),
    ("cast", "tf.cast(x, dtype)", {"x": A, "dtype": "float64"}),
    ("convert_to_tensor", "tf.convert_to_tensor(x)", {"x": A}),
    ("constant", "tf.convert_to_tensor(x)", {"x": [array(), array(seed=3)]}),
    ("fill", "tf.fill(shape, x)", {"shape": [2, 3], "x": array()}),
]

SUMS: list[tuple[str, list[Any]]] = [
    ("ij,jk->ik", [A, B]),
    ("ij->", [A]),
    ("ijk,kl->j", [C, B]),
    ("bij,bij->b", [C, array(4, 2, 3, seed=2)]),
]


@pytest.mark.parametrize(("subscripts", "operands"), SUMS, ids=[each for each, _ in SUMS])
def test_einsum_has_a_row_for_its_subscripts(
    subscripts: str, operands: list[Any], names: dict[str, Any]
) -> None:
    row = einsum(subscripts, "tensorflow")
    assert row
    given = dict(zip(row.params[1:], operands, strict=True))
    check(row, f"tf.einsum({subscripts!r}, {', '.join(given)})", given, names)


def row_of(name: str, given: Mapping[str, Any]) -> Row:
    whole = ROWS.get(f"tensorflow.{name}.whole")
    return whole if whole and list(given) == ["x"] else ROWS[f"tensorflow.{name}"]


@pytest.mark.parametrize(
    ("name", "call", "given"), CALLS, ids=[f"{i}-{each[0]}" for i, each in enumerate(CALLS)]
)
def test_rows_of_tensors(name: str, call: str, given: dict[str, Any], names: dict[str, Any]) -> None:
    check(row_of(name, given), call, given, names, graph=not name.startswith(("math.", "linalg.")))


def test_every_row_is_tried() -> None:
    assert {name for name, row in ROWS.items() if not row.elementwise} == {
        row_of(name, given).name for name, _, given in CALLS
    }


def test_an_element_of_an_adjoint_is_added_to(names: dict[str, Any]) -> None:
    tf = names["tf"]
    for index in (
        1,
        (1, 2),
        (slice(None), 0),
        slice(0, 1),
        (Ellipsis, -1),
        (slice(None, None, -1), slice(1, 3)),
    ):
        bar, x = tf.constant(array(2, 3)), tf.Variable(A)
        with tf.GradientTape() as tape:
            part = x[index]
        term = tf.constant(array(*part.shape, seed=5))
        wanted = bar + tf.convert_to_tensor(tape.gradient(part, x, output_gradients=term))
        assert np.allclose(names["_add_at"](bar, index, term), wanted)
