"""The rows of NumPy, and the helpers that they call."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.helpers_numpy import HELPERS
from trainshift.derivatives.tables.table import ARRAY_POWER, Row, shared, slope

_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh":
    "arctanh", }  # fmt: skip


def _row(
    name: str,
    params: str,
    reverse: str | Mapping[str, str],
    forward: str | Mapping[str, str],
    **defaults: str,
) -> Row:
    """A row that is not element by element; a template alone is that of the first parameter."""
    names = tuple(params.split())
    reverse = {names[0]: reverse} if isinstance(reverse, str) else reverse
    forward = {names[0]: forward} if isinstance(forward, str) else forward
    return Row(f"numpy.{name}", names, reverse, forward, False, defaults)


def einsum(subscripts: str) -> Row | None:
    """The row of `np.einsum` with these subscripts; None, where an operand has an index twice."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    parts = given.split(",")
    if not arrow:
        result = "".join(sorted(each for each in set(given) - {","} if given.count(each) == 1))
    if "." in subscripts or any(len(set(each)) < len(each) for each in parts):
        return None
    names = tuple(f"x{place}" for place in range(len(parts)))
    reverse: dict[str, str] = {}
    forward: dict[str, str] = {}
    for place, part in enumerate(parts):
        others = [(text, name) for text, name in zip(parts, names, strict=True) if name != names[place]]
        known = set(result).union(*(text for text, _ in others)) if others else set(result)
        ones = [
            (each, f"np.ones(np.shape({names[place]})[{i}])")
            for i, each in enumerate(part)
            if each not in known
        ]
        terms = [(result, "d"), *others, *ones]
        left = ",".join(text for text, _ in terms)
        reverse[names[place]] = f"np.einsum('{left}->{part}', {', '.join(name for _, name in terms)})"
        moved = ", ".join("d" if i == place else name for i, name in enumerate(names))
        forward[names[place]] = f"np.einsum('{given}->{result}', {moved})"
    return Row("numpy.einsum", ("subscripts", *names), reverse, forward, False)


def _reduction(name: str, reverse: str, forward: str) -> Row:
    return _row(name, "x axis keepdims", reverse, forward, axis="None", keepdims="False")


def _both(name: str, params: str, left: str, right: str, ahead: tuple[str, str]) -> Row:
    one, other = params.split()[:2]
    return _row(name, params, {one: left, other: right}, {one: ahead[0], other: ahead[1]})


_SPREAD = "_spread(d, x, axis, keepdims)"
_CENTRED = "(x - np.mean(x, axis=axis, keepdims=True))"
_SHARE = "_spread(d, x, axis, keepdims) * _ties(x, y, axis, keepdims)"
_SHARE_DOT = "np.sum(d * _ties(x, y, axis, keepdims), axis=axis, keepdims=keepdims)"

