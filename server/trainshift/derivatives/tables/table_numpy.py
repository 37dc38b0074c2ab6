"""The rows of NumPy.

A name that ends in `.whole` is the row of calls with the array as their only argument, without an axis.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.table import ARRAY_POWER, Row, shared, slope

_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
_LONG = ", axis=axis, keepdims=keepdims"
_AXES = {"axis": "None", "keepdims": "False"}


def _row(
    name: str, params: str, reverse: Mapping[str, str], forward: Mapping[str, str], **defaults: str
) -> Row:
    return Row(f"numpy.{name}", tuple(params.split()), reverse, forward, False, defaults)


def _one(name: str, reverse: str, forward: str, params: str = "x", **defaults: str) -> Row:
    """A row for a single array."""
    return _row(name, params, {"x": reverse}, {"x": forward}, **defaults)


def _along(
    name: str, reverse: str, forward: str, params: str = "x axis dtype out keepdims", **defaults: str
) -> Row:
    """A row of a reduction along an axis."""
    return _one(name, reverse, forward, params, **{**_AXES, **defaults})


def _whole(name: str, reverse: str, forward: str) -> Row:
    """A row of calls with an array alone."""
    return _one(f"{name}.whole", reverse, forward)


_BESIDE = "x - np.mean(x, axis=axis, keepdims=True)"
_COUNT = "(np.size(x) / np.size(y) - ddof)"
_REDUCTIONS = (
    _whole("sum", "np.full(np.shape(x), d)", "np.sum(d)"),
    _along("sum", "_spread(d, x, axis, keepdims)", f"np.sum(d{_LONG})"),
    _whole("mean", "np.full(np.shape(x), d / np.size(x))", "np.mean(d)"),
    _along("mean", "_spread(d, x, axis, keepdims) * (np.size(y) / np.size(x))", f"np.mean(d{_LONG})"),
    _whole("var", "d * 2 * (x - np.mean(x)) / np.size(x)", "np.mean(2 * (x - np.mean(x)) * d)"),
    _along(
        "var",
        f"_spread(d, x, axis, keepdims) * 2 * ({_BESIDE}) / {_COUNT}",
        f"np.sum(2 * ({_BESIDE}) * d{_LONG}) / {_COUNT}",
        "x axis dtype out ddof keepdims",
        ddof="0",
    ),
    _whole("std", "d / y * (x - np.mean(x)) / np.size(x)", "np.mean((x - np.mean(x)) * d) / y"),
    _along(
        "std",
        f"_spread(d / y, x, axis, keepdims) * ({_BESIDE}) / {_COUNT}",
        f"np.sum(({_BESIDE}) * d{_LONG}) / y / {_COUNT}",
        "x axis dtype out ddof keepdims",
        ddof="0",
    ),
    _whole("prod", "d * _others(x)", "np.sum(d * _others(x))"),
    _along(
        "prod", "_spread(d, x, axis, keepdims) * _others(x, axis)", f"np.sum(d * _others(x, axis){_LONG})"
    ),
    *(
        row
        for name in ("max", "min", "amax", "amin")
        for row in (
            _whole(name, "d * _shares(x, y)", "np.sum(d * _shares(x, y))"),
            _along(
                name,
                "_spread(d, x, axis, keepdims) * _shares(x, y, axis, keepdims)",
                f"np.sum(d * _shares(x, y, axis, keepdims){_LONG})",
                "x axis out keepdims",
            ),
        )
    ),
    _whole("cumsum", "np.reshape(np.cumsum(d[::-1])[::-1], np.shape(x))", "np.cumsum(d)"),
    _one(
        "cumsum",
        "np.flip(np.cumsum(np.flip(d, axis), axis=axis), axis)",
        "np.cumsum(d, axis=axis)",
        "x axis",
    ),
    _whole("average", "np.full(np.shape(x), d / np.size(x))", "np.mean(d)"),
    _row(
        "average",
        "x axis weights",
        {"x": "d * weights / np.sum(weights)", "weights": "d * (x - y) / np.sum(weights)"},
        {"x": "np.average(d, weights=weights)", "weights": "np.sum(d * (x - y)) / np.sum(weights)"},
    ),
    *(
        _row(
            name,
            "f a dx",
            {"f": "_trapezoid_bar(d, f, a, dx=dx)", "a": "_widths_bar(d, f)", "dx": "d * y / dx"},
            {"f": f"np.{name}(d, a, dx=dx)", "a": f"np.{name}(f, d)", "dx": "d * y / dx"},
            a="None",
            dx="1.0",
        )
        for name in ("trapz", "trapezoid")
    ),
    _one("trace", "d * np.eye(len(x), np.shape(x)[1])", "np.trace(d)"),
)

_BACK, _THERE = "np.reshape(d, np.shape(x))", "np.reshape(d, np.shape(y))"
_SHAPES = (
    *(
        _one(name, _BACK, _THERE, params)
        for name, params in (
            ("reshape", "x shape"),
            ("ravel", "x"),
            ("squeeze", "x axis"),
            ("expand_dims", "x axis"),
            ("atleast_1d", "x"),
            ("atleast_2d", "x"),
        )
    ),
    _one("flatten", _BACK, f"{_THERE} + 0.0"),
    _whole("transpose", "np.transpose(d)", "np.transpose(d)"),
    _one("transpose", "np.transpose(d, np.argsort(axes))", "np.transpose(d, axes)", "x axes"),
    _one("swapaxes", "np.swapaxes(d, i, j)", "np.swapaxes(d, i, j)", "x i j"),
    _one("moveaxis", "np.moveaxis(d, j, i)", "np.moveaxis(d, i, j)", "x i j"),
    _whole("flip", "np.flip(d)", "np.flip(d)"),
    _one("flip", "np.flip(d, axis)", "np.flip(d, axis)", "x axis"),
    _one("roll", "np.roll(d, -shift, axis)", "np.roll(d, shift, axis)", "x shift axis", axis="None"),
    _one("fliplr", "np.fliplr(d)", "np.fliplr(d)"),
    _one("flipud", "np.flipud(d)", "np.flipud(d)"),
    _whole("diff", "np.concatenate([-d[:1], d[:-1] - d[1:], d[-1:]])", "np.diff(d)"),
    Row(
        "numpy.diff",
        ("x", "n", "axis"),
        {"x": "_diff_bar(d, axis)"},
        {"x": "np.diff(d, axis=axis)"},
        False,
        {"axis": "-1"},
        {"n": ("1",)},
    ),
    *(
        row
        for name in ("triu", "tril")
        for row in (
            _whole(name, f"np.{name}(d)", f"np.{name}(d)"),
            _one(name, f"np.{name}(d, k)", f"np.{name}(d, k)", "x k"),
        )
    ),
    _whole("sort", "d[np.argsort(np.argsort(x, kind='stable'))]", "d[np.argsort(x, kind='stable')]"),
    _one(
        "sort",
        "np.take_along_axis(d, np.argsort(np.argsort(x, axis, kind='stable'), axis), axis)",
        "np.take_along_axis(d, np.argsort(x, axis, kind='stable'), axis)",
        "x axis",
    ),
    _one("take", "_add_at(_cells(x), index, d)", "np.take(d, index)", "x index"),
    _one("item", "np.full(np.shape(x), d)", "d.item()"),
    _one("broadcast_to", "_unbroadcast(d, x)", "np.broadcast_to(d, np.shape(y))", "x shape"),
    _one("tile", "_tile_bar(d, x)", "np.tile(d, reps)", "x reps"),
    _one(
        "repeat",
        "_repeat_bar(d, x, repeats, axis)",
        "np.repeat(d, repeats, axis=axis)",
        "x repeats axis",
        axis="None",
    ),
    Row(
        "numpy.pad",
        ("x", "width", "mode", "constant_values"),
        {"x": "_pad_bar(d, x, width)"},
        {"x": "np.pad(d, width)"},
        False,
        only={"mode": ("'constant'",)},
    ),
    Row(
        "numpy.pad.repeating",
        ("x", "width", "mode"),
        {"x": "_padded_bar(d, x, width, mode)"},
        {"x": "np.pad(d, width, mode)"},
        False,
        only={"mode": ("'edge'", "'reflect'", "'symmetric'", "'wrap'")},
    ),
    _one("diag", "_diag_bar(d, x, k)", "np.diag(d, k)", "x k", k="0"),
    _one("diagonal", "_diag_bar(d, x, k)", "np.diagonal(d, k)", "x k", k="0"),
    _one("arange", "np.sum(d)", "np.full(np.shape(y), d)", "x test"),
    _row("arange.whole", "test", {}, {}),
    _row(
        "arange.step",
        "x test step",
        {"x": "np.sum(d)", "step": "np.sum(d * np.arange(np.size(y)))"},
        {"x": "np.full(np.shape(y), d)", "step": "d * np.arange(np.size(y))"},
    ),
    _row(
        "linspace",
        "a b num",
        {
            "a": "_unbroadcast(np.moveaxis(d, 0, -1) @ np.linspace(1.0, 0.0, num), a)",
            "b": "_unbroadcast(np.moveaxis(d, 0, -1) @ np.linspace(0.0, 1.0, num), b)",
        },
        {"a": "np.linspace(d, 0.0 * (d + b), num)", "b": "np.linspace(0.0 * (a + d), d, num)"},
        num="50",
    ),
    _one("full", "np.sum(d)", "np.full(np.shape(y), d)", "shape x"),
    _one("full_like", "np.sum(d)", "np.full(np.shape(y), d)", "like x"),
    _one("copy", "d", "np.copy(d)"),
    *(
        _one(name, "_like(d, x)", f"np.{name}(d, dtype=float)", "x dtype")
        for name in ("array", "asarray", "ascontiguousarray")
    ),
    _one("float64", "d", "d"),
    _one(
        "astype",
        "d if np.issubdtype(y.dtype, np.floating) else np.zeros(np.shape(x))",
        "d + 0.0 if np.issubdtype(y.dtype, np.floating) else np.zeros(np.shape(x))",
        "x dtype",
    ),
)

_SEVERAL = (
    _one("concatenate", "_parts(d, x, axis)", "np.concatenate(d, axis=axis)", "x axis", axis="0"),
    _row(
        "append",
        "arr values axis",
        {
            "arr": "np.reshape(d[:np.size(arr)], np.shape(arr))",
            "values": "np.reshape(d[np.size(arr):], np.shape(values))",
        },
        {"arr": "np.append(d, np.zeros(np.size(values)))", "values": "np.append(np.zeros(np.size(arr)), d)"},
    ),
    _one("column_stack", "_columns(d, x)", "np.column_stack(d)"),
    _one("vstack", "_parts(d, x, 0)", "np.vstack(d)"),
    _one("hstack", "_parts(d, x, 0 if np.ndim(y) == 1 else 1)", "np.hstack(d)"),
    _whole("stack", "_like(d, x)", "np.stack(d)"),
    _one("stack", "_like(np.moveaxis(d, axis, 0), x)", "np.stack(d, axis=axis)", "x axis", axis="0"),
    *(
        _one(
            name, "np.concatenate(d, axis=axis)", f"np.{name}(d, parts, axis=axis)", "x parts axis", axis="0"
        )
        for name in ("split", "array_split")
    ),
)


_PRODUCTS = (
    _row(
        "matmul",
        "a b",
        {"a": "_matmul_left_bar(d, a, b)", "b": "_matmul_right_bar(d, a, b)"},
        {"a": "d @ b", "b": "a @ d"},
    ),
    _row(
        "dot",
        "a b",
        {"a": "_dot_left_bar(d, a, b)", "b": "_dot_right_bar(d, a, b)"},
        {"a": "np.dot(d, b)", "b": "np.dot(a, d)"},
    ),
    _row(
        "inner",
        "a b",
        {"a": "_tensordot_left_bar(d, a, b, (-1, -1))", "b": "_tensordot_right_bar(d, a, b, (-1, -1))"},
        {"a": "np.inner(d, b)", "b": "np.inner(a, d)"},
    ),
    _row(
        "vdot",
        "a b",
        {"a": "np.reshape(d * np.ravel(b), np.shape(a))", "b": "np.reshape(d * np.ravel(a), np.shape(b))"},
        {"a": "np.vdot(d, b)", "b": "np.vdot(a, d)"},
    ),
    _row(
        "outer",
        "a b",
        {"a": "np.reshape(d @ np.ravel(b), np.shape(a))", "b": "np.reshape(np.ravel(a) @ d, np.shape(b))"},
        {"a": "np.outer(d, b)", "b": "np.outer(a, d)"},
    ),
    _row(
        "tensordot",
        "a b axes",
        {"a": "_tensordot_left_bar(d, a, b, axes)", "b": "_tensordot_right_bar(d, a, b, axes)"},
        {"a": "np.tensordot(d, b, axes)", "b": "np.tensordot(a, d, axes)"},
        axes="2",
    ),
)

_LINALG = (
    _row(
        "cross",
        "a b",
        {"a": "_unbroadcast(np.cross(b, d), a)", "b": "_unbroadcast(np.cross(d, a), b)"},
        {"a": "np.cross(d, b)", "b": "np.cross(a, d)"},
    ),
    _row(
        "convolve",
        "a v mode",
        {"a": "_convolve_bar(d, a, v)", "v": "_convolve_bar(d, v, a)"},
        {"a": "np.convolve(d, v, mode)", "v": "np.convolve(a, d, mode)"},
        mode="'full'",
    ),
    _one("polyder", "_like(np.append(d * np.arange(len(d), 0, -1), 0.0), x)", "np.polyder(d)"),
    _row(
        "polyval",
        "p x",
        {
            "p": "_like([np.sum(d * x ** k) for k in reversed(range(len(p)))], p)",
            "x": "d * np.polyval(np.polyder(p), x)",
        },
        {"p": "np.polyval(d, x)", "x": "d * np.polyval(np.polyder(p), x)"},
    ),
    _one("linalg.inv", "-np.swapaxes(y, -1, -2) @ d @ np.swapaxes(y, -1, -2)", "-y @ d @ y"),
    _row(
        "linalg.solve",
        "a b",
        {"a": "_solve_bar(d, a, y)", "b": "np.linalg.solve(np.swapaxes(a, -1, -2), d)"},
        {"a": "-np.linalg.solve(a, d @ y)", "b": "np.linalg.solve(a, d)"},
    ),
    _one(
        "linalg.det",
        "(d * y)[..., None, None] * np.swapaxes(np.linalg.inv(x), -1, -2)",
        "y * np.sum(np.swapaxes(np.linalg.inv(x), -1, -2) * d, axis=(-2, -1))",
    ),
    _whole("linalg.norm", "d * x / y", "np.sum(x * d) / y"),
    Row(
        "numpy.linalg.norm",
        ("x", "ord", "axis", "keepdims"),
        {"x": "_spread(d / y, x, axis, keepdims) * x"},
        {"x": f"np.sum(x * d{_LONG}) / y"},
        False,
        _AXES,
        {"ord": ("None", "'fro'")},
    ),
    _one("linalg.cholesky", "_cholesky_bar(d, y)", "_cholesky_dot(d, y)"),
)

ROWS = (
    *shared("numpy", _NAMES),
    slope("numpy.log2", "x", {"x": "d / (x * np.log(2.0))"}),
    slope("numpy.log10", "x", {"x": "d / (x * np.log(10.0))"}),
    slope("numpy.exp2", "x", {"x": "d * y * np.log(2.0)"}),
    slope("numpy.cbrt", "x", {"x": "d / (3 * y * y)"}),
    *(slope(f"numpy.{each}", "x", {"x": "d * np.sign(x)"}) for each in ("abs", "absolute", "fabs")),
    slope("numpy.square", "x", {"x": "d * 2 * x"}),
    slope("numpy.reciprocal", "x", {"x": "-d * y * y"}),
    slope("numpy.negative", "x", {"x": "-d"}),
    slope("numpy.positive", "x", {"x": "d"}),
    slope("numpy.add", "a b", {"a": "d", "b": "d"}),
    slope("numpy.subtract", "a b", {"a": "d", "b": "-d"}),
    Row("numpy.multiply", ("a", "b"), {"a": "d * b", "b": "d * a"}, {"a": "d * b", "b": "a * d"}),
    slope("numpy.divide", "a b", {"a": "d / b", "b": "-d * y / b"}),
    slope("numpy.true_divide", "a b", {"a": "d / b", "b": "-d * y / b"}),
    slope("numpy.maximum", "a b", {"a": "d * (a >= b)", "b": "d * (a < b)"}),
    slope("numpy.minimum", "a b", {"a": "d * (a <= b)", "b": "d * (a > b)"}),
    slope("numpy.fmax", "a b", {"a": "d * (a >= b)", "b": "d * (a < b)"}),
    slope("numpy.fmin", "a b", {"a": "d * (a <= b)", "b": "d * (a > b)"}),
    slope("numpy.hypot", "a b", {"a": "d * a / y", "b": "d * b / y"}),
    slope("numpy.logaddexp", "a b", {"a": "d * np.exp(a - y)", "b": "d * np.exp(b - y)"}),
    slope("numpy.arctan2", "a b", {"a": "d * b / (a * a + b * b)", "b": "-d * a / (a * a + b * b)"}),
    slope("numpy.power", "a b", ARRAY_POWER.reverse),
    slope("numpy.mod", "a b", {"a": "d", "b": "-d * (a // b)"}),
    slope("numpy.remainder", "a b", {"a": "d", "b": "-d * (a // b)"}),
    slope(
        "numpy.clip",
        "x low high",
        {"x": "d * ((x >= low) & (x <= high))", "low": "d * (x < low)", "high": "d * (x > high)"},
    ),
    slope("numpy.clip.low", "x low high", {"x": "d * (x >= low)", "low": "d * (x < low)"}),
    slope("numpy.clip.high", "x low high", {"x": "d * (x <= high)", "high": "d * (x > high)"}),
    slope("numpy.where", "test a b", {"a": "np.where(test, d, 0.0)", "b": "np.where(test, 0.0, d)"}),
    slope("numpy.nan_to_num", "x", {"x": "d * np.isfinite(x)"}),
    slope("numpy.deg2rad", "x", {"x": "np.deg2rad(d)"}),
    slope("numpy.rad2deg", "x", {"x": "np.rad2deg(d)"}),
    *_REDUCTIONS,
    *_SHAPES,
    *_SEVERAL,
    *_PRODUCTS,
    *_LINALG,
)

# Array methods that have a row.
METHODS = frozenset(
    ["sum", "mean", "var", "std", "prod", "max", "min", "cumsum", "trace", "dot", "reshape", "ravel",
     "flatten", "transpose", "swapaxes", "squeeze", "repeat", "clip", "copy", "astype", "take", "item",
     "diagonal"]
)  # fmt: skip
# Array methods that are locally constant.
STILL_METHODS = frozenset(["argmax", "argmin", "argsort", "all", "any", "nonzero", "round", "searchsorted"])

CONSTANTS = frozenset(
    f"numpy.{each}"
    for each in [
        "shape", "size", "ndim", "argmax", "argmin", "argsort", "sign", "floor", "ceil", "round", "rint",
        "trunc", "fix", "isnan", "isinf", "isfinite", "allclose", "zeros_like", "ones_like", "empty_like",
        "eye", "identity", "zeros", "ones", "empty", "all", "any", "logical_and", "logical_or",
        "logical_not", "logical_xor", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
        "nonzero", "flatnonzero", "searchsorted", "count_nonzero", "array_equal", "lexsort", "isclose",
        "sort_indices", "floor_divide", "tri", "triu_indices", "tril_indices", "diag_indices", "int64",
        "int32", "bool_", "indices", "iscomplexobj", "isscalar", "result_type", "finfo", "iinfo", "dtype",
    ]
)  # fmt: skip
