"""The rows of TensorFlow, and the helpers that they call."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.table import Row, shared, slope

_ELEMENTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "abs": ("x", {"x": "d * tf.sign(x)"}),
    "square": ("x", {"x": "d * 2 * x"}),
    "reciprocal": ("x", {"x": "-d * y * y"}),
    "rsqrt": ("x", {"x": "-d * y / (2 * x)"}),
    "negative": ("x", {"x": "-d"}),
    "sigmoid": ("x", {"x": "d * y * (1 - y)"}),
    "softplus": ("x", {"x": "d * tf.sigmoid(x)"}),
    "erf": ("x", {"x": "d * 2 / np.sqrt(np.pi) * tf.exp(-x * x)"}),
    "add": ("x y_", {"x": "d", "y_": "d"}),
    "subtract": ("x y_", {"x": "d", "y_": "-d"}),
    "multiply": ("x y_", {"x": "d * y_", "y_": "d * x"}),
    "divide": ("x y_", {"x": "d / y_", "y_": "-d * y / y_"}),
    "pow": (
        "x y_",
        {"x": "d * y_ * x ** (y_ - 1)", "y_": "d * y * tf.math.log(tf.where(x > 0, x, tf.ones_like(x)))"},
    ),
    "maximum": ("x y_", {"x": "tf.where(x >= y_, d, 0.0 * d)", "y_": "tf.where(x < y_, d, 0.0 * d)"}),
    "minimum": ("x y_", {"x": "tf.where(x <= y_, d, 0.0 * d)", "y_": "tf.where(x > y_, d, 0.0 * d)"}),
    "atan2": ("x y_", {"x": "d * y_ / (x * x + y_ * y_)", "y_": "-d * x / (x * x + y_ * y_)"}),
    "squared_difference": ("x y_", {"x": "d * 2 * (x - y_)", "y_": "d * 2 * (y_ - x)"}),
    "log_sigmoid": ("x", {"x": "d * (1 - tf.exp(y))"}),
}


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
    return Row(f"tensorflow.{name}", names, reverse, forward, False, defaults)


def _reduction(name: str, reverse: str, forward: str) -> Row:
    return _row(name, "x axis keepdims", reverse, forward, axis="None", keepdims="False")


def _also(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows, and those of `tf.math` under their short names in `tf` and in `tf.nn`."""
    more = [
        Row(
            row.name.replace(".math.", part),
            row.params,
            row.reverse,
            row.forward,
            row.elementwise,
            row.defaults,
        )
        for row in rows
        if row.name.startswith("tensorflow.math.")
        for part in (".", ".nn.")
    ]
    return (*rows, *more)


_SHARE = "tf.cast(tf.size(y), x.dtype) / tf.cast(tf.size(x), x.dtype)"
_LEFT = "tf.nn.softmax(logits) * tf.reduce_sum(labels, -1, keepdims=True) - labels"
_SPARSE = "tf.nn.softmax(logits) - tf.one_hot(labels, tf.shape(logits)[-1], dtype=logits.dtype)"
_PARTS = "tf.exp(x - _spread(y, x, axis, keepdims))"
_OTHERS = "_prod_bar(tf.ones_like(y), x, axis, keepdims)"