ROWS = (
    *shared("numpy", _NAMES),
    slope("numpy.log2", "x", {"x": "d / (x * np.log(2.0))"}),
    slope("numpy.log10", "x", {"x": "d / (x * np.log(10.0))"}),
    slope("numpy.abs", "x", {"x": "d * np.sign(x)"}),
    slope("numpy.absolute", "x", {"x": "d * np.sign(x)"}),
    slope("numpy.fabs", "x", {"x": "d * np.sign(x)"}),
    slope("numpy.square", "x", {"x": "d * 2 * x"}),
    slope("numpy.reciprocal", "x", {"x": "-d * y * y"}),
    slope("numpy.negative", "x", {"x": "-d"}),
    slope("numpy.add", "a b", {"a": "d", "b": "d"}),
    slope("numpy.subtract", "a b", {"a": "d", "b": "-d"}),
    slope("numpy.multiply", "a b", {"a": "d * b", "b": "d * a"}),
    slope("numpy.divide", "a b", {"a": "d / b", "b": "-d * y / b"}),
    slope("numpy.true_divide", "a b", {"a": "d / b", "b": "-d * y / b"}),
    slope("numpy.maximum", "a b", {"a": "d * (a >= b)", "b": "d * (a < b)"}),
    slope("numpy.minimum", "a b", {"a": "d * (a <= b)", "b": "d * (a > b)"}),
    slope("numpy.hypot", "a b", {"a": "d * a / y", "b": "d * b / y"}),
    slope("numpy.arctan2", "a b", {"a": "d * b / (a * a + b * b)", "b": "-d * a / (a * a + b * b)"}),
    slope("numpy.power", "a b", ARRAY_POWER.reverse),
    slope("numpy.mod", "a b", {"a": "d", "b": "-d * (a // b)"}),
    slope("numpy.remainder", "a b", {"a": "d", "b": "-d * (a // b)"}),
    slope("numpy.clip", "x low high", {"x": "d * ((x >= low) & (x <= high))"}),
    slope("numpy.where", "test a b", {"a": "np.where(test, d, 0.0)", "b": "np.where(test, 0.0, d)"}),
    slope("numpy.nan_to_num", "x", {"x": "d * np.isfinite(x)"}),
    slope("numpy.asarray", "x", {"x": "d"}),
    slope("numpy.float64", "x", {"x": "d"}),
    slope("numpy.astype", "x dtype", {"x": "d"}),
    slope("numpy.copy", "x", {"x": "d + 0.0"}),
    _reduction("sum", _SPREAD, "np.sum(d + np.zeros(np.shape(x)), axis=axis, keepdims=keepdims)"),
    _reduction(
        "mean",
        "_spread(d, x, axis, keepdims) * (np.size(y) / np.size(x))",
        "np.mean(d + np.zeros(np.shape(x)), axis=axis, keepdims=keepdims)",
    ),
    _reduction(
        "var",
        f"_spread(d, x, axis, keepdims) * {_CENTRED} * (2 * np.size(y) / np.size(x))",
        f"2 * np.mean(d * {_CENTRED}, axis=axis, keepdims=keepdims)",
    ),
    _reduction(
        "std",
        f"_spread(d / y, x, axis, keepdims) * {_CENTRED} * (np.size(y) / np.size(x))",
        f"np.mean(d * {_CENTRED}, axis=axis, keepdims=keepdims) / y",
    ),
    *(_reduction(name, _SHARE, _SHARE_DOT) for name in ("max", "min", "amax", "amin")),
    _reduction(
        "prod",
        "_prod_bar(d, x, axis, keepdims)",
        "np.sum(d * _prod_bar(np.ones(np.shape(y)), x, axis, keepdims), axis=axis, keepdims=keepdims)",
    ),
    _row("mean.whole", "x", "np.full(np.shape(x), d / np.size(x))", "np.mean(d)"),
    _row("sum.whole", "x", "np.full(np.shape(x), d)", "np.sum(d)"),
    _row(
        "cumsum",
        "x axis",
        "_cumsum_bar(d, x, axis)",
        "np.cumsum(d + np.zeros(np.shape(x)), axis=axis)",
        axis="None",
    ),
    _row("trace", "x", "d * np.eye(np.shape(x)[0], np.shape(x)[1])", "np.trace(d)"),
    _both("matmul", "a b", "_matmul_left_bar(d, a, b)", "_matmul_right_bar(d, a, b)", ("d @ b", "a @ d")),
    _both(
        "dot", "a b", "_dot_left_bar(d, a, b)", "_dot_right_bar(d, a, b)", ("np.dot(d, b)", "np.dot(a, d)")
    ),
    _both(
        "inner",
        "a b",
        "np.tensordot(d, b, axes=(list(range(np.ndim(a) - 1, np.ndim(d))), list(range(np.ndim(b) - 1))))",
        "np.tensordot(d, a, axes=(list(range(np.ndim(a) - 1)), list(range(np.ndim(a) - 1))))",
        ("np.inner(d, b)", "np.inner(a, d)"),
    ),
    _both(
        "vdot",
        "a b",
        "d * np.reshape(b, np.shape(a))",
        "d * np.reshape(a, np.shape(b))",
        ("np.vdot(d, b)", "np.vdot(a, d)"),
    ),
    _both(
        "outer",
        "a b",
        "np.reshape(d @ np.ravel(b), np.shape(a))",
        "np.reshape(np.ravel(a) @ d, np.shape(b))",
        ("np.outer(d, b)", "np.outer(a, d)"),
    ),
    _both(
        "tensordot",
        "a b axes",
        "_tensordot_bars(d, a, b, axes)[0]",
        "_tensordot_bars(d, a, b, axes)[1]",
        ("np.tensordot(d, b, axes=axes)", "np.tensordot(a, d, axes=axes)"),
    ),
    _row("reshape", "x shape", "np.reshape(d, np.shape(x))", "np.reshape(d + np.zeros(np.shape(x)), shape)"),
    _row("ravel", "x", "np.reshape(d, np.shape(x))", "np.ravel(d)"),
    _row("flatten", "x", "np.reshape(d, np.shape(x))", "np.ravel(d)"),
    _row("transpose", "x axes", "_transposed_back(d, axes)", "np.transpose(d, axes)", axes="None"),
    _row("swapaxes", "x one two", "np.swapaxes(d, one, two)", "np.swapaxes(d, one, two)"),
    _row("squeeze", "x axis", "np.reshape(d, np.shape(x))", "np.squeeze(d, axis)", axis="None"),
    _row("expand_dims", "x axis", "np.reshape(d, np.shape(x))", "np.expand_dims(d, axis)"),
    _row("atleast_2d", "x", "np.reshape(d, np.shape(x))", "np.atleast_2d(d)"),
    _row("concatenate", "x axis", "_pieces(d, x, axis)", "np.concatenate(d, axis)", axis="0"),
    _row("stack", "x axis", "list(np.moveaxis(d, axis, 0))", "np.stack(d, axis)", axis="0"),
    _row("hstack", "x", "_pieces(d, x, 0 if np.ndim(x[0]) < 2 else 1)", "np.hstack(d)"),
    _row(
        "vstack",
        "x",
        "[np.reshape(each, np.shape(a)) for each, a in zip(_pieces(d, [np.atleast_2d(a) for a in x], 0), x)]",
        "np.vstack(d)",
    ),
    _row("split", "x parts axis", "np.concatenate(d, axis)", "np.split(d, parts, axis)", axis="0"),
    _row(
        "array_split", "x parts axis", "np.concatenate(d, axis)", "np.array_split(d, parts, axis)", axis="0"
    ),
    _row("array", "x", "d", "np.array(d)"),
    _row("tile", "x reps", "_tile_bar(d, x, reps)", "np.tile(d, reps)"),
    _row(
        "repeat", "x times axis", "_repeat_bar(d, x, times, axis)", "np.repeat(d, times, axis)", axis="None"
    ),
    _row("pad", "x width", "_pad_bar(d, x, width)", "np.pad(d, width)"),
    _row("diag", "x", "np.diag(d) if np.ndim(x) == 2 and np.ndim(d) == 1 else np.diag(d)", "np.diag(d)"),
    _row("broadcast_to", "x shape", "_unbroadcast(d, x)", "np.broadcast_to(d, shape)"),
    _row("roll", "x shift axis", "np.roll(d, -shift, axis)", "np.roll(d, shift, axis)", axis="None"),
    _row("flip", "x axis", "np.flip(d, axis)", "np.flip(d, axis)", axis="None"),
    _row("sort", "x", "d[np.argsort(np.argsort(x, kind='stable'))]", "d[np.argsort(x, kind='stable')]"),
    _row("take", "x index", "_add_at(_cells(x), index, d)", "np.take(d, index)"),
    _row("diff", "x", "np.concatenate([-d[:1], d[:-1] - d[1:], d[-1:]])", "np.diff(d)"),
    _row("triu", "x", "np.triu(d)", "np.triu(d)"),
    _row("tril", "x", "np.tril(d)", "np.tril(d)"),
    _row("item", "x", "np.full(np.shape(x), d)", "d.item()"),
    _row("full", "shape x", {"x": "np.sum(d)"}, {"x": "np.full(shape, d)"}),
    _row("full_like", "a x", {"x": "np.sum(d)"}, {"x": "np.full_like(a, d)"}),
    _row("linalg.inv", "x", "-np.swapaxes(y, -1, -2) @ d @ np.swapaxes(y, -1, -2)", "-y @ d @ y"),
    _both(
        "linalg.solve",
        "a b",
        "_solve_bar(d, a, y)",
        "np.linalg.solve(np.swapaxes(a, -1, -2), d)",
        ("-np.linalg.solve(a, d @ y)", "np.linalg.solve(a, d)"),
    ),
    _row(
        "linalg.det",
        "x",
        "d * y * np.swapaxes(np.linalg.inv(x), -1, -2)",
        "y * np.trace(np.linalg.solve(x, d))",
    ),
    _row(
        "linalg.norm",
        "x axis",
        "_spread(d / y, x, axis, False) * x",
        "np.sum(d * x, axis=axis) / y",
        axis="None",
    ),
    _row("linalg.cholesky", "x", "_cholesky_bar(d, y)", "_cholesky_dot(d, y)"),
)

CONSTANTS = frozenset(
    f"numpy.{each}"
    for each in [
        "shape",
        "size",
        "ndim",
        "argmax",
        "argmin",
        "argsort",
        "sign",
        "floor",
        "ceil",
        "round",
        "rint",
        "trunc",
        "isnan",
        "isinf",
        "isfinite",
        "allclose",
        "zeros_like",
        "ones_like",
        "empty_like",
        "arange",
        "eye",
        "identity",
        "zeros",
        "ones",
        "empty",
        "linspace",
        "all",
        "any",
        "logical_and",
        "logical_or",
        "logical_not",
        "equal",
        "greater",
        "less",
        "greater_equal",
        "less_equal",
        "not_equal",
        "nonzero",
        "flatnonzero",
        "searchsorted",
        "count_nonzero",
        "array_equal",
        "isclose",
        "finfo",
        "int64",
        "int32",
        "bool_",
        "random",
    ]
)

__all__ = ["CONSTANTS", "HELPERS", "ROWS"]
