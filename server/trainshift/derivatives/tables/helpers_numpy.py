"""Helpers of reductions, shapes and linear algebra, of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping

HELPERS: Mapping[str, str] = {
    "_spread": '''
def _spread(bar, x, axis=None, keepdims=False):
    """bar, which belongs to x reduced along axis, in the shape of x."""
    if axis is not None and not keepdims:
        bar = np.expand_dims(bar, axis)
    return np.broadcast_to(bar, np.shape(x)) + 0.0
''',
    "_others": '''
def _others(x, axis=None):
    """For each element the product of all others along axis."""
    if axis is None:
        return np.reshape(_others(np.ravel(x), 0), np.shape(x))
    x = np.moveaxis(np.asarray(x, dtype=float), axis, 0)
    one = np.ones_like(x[:1])
    ahead = np.cumprod(np.concatenate([one, x[:-1]]), axis=0)
    behind = np.cumprod(np.concatenate([one, x[:0:-1]]), axis=0)[::-1]
    return np.moveaxis(ahead * behind, 0, axis)
''',
    "_others_dot": '''
def _others_dot(dot, x, axis=None):
    """The tangent of _others(x, axis) along dot."""
    if axis is None:
        return np.reshape(_others_dot(np.ravel(dot), np.ravel(x), 0), np.shape(x))
    dot, x = np.moveaxis(dot, axis, 0), np.moveaxis(x, axis, 0)
    found = np.zeros(np.shape(x))
    for k in range(len(x)):
        rest = np.arange(len(x)) != k
        found[rest] += dot[k] * _others(x[rest], 0)
    return np.moveaxis(found, 0, axis)
''',
    "_shares": '''
def _shares(x, y, axis=None, keepdims=False):
    """For each element of x its share in y, the largest or smallest: ties share equally."""
    found = x == _spread(y, x, axis, keepdims)
    return found / np.sum(found, axis=axis, keepdims=True)
''',
    "_tile_bar": '''
def _tile_bar(bar, x):
    """The adjoint of x in np.tile(x, reps)."""
    shape = (1,) * (np.ndim(bar) - np.ndim(x)) + np.shape(x)
    pairs = [each for n, whole in zip(shape, np.shape(bar)) for each in (whole // n, n)]
    return np.reshape(np.sum(np.reshape(bar, pairs), axis=tuple(range(0, len(pairs), 2))), np.shape(x))
''',
    "_repeat_bar": '''
def _repeat_bar(bar, x, repeats, axis=None):
    """The adjoint of x in np.repeat(x, repeats, axis=axis)."""
    if axis is None:
        return np.reshape(_repeat_bar(bar, np.ravel(x), repeats, 0), np.shape(x))
    found = np.zeros(np.shape(x))
    places = np.repeat(np.arange(np.shape(x)[axis]), repeats)
    np.add.at(np.moveaxis(found, axis, 0), places, np.moveaxis(bar, axis, 0))
    return found
''',
    "_pad_bar": '''
def _pad_bar(bar, x, width):
    """The adjoint of x in np.pad(x, width)."""
    starts = np.broadcast_to(width, (np.ndim(x), 2))[:, 0]
    return bar[tuple(slice(i, i + n) for i, n in zip(starts, np.shape(x)))] + 0.0
''',
    "_padded_bar": '''
def _padded_bar(bar, x, width, mode):
    """The adjoint of x in np.pad(x, width, mode)."""
    found = np.zeros(np.size(x))
    np.add.at(found, np.pad(np.reshape(np.arange(np.size(x)), np.shape(x)), width, mode), bar)
    return np.reshape(found, np.shape(x))
''',
    "_diag_bar": '''
def _diag_bar(bar, x, k=0):
    """The adjoint of x in np.diag(x, k)."""
    if np.ndim(x) == 1:
        return np.diag(bar, k) + 0.0
    found = np.zeros(np.shape(x))
    rows = np.arange(np.shape(bar)[-1]) + max(-k, 0)
    found[rows, rows + k] = np.moveaxis(bar, -1, 0)
    return found
''',
    "_diff_bar": '''
def _diff_bar(bar, axis=-1):
    """The adjoint of x in np.diff(x, axis=axis)."""
    return -np.diff(bar, axis=axis, prepend=0.0, append=0.0)
''',
    "_parts": '''
def _parts(bar, arrays, axis=0):
    """bar cut along axis into pieces as arrays has them."""
    ends = np.cumsum([np.size(each) * np.shape(bar)[axis] // np.size(bar) for each in arrays])
    pieces = zip(np.split(bar, ends[:-1], axis=axis), arrays)
    return _like([np.reshape(piece, np.shape(each)) + 0.0 for piece, each in pieces], arrays)
''',
    "_matmul_left_bar": '''
def _matmul_left_bar(bar, a, b):
    """The adjoint of a in a @ b."""
    if np.ndim(b) == 1:
        found = np.expand_dims(bar, -1) * b
    else:
        found = (np.expand_dims(bar, -2) if np.ndim(a) == 1 else bar) @ np.swapaxes(b, -1, -2)
    return np.reshape(_unbroadcast(found, a if np.ndim(a) > 1 else np.zeros((1,) + np.shape(a))), np.shape(a))
''',
    "_matmul_right_bar": '''
def _matmul_right_bar(bar, a, b):
    """The adjoint of b in a @ b."""
    if np.ndim(b) == 1:
        found = np.expand_dims(bar, -1) * a
        return np.sum(found, axis=tuple(range(np.ndim(found) - 1)))
    rows = np.expand_dims(bar, -2) if np.ndim(a) == 1 else bar
    return _unbroadcast(np.swapaxes(np.atleast_2d(a), -1, -2) @ rows, b)
''',
    "_dot_left_bar": '''
def _dot_left_bar(bar, a, b):
    """The adjoint of a in np.dot(a, b)."""
    if not np.ndim(a) or not np.ndim(b):
        return bar * b if np.ndim(a) else np.sum(bar * b)
    axes = [i for i in range(np.ndim(b)) if i != max(np.ndim(b) - 2, 0)]
    return np.tensordot(bar, b, (list(range(np.ndim(a) - 1, np.ndim(bar))), axes))
''',
    "_dot_right_bar": '''
def _dot_right_bar(bar, a, b):
    """The adjoint of b in np.dot(a, b)."""
    if not np.ndim(a) or not np.ndim(b):
        return bar * a if np.ndim(b) else np.sum(bar * a)
    axes = list(range(np.ndim(a) - 1))
    return np.moveaxis(np.tensordot(a, bar, (axes, axes)), 0, max(np.ndim(b) - 2, 0))
''',
    "_tensordot_axes": '''
def _tensordot_axes(a, b, axes):
    """The axes of a and of b that np.tensordot(a, b, axes) sums over, and those that it keeps."""
    if np.ndim(axes) == 0:
        axes = list(range(np.ndim(a) - axes, np.ndim(a))), list(range(axes))
    one, two = ([i % np.ndim(x) for i in np.atleast_1d(each)] for x, each in zip((a, b), axes))
    kept = [[i for i in range(np.ndim(x)) if i not in each] for x, each in ((a, one), (b, two))]
    return one, two, *kept
''',
    "_tensordot_left_bar": '''
def _tensordot_left_bar(bar, a, b, axes):
    """The adjoint of a in np.tensordot(a, b, axes)."""
    one, two, kept_a, kept_b = _tensordot_axes(a, b, axes)
    found = np.tensordot(bar, b, (list(range(len(kept_a), np.ndim(bar))), kept_b))
    return np.transpose(found, np.argsort(kept_a + [one[i] for i in np.argsort(two)]))
''',
    "_tensordot_right_bar": '''
def _tensordot_right_bar(bar, a, b, axes):
    """The adjoint of b in np.tensordot(a, b, axes)."""
    one, two, kept_a, kept_b = _tensordot_axes(a, b, axes)
    found = np.tensordot(a, bar, (kept_a, list(range(len(kept_a)))))
    return np.transpose(found, np.argsort([two[i] for i in np.argsort(one)] + kept_b))
''',
    "_trapezoid_bar": '''
def _trapezoid_bar(bar, f, a=None, dx=1.0):
    """The adjoint of the vector f in np.trapezoid(f, a, dx)."""
    widths = np.full(len(f) - 1, dx) if a is None else np.diff(a)
    return bar * (np.append(widths, 0.0) + np.append(0.0, widths)) / 2
''',
    "_widths_bar": '''
def _widths_bar(bar, f):
    """The adjoint of a in np.trapezoid(f, a), f being a vector."""
    means = bar * (f[1:] + f[:-1]) / 2
    return np.append(0.0, means) - np.append(means, 0.0)
''',
    "_convolve_bar": '''
def _convolve_bar(bar, a, b):
    """The adjoint of a in np.convolve(a, b), in any mode."""
    lost = np.size(a) + np.size(b) - 1 - np.size(bar)
    return np.correlate(np.pad(bar, (lost // 2, lost - lost // 2)), b, "valid")
''',
    "_columns": '''
def _columns(bar, arrays):
    """bar cut into the columns that np.column_stack made of arrays."""
    ends = np.cumsum([np.size(each) // len(bar) for each in arrays])
    pieces = zip(np.split(bar, ends[:-1], axis=1), arrays)
    return _like([np.reshape(piece, np.shape(each)) + 0.0 for piece, each in pieces], arrays)
''',
    "_solve_bar": '''
def _solve_bar(bar, a, y):
    """The adjoint of a in y = np.linalg.solve(a, b)."""
    bar = np.linalg.solve(np.swapaxes(a, -1, -2), bar)
    if np.ndim(bar) < np.ndim(a):
        return -np.expand_dims(bar, -1) * np.expand_dims(y, -2)
    return -bar @ np.swapaxes(y, -1, -2)
''',
    "_cholesky_bar": '''
def _cholesky_bar(bar, y):
    """The adjoint of a symmetric matrix, y being its Cholesky factor: its lower triangle alone is read."""
    inner = np.tril(y.T @ bar)
    inner -= np.diag(np.diag(inner)) / 2
    found = np.linalg.solve(y.T, np.linalg.solve(y.T, inner).T)
    return np.tril(found + found.T) - np.diag(np.diag(found))
''',
    "_cholesky_dot": '''
def _cholesky_dot(dot, y):
    """The tangent of the Cholesky factor y of a symmetric matrix, whose lower triangle alone is read."""
    low = np.tril(dot)
    whole = low + low.T - np.diag(np.diag(low))
    inner = np.tril(np.linalg.solve(y, np.linalg.solve(y, whole).T))
    return y @ (inner - np.diag(np.diag(inner)) / 2)
''',
}
