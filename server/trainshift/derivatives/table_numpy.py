"""The rows of NumPy, and the helpers that they call."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.table import Row, shared, slope

_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


def _row(name: str, params: str, reverse: Mapping[str, str], forward: Mapping[str, str], **defaults: str) -> Row:
    return Row(f"numpy.{name}", tuple(params.split()), reverse, forward, False, defaults)


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
    slope(
        "numpy.power",
        "a b",
        {"a": "d * b * a ** np.where(b, b - 1, 1.0)", "b": "d * y * np.log(np.where(a > 0, a, 1.0))"},
    ),
    slope("numpy.mod", "a b", {"a": "d", "b": "-d * (a // b)"}),
    slope("numpy.clip", "x low high", {"x": "d * ((x >= low) & (x <= high))"}),
    slope("numpy.where", "test a b", {"a": "np.where(test, d, 0.0)", "b": "np.where(test, 0.0, d)"}),
    _row("mean", "x axis keepdims", {"x": "np.full(np.shape(x), d / np.size(x))"}, {"x": "np.mean(d)"}),
    _row("sum", "x axis keepdims", {"x": "np.full(np.shape(x), d)"}, {"x": "np.sum(d)"}),
    _row(
        "matmul",
        "a b",
        {"a": "_matmul_left_bar(d, a, b)", "b": "_matmul_right_bar(d, a, b)"},
        {"a": "d @ b", "b": "a @ d"},
    ),
)

CONSTANTS = frozenset(
    f"numpy.{each}"
    for each in """shape size ndim argmax argmin argsort sign floor ceil round rint trunc isnan isinf isfinite allclose
    zeros_like ones_like arange eye zeros ones all any logical_and logical_or logical_not equal greater less nonzero
    searchsorted count_nonzero array_equal lexsort isclose sort_indices""".split()
)

HELPERS: Mapping[str, str] = {
    "_matmul_left_bar": '''
def _matmul_left_bar(bar, a, b):
    """The adjoint of a in a @ b."""
    if np.ndim(b) == 1:
        return np.multiply.outer(bar, b) if np.ndim(a) > 1 else bar * b
    if np.ndim(a) == 1:
        bar = np.expand_dims(bar, -2)
        found = bar @ np.swapaxes(b, -1, -2)
        return np.sum(found, axis=tuple(range(np.ndim(found) - 1)))
    return _unbroadcast(bar @ np.swapaxes(b, -1, -2), a)
''',
    "_matmul_right_bar": '''
def _matmul_right_bar(bar, a, b):
    """The adjoint of b in a @ b."""
    if np.ndim(a) == 1:
        return np.multiply.outer(a, bar) if np.ndim(b) == 2 else bar * a
    if np.ndim(b) == 1:
        found = np.expand_dims(bar, -1) * a
        return np.sum(found, axis=tuple(range(np.ndim(found) - 1)))
    return _unbroadcast(np.swapaxes(a, -1, -2) @ bar, b)
''',
}
