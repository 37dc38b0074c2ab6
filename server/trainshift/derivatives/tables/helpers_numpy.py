"""Helpers of linear algebra, reductions and indexing, of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping

HELPERS: Mapping[str, str] = {
    "_spread": '''
def _spread(bar, x, axis, keepdims):
    """The adjoint of a reduction, over what was reduced."""
    if axis is not None and not keepdims:
        bar = np.expand_dims(bar, axis)
    return np.broadcast_to(bar, np.shape(x)) + 0.0
''',
    "_ties": '''
def _ties(x, y, axis, keepdims):
    """The share of each element of x in its extreme y."""
    if axis is not None and not keepdims:
        y = np.expand_dims(y, axis)
    found = np.equal(x, y)
    return found / np.sum(found, axis=axis, keepdims=True)
''',
    "_prod_bar": '''
def _prod_bar(bar, x, axis, keepdims):
    """The adjoint of x in np.prod(x), zeros in x or not."""
    others = np.ones(np.shape(x))
    for i in np.ndindex(np.shape(x)):
        rest = np.array(x, dtype=float)
        rest[i] = 1.0
        others[i] = np.broadcast_to(np.prod(rest, axis=axis, keepdims=True), np.shape(x))[i]
    return _spread(bar, x, axis, keepdims) * others
''',
    "_cumsum_bar": '''
def _cumsum_bar(bar, x, axis):
    """The adjoint of x in np.cumsum(x, axis)."""
    back = np.flip(np.cumsum(np.flip(bar, axis), axis=axis), axis)
    return np.reshape(back, np.shape(x))
''',
    "_matmul_left_bar": '''
def _matmul_left_bar(bar, a, b):
    """The adjoint of a in a @ b."""
    if np.ndim(b) == 1:
        return np.multiply.outer(bar, b) if np.ndim(a) > 1 else bar * b
    if np.ndim(a) == 1:
        found = np.expand_dims(bar, -2) @ np.swapaxes(b, -1, -2)
        return np.sum(found, axis=tuple(range(np.ndim(found) - 1)))
    return _unbroadcast(bar @ np.swapaxes(b, -1, -2), a)
''',
    "_matmul_right_bar": '''
def _matmul_right_bar(bar, a, b):
    """The adjoint of b in a @ b."""
    if np.ndim(a) == 1:
        return _unbroadcast(np.expand_dims(a, -1) * np.expand_dims(bar, -2), b) if np.ndim(b) > 1 else bar * a
    if np.ndim(b) == 1:
        found = np.expand_dims(bar, -1) * a
        return np.sum(found, axis=tuple(range(np.ndim(found) - 1)))
    return _unbroadcast(np.swapaxes(a, -1, -2) @ bar, b)
''',
    "_dot_left_bar": '''
def _dot_left_bar(bar, a, b):
    """The adjoint of a in np.dot(a, b)."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _unbroadcast(bar * b, a)
    return _matmul_left_bar(bar, a, b)
''',
    "_dot_right_bar": '''
def _dot_right_bar(bar, a, b):
    """The adjoint of b in np.dot(a, b)."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _unbroadcast(bar * a, b)
    return _matmul_right_bar(bar, a, b)
''',
    "_tensordot_bars": '''
def _tensordot_bars(bar, a, b, axes):
    """The adjoints of a and b in np.tensordot(a, b, axes)."""
    if isinstance(axes, int):
        axes = list(range(np.ndim(a) - axes, np.ndim(a))), list(range(axes))
    left, right = ([i % np.ndim(x) for i in np.ravel(each)] for x, each in ((a, axes[0]), (b, axes[1])))
    rest_a = [i for i in range(np.ndim(a)) if i not in left]
    rest_b = [i for i in range(np.ndim(b)) if i not in right]
    n, m, k = len(rest_a), len(rest_b), len(left)
    over = [rest_a.index(i) if i in rest_a else n + right.index(right[left.index(i)]) for i in range(n + k)]
    to_b = list(range(n, n + m))
    a_bar = np.tensordot(bar, np.transpose(b, rest_b + right), axes=(to_b, list(range(m))))
    b_bar = np.tensordot(np.transpose(a, rest_a + left), bar, axes=(list(range(n)), list(range(n))))
    places = [k + rest_b.index(i) if i in rest_b else right.index(i) for i in range(k + m)]
    over = [rest_a.index(i) if i in rest_a else n + left.index(i) for i in range(n + k)]
    return np.transpose(a_bar, over), np.transpose(b_bar, places)
''',
    "_transposed_back": '''
def _transposed_back(bar, axes):
    """The adjoint of x in np.transpose(x, axes)."""
    return np.transpose(bar, None if axes is None else np.argsort(axes))
''',
    "_pieces": '''
def _pieces(bar, parts, axis):
    """The adjoints of what was concatenated along an axis."""
    return np.split(bar, np.cumsum([np.shape(each)[axis] for each in parts])[:-1], axis)
''',
    "_tile_bar": '''
def _tile_bar(bar, x, reps):
    """The adjoint of x in np.tile(x, reps)."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    shape = (1,) * (np.ndim(bar) - np.ndim(x)) + np.shape(x)
    reps = (1,) * (np.ndim(bar) - len(reps)) + reps
    both = [n for pair in zip(reps, shape) for n in pair]
    return np.reshape(np.sum(np.reshape(bar, both), axis=tuple(range(0, len(both), 2))), np.shape(x))
''',
    "_repeat_bar": '''
def _repeat_bar(bar, x, times, axis):
    """The adjoint of x in np.repeat(x, times, axis)."""
    places = np.repeat(np.arange(np.size(x) if axis is None else np.shape(x)[axis]), times)
    found = np.zeros(np.size(x) if axis is None else np.shape(np.moveaxis(x, axis, 0)))
    np.add.at(found, places, bar if axis is None else np.moveaxis(bar, axis, 0))
    return np.reshape(found, np.shape(x)) if axis is None else np.moveaxis(found, 0, axis)
''',
    "_pad_bar": '''
def _pad_bar(bar, x, width):
    """The adjoint of x in np.pad(x, width)."""
    before = np.broadcast_to(width, (np.ndim(x), 2))[:, 0]
    return bar[tuple(slice(i, i + n) for i, n in zip(before, np.shape(x)))]
''',
    "_solve_bar": '''
def _solve_bar(bar, a, y):
    """The adjoint of a in y = np.linalg.solve(a, b)."""
    found = np.linalg.solve(np.swapaxes(a, -1, -2), bar)
    if np.ndim(y) == np.ndim(a):
        return -found @ np.swapaxes(y, -1, -2)
    return -np.expand_dims(found, -1) * np.expand_dims(y, -2)
''',
    "_cholesky_bar": '''
def _cholesky_bar(bar, y):
    """The adjoint of x in y = np.linalg.cholesky(x), which reads the lower half."""
    inner = np.tril(y.T @ np.tril(bar))
    inner = inner - np.diag(np.diag(inner)) / 2
    half = np.linalg.solve(y.T, np.linalg.solve(y.T, inner.T).T)
    return (half + half.T) / 2
''',
    "_cholesky_dot": '''
def _cholesky_dot(dot, y):
    """The tangent of y = np.linalg.cholesky(x)."""
    inner = np.tril(np.linalg.solve(y, np.linalg.solve(y, (dot + dot.T) / 2).T))
    return y @ (inner - np.diag(np.diag(inner)) / 2)
''',
}
