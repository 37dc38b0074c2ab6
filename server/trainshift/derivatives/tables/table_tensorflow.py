"""The rows of TensorFlow.  Names that end in `.whole` are as in NumPy's table."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.table import TENSOR_POWER, Row, shared, slope

_LONG = ", axis=axis, keepdims=keepdims"
_AXES = {"axis": "None", "keepdims": "False"}


def _row(
    names: str,
    params: str,
    reverse: Mapping[str, str],
    forward: Mapping[str, str],
    /,
    **defaults: str,
) -> list[Row]:
    """The row of an operation, which may have several names."""
    return [
        Row(f"tensorflow.{name}", tuple(params.split()), reverse, forward, False, defaults)
        for name in names.split()
    ]


def _slopes(
    names: str, params: str, defaults: Mapping[str, str] | None = None, /, **templates: str
) -> list[Row]:
    """The row of an elementwise operation."""
    return [slope(f"tensorflow.{name}", params, templates, defaults) for name in names.split()]


def _one(names: str, reverse: str, forward: str, params: str = "x", /, **defaults: str) -> list[Row]:
    """The row of an operation on a single tensor."""
    return _row(names, params, {"x": reverse}, {"x": forward}, **defaults)


def _along(names: str, reverse: str, forward: str) -> list[Row]:
    """The row of a reduction along an axis."""
    return _one(names, reverse, forward, "x axis keepdims", **_AXES)


def _whole(names: str, reverse: str, forward: str) -> list[Row]:
    """The row of calls with a tensor alone."""
    return _one(" ".join(f"{name}.whole" for name in names.split()), reverse, forward)


def _reduction(name: str) -> str:
    return f"reduce_{name} math.reduce_{name}"


# TensorFlow also exports most of its mathematics under `tf`.
_SHORT = [
    "exp", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh",
]  # fmt: skip
_SHARED = shared("tensorflow.math", {})
_ELEMENTWISE = (
    *_SHARED,
    *(
        slope(f"tensorflow.{each}", "x", row.reverse)
        for each in _SHORT
        for row in _SHARED
        if row.name == f"tensorflow.math.{each}"
    ),
    *_slopes("abs math.abs", "x", x="d * tf.sign(x)"),
    *_slopes("square math.square", "x", x="d * 2 * x"),
    *_slopes("negative math.negative", "x", x="-d"),
    *_slopes("identity", "x", x="d"),
    *_slopes("math.reciprocal", "x", x="-d * y * y"),
    *_slopes("math.rsqrt", "x", x="-d * y * y * y / 2"),
    *_slopes("math.erf", "x", x="d * tf.exp(-x * x) * 1.1283791670955126"),
    *_slopes("sigmoid math.sigmoid nn.sigmoid", "x", x="d * y * (1 - y)"),
    *_slopes("math.log_sigmoid", "x", x="d * tf.sigmoid(-x)"),
    *_slopes("nn.tanh", "x", x="d * (1 - y * y)"),
    *_slopes("nn.relu", "x", x="d * tf.cast(x > 0, x.dtype)"),
    *_slopes("nn.relu6", "x", x="d * tf.cast((x > 0) & (x < 6), x.dtype)"),
    *_slopes(
        "nn.leaky_relu",
        "x alpha",
        {"alpha": "0.2"},
        x="d * tf.where(x > 0, tf.ones_like(x), -tf.nn.leaky_relu(-tf.ones_like(x), alpha))",
    ),
    *_slopes("nn.elu", "x", x="d * tf.where(x > 0, tf.ones_like(x), y + 1)"),
    *_slopes("nn.silu nn.swish", "x", x="d * tf.sigmoid(x) * (1 + x - y)"),
    *_slopes(
        "math.divide_no_nan", "a b", a="tf.math.divide_no_nan(d, b)", b="-tf.math.divide_no_nan(d * y, b)"
    ),
    *_slopes("nn.softplus math.softplus", "x", x="d * tf.sigmoid(x)"),
    *_slopes("add math.add", "a b", a="d", b="d"),
    *_slopes("subtract math.subtract", "a b", a="d", b="-d"),
    *_slopes("multiply math.multiply", "a b", a="d * b", b="d * a"),
    *_slopes("divide math.divide truediv math.truediv", "a b", a="d / b", b="-d * y / b"),
    *_slopes("pow math.pow", "a b", **TENSOR_POWER.reverse),
    *_slopes("atan2 math.atan2", "a b", a="d * b / (a * a + b * b)", b="-d * a / (a * a + b * b)"),
    *_slopes("math.floormod", "a b", a="d", b="-d * tf.floor(a / b)"),
    *_slopes("math.squared_difference", "a b", a="d * 2 * (a - b)", b="d * 2 * (b - a)"),
    *_slopes(
        "maximum math.maximum", "a b", a="d * tf.cast(a >= b, y.dtype)", b="d * tf.cast(a < b, y.dtype)"
    ),
    *_slopes(
        "minimum math.minimum", "a b", a="d * tf.cast(a <= b, y.dtype)", b="d * tf.cast(a > b, y.dtype)"
    ),
    *_slopes(
        "clip_by_value",
        "x low high",
        x="d * tf.cast((x >= low) & (x <= high), y.dtype)",
        low="d * tf.cast(x < low, y.dtype)",
        high="d * tf.cast(x > high, y.dtype)",
    ),
    *_slopes(
        "where",
        "test a b",
        a="tf.where(test, d, tf.zeros_like(y))",
        b="tf.where(test, tf.zeros_like(y), d)",
    ),
    *_slopes(
        "nn.sigmoid_cross_entropy_with_logits",
        "labels logits",
        labels="-d * logits",
        logits="d * (tf.sigmoid(logits) - labels)",
    ),
)

_AROUND = "(x - tf.reduce_mean(x, axis=axis, keepdims=True))"
_SHARE = "tf.cast(tf.size(y) / tf.size(x), y.dtype)"
_REDUCTIONS = (
    *_along(
        "math.reduce_variance",
        f"_spread(d, x, axis, keepdims) * 2 * {_AROUND} * {_SHARE}",
        f"tf.reduce_mean(2 * {_AROUND} * d{_LONG})",
    ),
    *_along(
        "math.reduce_std",
        f"_spread(d / y, x, axis, keepdims) * {_AROUND} * {_SHARE}",
        f"tf.reduce_mean({_AROUND} * d{_LONG}) / y",
    ),
    *_whole(_reduction("sum"), "tf.zeros_like(x) + d", "tf.reduce_sum(d)"),
    *_along(_reduction("sum"), "_spread(d, x, axis, keepdims)", f"tf.reduce_sum(d{_LONG})"),
    *_whole(_reduction("mean"), "tf.zeros_like(x) + d / tf.cast(tf.size(x), x.dtype)", "tf.reduce_mean(d)"),
    *_along(
        _reduction("mean"),
        f"_spread(d, x, axis, keepdims) * {_SHARE}",
        f"tf.reduce_mean(d{_LONG})",
    ),
    *(
        row
        for name in ("max", "min")
        for row in (
            *_whole(_reduction(name), "d * _shares(x, y)", "tf.reduce_sum(d * _shares(x, y))"),
            *_along(
                _reduction(name),
                "_spread(d, x, axis, keepdims) * _shares(x, y, axis, keepdims)",
                f"tf.reduce_sum(d * _shares(x, y, axis, keepdims){_LONG})",
            ),
        )
    ),
    *_whole(_reduction("prod"), "d * _others(x)", "tf.reduce_sum(d * _others(x))"),
    *_along(
        _reduction("prod"),
        "_spread(d, x, axis, keepdims) * _others(x, axis)",
        f"tf.reduce_sum(d * _others(x, axis){_LONG})",
    ),
    *_whole(_reduction("logsumexp"), "d * tf.exp(x - y)", "tf.reduce_sum(d * tf.exp(x - y))"),
    *_along(
        _reduction("logsumexp"),
        "_spread(d, x, axis, keepdims) * tf.exp(x - _spread(y, x, axis, keepdims))",
        f"tf.reduce_sum(d * tf.exp(x - _spread(y, x, axis, keepdims)){_LONG})",
    ),
    *_one("reverse", "tf.reverse(d, axis)", "tf.reverse(d, axis)", "x axis"),
    *_one(
        "cumsum math.cumsum",
        "tf.cumsum(d, axis=axis, exclusive=exclusive, reverse=not reverse)",
        "tf.cumsum(d, axis=axis, exclusive=exclusive, reverse=reverse)",
        "x axis exclusive reverse",
        axis="0",
        exclusive="False",
        reverse="False",
    ),
    *_row(
        "nn.bias_add",
        "x bias",
        {"x": "d", "bias": "_unbroadcast(d, bias)"},
        {"x": "d", "bias": "d + tf.zeros_like(x)"},
    ),
    *_one("nn.l2_loss", "d * x", "tf.reduce_sum(x * d)"),
    *_whole("norm linalg.norm", "d * x / y", "tf.reduce_sum(x * d) / y"),
    *_one(
        "norm linalg.norm",
        "_spread(d / y, x, axis, keepdims) * x",
        f"tf.reduce_sum(x * d{_LONG}) / y",
        "x ord axis keepdims",
        ord="'euclidean'",
        **_AXES,
    ),
    *_one(
        "nn.softmax math.softmax",
        "y * (d - tf.reduce_sum(d * y, axis=axis, keepdims=True))",
        "y * (d - tf.reduce_sum(d * y, axis=axis, keepdims=True))",
        "x axis",
        axis="-1",
    ),
    *_one(
        "nn.log_softmax math.log_softmax",
        "d - tf.exp(y) * tf.reduce_sum(d, axis=axis, keepdims=True)",
        "d - tf.reduce_sum(tf.exp(y) * d, axis=axis, keepdims=True)",
        "x axis",
        axis="-1",
    ),
)

_BESIDE = "tf.nn.softmax(logits, axis=axis) - labels"
_PRODUCTS = (
    *_row(
        "matmul linalg.matmul",
        "a b transpose_a transpose_b",
        {
            "a": "_matmul_left_bar(d, a, b, transpose_a, transpose_b)",
            "b": "_matmul_right_bar(d, a, b, transpose_a, transpose_b)",
        },
        {
            "a": "tf.matmul(d, b, transpose_a=transpose_a, transpose_b=transpose_b)",
            "b": "tf.matmul(a, d, transpose_a=transpose_a, transpose_b=transpose_b)",
        },
        transpose_a="False",
        transpose_b="False",
    ),
    *_row(
        "linalg.matvec",
        "a b transpose_a",
        {
            "a": "_matvec_bar(d, a, b, transpose_a)",
            "b": "_unbroadcast(tf.linalg.matvec(a, d, transpose_a=not transpose_a), b)",
        },
        {
            "a": "tf.linalg.matvec(d, b, transpose_a=transpose_a)",
            "b": "tf.linalg.matvec(a, d, transpose_a=transpose_a)",
        },
        transpose_a="False",
    ),
    *_row(
        "linalg.matrix_transpose",
        "a",
        {"a": "tf.linalg.matrix_transpose(d)"},
        {"a": "tf.linalg.matrix_transpose(d)"},
    ),
    *_row(
        "tensordot",
        "a b axes",
        {"a": "_tensordot_left_bar(d, a, b, axes)", "b": "_tensordot_right_bar(d, a, b, axes)"},
        {"a": "tf.tensordot(d, b, axes)", "b": "tf.tensordot(a, d, axes)"},
    ),
    *_one("linalg.inv", "-tf.matmul(y, tf.matmul(d, y, transpose_b=True), transpose_a=True)", "-y @ d @ y"),
    *_row(
        "linalg.solve",
        "a b adjoint",
        {"a": "_solve_bar(d, a, y, adjoint)", "b": "tf.linalg.solve(a, d, adjoint=not adjoint)"},
        {
            "a": "-tf.linalg.solve(a, tf.matmul(d, y, transpose_a=adjoint), adjoint=adjoint)",
            "b": "tf.linalg.solve(a, d, adjoint=adjoint)",
        },
        adjoint="False",
    ),
    *_one(
        "linalg.det",
        "(d * y)[..., None, None] * tf.linalg.matrix_transpose(tf.linalg.inv(x))",
        "y * tf.linalg.trace(tf.linalg.inv(x) @ d)",
    ),
    *_one("linalg.trace", "_diagonal((d * tf.ones_like(y))[..., None], x)", "tf.linalg.trace(d)"),
    *_one("linalg.diag_part", "_diagonal(d, x)", "tf.linalg.diag_part(d)"),
    *_one("linalg.diag", "tf.linalg.diag_part(d)", "tf.linalg.diag(d)"),
    *_row(
        "nn.softmax_cross_entropy_with_logits",
        "labels logits axis",
        {
            "labels": "-tf.expand_dims(d, axis) * tf.nn.log_softmax(logits, axis=axis)",
            "logits": f"tf.expand_dims(d, axis) * ({_BESIDE})",
        },
        {
            "labels": "-tf.reduce_sum(d * tf.nn.log_softmax(logits, axis=axis), axis=axis)",
            "logits": f"tf.reduce_sum(d * ({_BESIDE}), axis=axis)",
        },
        axis="-1",
    ),
    *_row(
        "nn.sparse_softmax_cross_entropy_with_logits",
        "labels logits",
        {"logits": "tf.expand_dims(d, -1) * (tf.nn.softmax(logits) - _one_hot(labels, logits))"},
        {"logits": "tf.reduce_sum(d * (tf.nn.softmax(logits) - _one_hot(labels, logits)), axis=-1)"},
    ),
)

_BACK, _THERE = "tf.reshape(d, tf.shape(x))", "tf.reshape(d, tf.shape(y))"
_SHAPES = (
    *_one("reshape", _BACK, _THERE, "x shape"),
    *_one("squeeze", _BACK, _THERE, "x axis"),
    *_one("expand_dims", _BACK, _THERE, "x axis"),
    *_whole("transpose", "tf.transpose(d)", "tf.transpose(d)"),
    *_one(
        "transpose",
        "tf.transpose(d, tf.math.invert_permutation(perm))",
        "tf.transpose(d, perm)",
        "x perm",
    ),
    *_one("unstack", "tf.stack(d, axis=axis)", "tf.unstack(d, axis=axis)", "x num axis", axis="0"),
    *_one("split", "tf.concat(d, axis)", "tf.split(d, parts, axis)", "x parts axis", axis="0"),
    *_one("tile", "_tile_bar(d, x)", "tf.tile(d, reps)", "x reps"),
    *_one(
        "pad", "tf.slice(d, tf.convert_to_tensor(width)[:, 0], tf.shape(x))", "tf.pad(d, width)", "x width"
    ),
    *_one(
        "slice",
        "tf.pad(d, tf.stack([begin, tf.shape(x) - begin - tf.shape(y)], axis=1))",
        "tf.slice(d, begin, size)",
        "x begin size",
    ),
    *_one("add_n", "[d for _ in x]", "tf.add_n(d)"),
    *_one("broadcast_to", "_unbroadcast(d, x)", "tf.broadcast_to(d, tf.shape(y))", "x shape"),
    *_one("concat", "_parts(d, x, axis)", "tf.concat(d, axis)", "x axis"),
    *_one(
        "stack",
        "_like(tf.unstack(d, num=len(x), axis=axis), x)",
        "tf.stack(d, axis=axis)",
        "x axis",
        axis="0",
    ),
    *_one(
        "gather",
        "_gather_bar(d, x, indices, axis)",
        "tf.gather(d, indices, axis=axis)",
        "x indices axis",
        axis="0",
    ),
    *_one(
        "cast",
        "tf.cast(d, x.dtype) if y.dtype.is_floating else tf.zeros_like(x)",
        "tf.cast(d, y.dtype) if y.dtype.is_floating else tf.zeros_like(y)",
        "x dtype",
    ),
    *_one(
        "convert_to_tensor constant",
        "_like(tf.unstack(d, num=len(x)), x) if isinstance(x, (list, tuple)) else d",
        "tf.convert_to_tensor(d, dtype=y.dtype)",
        "x dtype",
    ),
    *_row("range.whole", "test", {}, {}),
    *_one("fill", "tf.reduce_sum(d)", "tf.fill(tf.shape(y), d)", "shape x"),
)

ROWS: tuple[Row, ...] = (*_ELEMENTWISE, *_REDUCTIONS, *_PRODUCTS, *_SHAPES)

CONSTANTS = frozenset(
    f"tensorflow.{each}"
    for each in [
        "shape", "size", "rank", "argmax", "argmin", "argsort", "math.argmax", "math.argmin", "sign",
        "math.sign", "floor", "math.floor", "math.ceil", "round", "math.round", "zeros", "ones",
        "zeros_like", "ones_like", "eye", "one_hot", "equal", "not_equal", "math.equal", "greater",
        "math.greater", "greater_equal", "less", "math.less", "less_equal", "reduce_any", "reduce_all",
        "math.is_nan", "math.is_finite", "math.is_inf", "math.logical_and", "math.logical_or",
        "math.logical_not", "logical_and", "logical_or", "logical_not", "stop_gradient", "print",
        "sequence_mask", "TensorShape", "executing_eagerly", "float32", "float64", "int32", "int64",
    ]
)  # fmt: skip
