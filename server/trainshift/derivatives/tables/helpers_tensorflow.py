"""Helpers of derivatives of TensorFlow's tensors; they run in graphs too."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.derivatives.tables.helpers_shared import structural

HELPERS: Mapping[str, str] = {
    **structural("tf.zeros_like(x)"),
    "_unbroadcast": '''
def _unbroadcast(bar, x):
    """bar summed over the axes along which x was broadcast."""
    bar = bar + (0.0 if isinstance(x, (int, float)) else tf.zeros_like(x))
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(bar))
    return tf.reshape(tf.reduce_sum(bar, axis=axes), tf.shape(x))
''',
    "_spread": '''
def _spread(bar, x, axis=None, keepdims=False):
    """bar, which belongs to x reduced along axis, in the shape of x."""
    if axis is not None and not keepdims:
        bar = tf.reshape(tf.cast(bar, x.dtype), tf.shape(tf.reduce_sum(x, axis=axis, keepdims=True)))
    return bar + tf.zeros_like(x)
''',
    "_others": '''
def _others(x, axis=None):
    """For each element the product of all others along axis."""
    if axis is None:
        return tf.reshape(_others(tf.reshape(x, [-1]), 0), tf.shape(x))
    ahead = tf.math.cumprod(x, axis=axis, exclusive=True)
    return ahead * tf.math.cumprod(x, axis=axis, exclusive=True, reverse=True)
''',
    "_shares": '''
def _shares(x, y, axis=None, keepdims=False):
    """For each element of x its share in y, the largest or smallest: ties share equally."""
    found = tf.cast(tf.equal(x, _spread(y, x, axis, keepdims)), x.dtype)
    return found / tf.reduce_sum(found, axis=axis, keepdims=True)
''',
    "_matmul_left_bar": '''
def _matmul_left_bar(bar, a, b, transpose_a=False, transpose_b=False):
    """The adjoint of a in tf.matmul(a, b)."""
    if transpose_a:
        found = tf.matmul(b, bar, transpose_a=transpose_b, transpose_b=True)
    else:
        found = tf.matmul(bar, b, transpose_b=not transpose_b)
    return _unbroadcast(found, a)
''',
    "_matmul_right_bar": '''
def _matmul_right_bar(bar, a, b, transpose_a=False, transpose_b=False):
    """The adjoint of b in tf.matmul(a, b)."""
    if transpose_b:
        found = tf.matmul(bar, a, transpose_a=True, transpose_b=transpose_a)
    else:
        found = tf.matmul(a, bar, transpose_a=not transpose_a)
    return _unbroadcast(found, b)
''',
    "_tensordot_axes": '''
def _tensordot_axes(a, b, axes):
    """The axes of a and of b that tf.tensordot(a, b, axes) sums over, and those that it keeps."""
    if isinstance(axes, int):
        axes = list(range(len(a.shape) - axes, len(a.shape))), list(range(axes))
    one, two = ([i % len(x.shape) for i in (each if isinstance(each, (list, tuple)) else [each])]
                for x, each in zip((a, b), axes))
    kept = [[i for i in range(len(x.shape)) if i not in each] for x, each in ((a, one), (b, two))]
    return one, two, *kept
''',
    "_tensordot_left_bar": '''
def _tensordot_left_bar(bar, a, b, axes):
    """The adjoint of a in tf.tensordot(a, b, axes)."""
    one, two, kept_a, kept_b = _tensordot_axes(a, b, axes)
    found = tf.tensordot(bar, b, (list(range(len(kept_a), len(kept_a) + len(kept_b))), kept_b))
    order = kept_a + [i for _, i in sorted(zip(two, one))]
    return tf.transpose(found, [order.index(i) for i in range(len(order))])
''',
    "_tensordot_right_bar": '''
def _tensordot_right_bar(bar, a, b, axes):
    """The adjoint of b in tf.tensordot(a, b, axes)."""
    one, two, kept_a, kept_b = _tensordot_axes(a, b, axes)
    found = tf.tensordot(a, bar, (kept_a, list(range(len(kept_a)))))
    order = [i for _, i in sorted(zip(one, two))] + kept_b
    return tf.transpose(found, [order.index(i) for i in range(len(order))])
''',
    "_tile_bar": '''
def _tile_bar(bar, x):
    """The adjoint of x in tf.tile(x, reps)."""
    pairs = tf.reshape(tf.stack([tf.shape(bar) // tf.shape(x), tf.shape(x)], axis=1), [-1])
    return tf.reduce_sum(tf.reshape(bar, pairs), axis=list(range(0, 2 * len(x.shape), 2)))
''',
    "_diagonal": '''
def _diagonal(bar, x):
    """bar as the diagonal of zeros in the shape of x."""
    return tf.linalg.set_diag(tf.zeros_like(x), bar + tf.zeros_like(tf.linalg.diag_part(x)))
''',
    "_solve_bar": '''
def _solve_bar(bar, a, y, adjoint=False):
    """The adjoint of a in y = tf.linalg.solve(a, b, adjoint)."""
    bar = tf.linalg.solve(a, bar, adjoint=not adjoint)
    return -tf.matmul(y, bar, transpose_b=True) if adjoint else -tf.matmul(bar, y, transpose_b=True)
''',
    "_matvec_bar": '''
def _matvec_bar(bar, a, b, transpose_a=False):
    """The adjoint of a in tf.linalg.matvec(a, b, transpose_a)."""
    left, right = (b, bar) if transpose_a else (bar, b)
    return _unbroadcast(tf.expand_dims(left, -1) * tf.expand_dims(right, -2), a)
''',
    "_one_hot": '''
def _one_hot(labels, logits):
    """A row with a 1 at its label for each row of logits."""
    return tf.one_hot(labels, tf.shape(logits)[-1], dtype=logits.dtype)
''',
    "_parts": '''
def _parts(bar, tensors, axis=0):
    """bar cut along axis into pieces as tensors has them."""
    return _like(tf.split(bar, [tf.shape(each)[axis] for each in tensors], axis), tensors)
''',
    "_gather_bar": '''
def _gather_bar(bar, x, indices, axis=0):
    """The adjoint of x in tf.gather(x, indices, axis=axis)."""
    shape, axis = tf.shape(x), axis % len(x.shape)
    outer = tf.reduce_prod(shape[:axis])
    bar = tf.reshape(bar, [outer, tf.size(indices), tf.reduce_prod(shape[axis + 1 :])])
    rows = tf.transpose(bar, [1, 0, 2])
    found = tf.math.unsorted_segment_sum(rows, tf.reshape(indices, [-1]), shape[axis])
    return tf.reshape(tf.transpose(found, [1, 0, 2]), shape)
''',
    "_copied": '''
def _copied(x):
    """x with containers of its own."""
    if isinstance(x, dict):
        return dict(zip(x, map(_copied, x.values())))
    return type(x)(map(_copied, x)) if isinstance(x, (list, tuple)) else x
''',
    "_add_at": '''
def _add_at(bar, index, term):
    """bar with term added to what index picks out of it."""
    if isinstance(bar, (list, dict)):
        bar[index] = map(_add, bar[index], term) if isinstance(index, slice) else _add(bar[index], term)
        return bar
    places = tf.reshape(tf.range(tf.size(bar)), tf.shape(bar))[index]
    term = term + tf.zeros(tf.shape(places), bar.dtype)
    flat = tf.reshape(bar, [-1])
    found = tf.tensor_scatter_nd_add(flat, tf.reshape(places, [-1, 1]), tf.reshape(term, [-1]))
    return tf.reshape(found, tf.shape(bar))
''',
}