ROWS = _also(
    (
        *shared("tensorflow.math", {}),
        *(slope(f"tensorflow.math.{name}", params, found) for name, (params, found) in _ELEMENTS.items()),
        slope("tensorflow.nn.relu", "x", {"x": "tf.where(x > 0, d, 0.0 * d)"}),
        slope(
            "tensorflow.where",
            "test a b",
            {"a": "tf.where(test, d, 0.0 * d)", "b": "tf.where(test, 0.0 * d, d)"},
        ),
        slope("tensorflow.cast", "x dtype", {"x": "tf.cast(d, x.dtype)"}),
        slope("tensorflow.identity", "x", {"x": "d"}),
        slope("tensorflow.convert_to_tensor", "x", {"x": "d"}),
        slope(
            "tensorflow.clip_by_value",
            "x low high",
            {"x": "tf.where((x >= low) & (x <= high), d, 0.0 * d)"},
        ),
        slope(
            "tensorflow.nn.sigmoid_cross_entropy_with_logits",
            "labels logits",
            {"labels": "-d * logits", "logits": "d * (tf.sigmoid(logits) - labels)"},
        ),
        _row(
            "nn.softmax_cross_entropy_with_logits",
            "labels logits",
            {
                "labels": "-tf.expand_dims(d, -1) * tf.nn.log_softmax(logits)",
                "logits": f"tf.expand_dims(d, -1) * ({_LEFT})",
            },
            {
                "labels": "-tf.reduce_sum(d * tf.nn.log_softmax(logits), -1)",
                "logits": f"tf.reduce_sum(d * ({_LEFT}), -1)",
            },
        ),
        _row(
            "nn.sparse_softmax_cross_entropy_with_logits",
            "labels logits",
            {"logits": f"tf.expand_dims(d, -1) * ({_SPARSE})"},
            {"logits": f"tf.reduce_sum(d * ({_SPARSE}), -1)"},
        ),
        *(
            _row(
                f"{module}softmax",
                "x axis",
                "y * (d - tf.reduce_sum(d * y, axis, keepdims=True))",
                "y * (d - tf.reduce_sum(d * y, axis, keepdims=True))",
                axis="-1",
            )
            for module in ("", "nn.")
        ),
        _row(
            "nn.log_softmax",
            "x axis",
            "d - tf.exp(y) * tf.reduce_sum(d, axis, keepdims=True)",
            "d - tf.reduce_sum(d * tf.exp(y), axis, keepdims=True)",
            axis="-1",
        ),
        *(
            row
            for part in ("", "math.")
            for row in (
                _row(f"{part}reduce_sum.whole", "x", "d * tf.ones_like(x)", "tf.reduce_sum(d)"),
                _row(
                    f"{part}reduce_mean.whole",
                    "x",
                    "d / tf.cast(tf.size(x), x.dtype) * tf.ones_like(x)",
                    "tf.reduce_mean(d)",
                ),
                _reduction(
                    f"{part}reduce_sum",
                    "_spread(d, x, axis, keepdims)",
                    "tf.reduce_sum(d, axis=axis, keepdims=keepdims)",
                ),
                _reduction(
                    f"{part}reduce_mean",
                    f"_spread(d, x, axis, keepdims) * ({_SHARE})",
                    "tf.reduce_mean(d, axis=axis, keepdims=keepdims)",
                ),
                _reduction(
                    f"{part}reduce_logsumexp",
                    f"_spread(d, x, axis, keepdims) * {_PARTS}",
                    f"tf.reduce_sum(d * {_PARTS}, axis=axis, keepdims=keepdims)",
                ),
                _reduction(
                    f"{part}reduce_prod",
                    "_prod_bar(d, x, axis, keepdims)",
                    f"tf.reduce_sum(d * {_OTHERS}, axis=axis, keepdims=keepdims)",
                ),
                *(
                    _reduction(
                        f"{part}{name}",
                        "_spread(d, x, axis, keepdims) * _ties(x, y, axis, keepdims)",
                        "tf.reduce_sum(d * _ties(x, y, axis, keepdims), axis=axis, keepdims=keepdims)",
                    )
                    for name in ("reduce_max", "reduce_min")
                ),
            )
        ),
        *(
            row
            for part in ("", "linalg.")
            for row in (
                _row(
                    f"{part}matmul.whole",
                    "a b",
                    {
                        "a": "_unbroadcast(tf.matmul(d, b, transpose_b=True), a)",
                        "b": "_unbroadcast(tf.matmul(a, d, transpose_a=True), b)",
                    },
                    {"a": "tf.matmul(d, b)", "b": "tf.matmul(a, d)"},
                ),
                _row(
                    f"{part}matmul",
                    "a b transpose_a transpose_b",
                    {
                        "a": "_unbroadcast(_matmul_left_bar(d, b, transpose_a, transpose_b), a)",
                        "b": "_unbroadcast(_matmul_right_bar(d, a, transpose_a, transpose_b), b)",
                    },
                    {
                        "a": "tf.matmul(d, b, transpose_a=transpose_a, transpose_b=transpose_b)",
                        "b": "tf.matmul(a, d, transpose_a=transpose_a, transpose_b=transpose_b)",
                    },
                    transpose_a="False",
                    transpose_b="False",
                ),
            )
        ),
        _row(
            "concat",
            "x axis",
            "tf.split(d, [tf.shape(each)[axis] for each in x], axis)",
            "tf.concat(d, axis)",
        ),
        _row("stack", "x axis", "tf.unstack(d, axis=axis)", "tf.stack(d, axis)", axis="0"),
        _row("unstack", "x num axis", "tf.stack(d, axis)", "tf.unstack(d, axis=axis)", axis="0"),
        _row("split", "x parts axis", "tf.concat(d, axis)", "tf.split(d, parts, axis)", axis="0"),
        _row("reshape", "x shape", "tf.reshape(d, tf.shape(x))", "tf.reshape(d, shape)"),
        _row("transpose.whole", "x", "tf.transpose(d)", "tf.transpose(d)"),
        _row("transpose", "x perm", "tf.transpose(d, tf.argsort(perm))", "tf.transpose(d, perm)"),
        _row("squeeze", "x axis", "tf.reshape(d, tf.shape(x))", "tf.squeeze(d, axis)", axis="None"),
        _row("expand_dims", "x axis", "tf.reshape(d, tf.shape(x))", "tf.expand_dims(d, axis)"),
        _row("broadcast_to", "x shape", "_unbroadcast(d, x)", "tf.broadcast_to(d, shape)"),
        _row(
            "gather",
            "x indices",
            "tf.tensor_scatter_nd_add(tf.zeros_like(x), tf.expand_dims(indices, -1), d)",
            "tf.gather(d, indices)",
        ),
    )
)

