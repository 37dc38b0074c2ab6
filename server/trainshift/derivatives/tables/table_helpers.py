"""Rows of the helpers themselves, so that a derivative can be differentiated again (AD40)."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.table import Row


def _row(
    name: str,
    params: str,
    forward: Mapping[str, str],
    reverse: Mapping[str, str] | None = None,
    **defaults: str,
) -> Row:
    backward = forward if reverse is None else reverse
    return Row(name, tuple(params.split()), backward, forward, False, defaults)


def _linear(name: str, params: str, **defaults: str) -> Row:
    """A helper that is linear in its first parameter, and reads the shapes of the others."""
    first, *others = params.split()
    return _row(name, params, {first: f"{name}({', '.join(['d', *others])})"}, {}, **defaults)


def _products(name: str, params: str, factors: str, **defaults: str) -> Row:
    """A helper that is linear in each of its factors."""
    names = params.split()
    own = {each: f"{each}={each}" if each in defaults else each for each in names}
    texts = {
        factor: f"{name}({', '.join('d' if each == factor else own[each] for each in names)})"
        for factor in factors.split()
    }
    return _row(f"{name}{'.tensors' * ('transpose_a' in names)}", params, texts, {}, **defaults)


# Functions whose tangent is the same function of the tangents.
JOINT = frozenset(("_add", "_add_at"))
# Functions that are locally constant.
CONSTANTS = frozenset(("_apart", "_lasting", "_listed", "_zeros", "_cells", "_shares", "_held", "_put_right"))

_TURNED = {"transpose_a": "False", "transpose_b": "False"}
ROWS = (
    _row("_add", "a b", {"a": "d", "b": "d"}),
    _row("_add_at", "bar index term", {"bar": "d", "term": "d[index]"}),
    _row("_like", "bar x", {"bar": "_like(d, x)"}, {"bar": "d"}),
    _row("_copied", "x", {"x": "_copied(d)"}, {"x": "d"}),
    _row(
        "_unbroadcast", "bar x", {"bar": "_unbroadcast(d, x)"}, {"bar": "np.broadcast_to(d, np.shape(bar))"}
    ),
    _linear("_stored", "bar index"),
    _linear("_spread", "bar x axis keepdims", axis="None", keepdims="False"),
    _linear("_folded", "bar x"),
    _linear("_parts", "bar arrays axis"),
    _linear("_diff_bar", "bar axis"),
    _linear("_columns", "bar arrays"),
    _linear("_tile_bar", "bar x"),
    _linear("_repeat_bar", "bar x repeats axis", axis="None"),
    _linear("_diag_bar", "bar x k"),
    _linear("_pad_bar", "bar x width"),
    _linear("_padded_bar", "bar x width mode"),
    _products("_matmul_left_bar", "bar a b", "bar b"),
    _products("_matmul_right_bar", "bar a b", "bar a"),
    _products("_matmul_left_bar", "bar a b transpose_a transpose_b", "bar b", **_TURNED),
    _products("_matmul_right_bar", "bar a b transpose_a transpose_b", "bar a", **_TURNED),
    _linear("_diagonal", "bar x"),
    _row(
        "_matvec_bar",
        "bar a b transpose_a",
        {"bar": "_matvec_bar(d, a, b, transpose_a)", "b": "_matvec_bar(bar, a, d, transpose_a)"},
        {},
        transpose_a="False",
    ),
    _linear("_gather_bar", "bar x indices axis", axis="0"),
    _row("_others", "x axis", {"x": "_others_dot(d, x, axis)"}, {}, axis="None"),
    _products("_convolve_bar", "bar a b", "bar b"),
    _products("_trapezoid_bar", "bar f a dx", "bar a", a="None", dx="1.0"),
    _products("_widths_bar", "bar f", "bar f"),
    _products("_tensordot_left_bar", "bar a b axes", "bar b"),
    _products("_tensordot_right_bar", "bar a b axes", "bar a"),
    _products("_dot_left_bar", "bar a b", "bar b"),
    _products("_dot_right_bar", "bar a b", "bar a"),
    _row(
        "_solve_bar",
        "bar a y",
        {
            "bar": "_solve_bar(d, a, y)",
            "y": "_solve_bar(bar, a, d)",
            "a": "-_solve_bar(np.swapaxes(d, -1, -2) @ np.linalg.solve(np.swapaxes(a, -1, -2), bar), a, y)",
        },
        {},
    ),
    _row(
        "_solve_bar.tensors",
        "bar a y adjoint",
        {
            "bar": "_solve_bar(d, a, y, adjoint)",
            "y": "_solve_bar(bar, a, d, adjoint)",
            "a": "-_solve_bar(tf.matmul(d, tf.linalg.solve(a, bar, adjoint=not adjoint), "
            "transpose_a=not adjoint), a, y, adjoint)",
        },
        {},
        adjoint="False",
    ),
)