CONSTANTS = frozenset(
    f"tensorflow.{each}"
    for each in [
        "shape",
        "size",
        "rank",
        "zeros",
        "ones",
        "zeros_like",
        "ones_like",
        "one_hot",
        "range",
        "eye",
        "fill",
        "argmax",
        "argmin",
        "argsort",
        "sign",
        "math.sign",
        "math.argmax",
        "stop_gradient",
        "equal",
        "greater",
        "less",
        "floor",
        "math.floor",
        "round",
        "print",
        "constant",
    ]
)

HELPERS: Mapping[str, str] = {
    "_zeros": '''
def _zeros(x):
    """Zeros in the structure of x."""
    if isinstance(x, dict):
        return dict(zip(x, map(_zeros, x.values())))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_zeros, x))
    if x is None or isinstance(x, str) or callable(x):
        return None
    return tf.zeros_like(x) if hasattr(x, "shape") else 0.0
''',
    "_cells": '''
def _cells(x):
    """Zeros in the structure of x that can be added to in place: a list for a tuple."""
    if isinstance(x, dict):
        return dict(zip(x, map(_cells, x.values())))
    if isinstance(x, (list, tuple)):
        return list(map(_cells, x))
    if x is None or isinstance(x, str) or callable(x):
        return None
    return tf.zeros_like(x) if hasattr(x, "shape") else 0.0
''',
    "_add_at": '''
def _add_at(bar, index, term):
    """bar with term added to what index picks out of it."""
    if tf.is_tensor(bar):
        places = tf.reshape(tf.range(tf.size(bar)), tf.shape(bar))[index]
        terms = tf.reshape(term + tf.zeros_like(places, dtype=bar.dtype), [-1])
        flat = tf.tensor_scatter_nd_add(tf.reshape(bar, [-1]), tf.reshape(places, [-1, 1]), terms)
        return tf.reshape(flat, tf.shape(bar))
    bar[index] = map(_add, bar[index], term) if isinstance(index, slice) else _add(bar[index], term)
    return bar
''',
    "_unbroadcast": '''
def _unbroadcast(bar, x):
    """bar summed over the axes along which x was broadcast."""
    bar = bar + tf.zeros_like(x)
    _, axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(bar), s1=tf.shape(x))
    return tf.reshape(tf.reduce_sum(bar, axes), tf.shape(x))
''',
    "_spread": '''
def _spread(bar, x, axis, keepdims):
    """The adjoint of a reduction, over what was reduced."""
    if axis is not None and not keepdims:
        rank = len(x.shape)
        for each in sorted(i % rank for i in ([axis] if isinstance(axis, int) else axis)):
            bar = tf.expand_dims(bar, each)
    return bar + tf.zeros_like(x)
''',
    "_ties": '''
def _ties(x, y, axis, keepdims):
    """The share of each element of x in its extreme y."""
    found = tf.cast(tf.equal(x, _spread(y, x, axis, keepdims)), x.dtype)
    return found / tf.reduce_sum(found, axis=axis, keepdims=True)
''',
    "_prod_bar": '''
def _prod_bar(bar, x, axis, keepdims):
    """The adjoint of x in tf.reduce_prod(x)."""
    if isinstance(axis, int):
        before = tf.math.cumprod(x, axis, exclusive=True)
        others = before * tf.math.cumprod(x, axis, exclusive=True, reverse=True)
    else:
        flat = tf.reshape(x, [-1])
        before = tf.math.cumprod(flat, exclusive=True)
        others = tf.reshape(before * tf.math.cumprod(flat, exclusive=True, reverse=True), tf.shape(x))
    return _spread(bar, x, axis, keepdims) * others
''',
    "_matmul_left_bar": '''
def _matmul_left_bar(bar, b, transpose_a, transpose_b):
    """The adjoint of a in tf.matmul(a, b)."""
    if transpose_a:
        return tf.matmul(b, bar, transpose_a=transpose_b, transpose_b=True)
    return tf.matmul(bar, b, transpose_b=not transpose_b)
''',
    "_matmul_right_bar": '''
def _matmul_right_bar(bar, a, transpose_a, transpose_b):
    """The adjoint of b in tf.matmul(a, b)."""
    if transpose_b:
        return tf.matmul(bar, a, transpose_a=True, transpose_b=transpose_a)
    return tf.matmul(a, bar, transpose_a=not transpose_a)
''',
}
