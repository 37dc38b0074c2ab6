"""The texts of helpers that differ only in their result for a number, an array or a tensor."""

from __future__ import annotations

_ZEROS = '''
def _zeros(x):
    """Zeros in the structure of x."""
    if isinstance(x, dict):
        return dict(zip(x, map(_zeros, x.values())))
    if isinstance(x, (list, tuple)):
        return type(x)([0.0 if type(each) is float else _zeros(each) for each in x])
    if x is None or isinstance(x, str) or callable(x):
        return None
    return {zero} if hasattr(x, "shape") else 0.0
'''
_CELLS = '''
def _cells(x):
    """Zeros in the structure of x that can be added to in place: a list for a tuple."""
    if isinstance(x, dict):
        return dict(zip(x, map(_cells, x.values())))
    if isinstance(x, (list, tuple)):
        return [0.0 if type(each) is float else _cells(each) for each in x]
    if x is None or isinstance(x, str) or callable(x):
        return None
    return {zero} if hasattr(x, "shape") else 0.0
'''
_PUT = '''
def _put(x, index, value, keys):
    """Puts value back where pop took it from: at a place in a list, or in a dict that had these keys."""
    if isinstance(x, dict):
        x[index] = value
        for key in keys:
            x[key] = x.pop(key)
    else:
        x.insert(index, value)
'''
_LIKE = '''
def _like(bar, x):
    """bar in the containers of x."""
    if isinstance(x, dict):
        return dict(zip(x, map(_like, (bar[key] for key in x), x.values())))
    if isinstance(x, (list, tuple)):
        return type(x)([a if type(a) is float else _like(a, b) for a, b in zip(bar, x)])
    return {bar}
'''
_HELD = '''
def _held(x):
    """The lists, dicts and arrays in x, each with a copy of it."""
    own = [(x, x.copy())] if hasattr(x, "__setitem__") else []
    inside = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return own + [each for part in inside for each in _held(part)]
'''
_PUT_RIGHT = '''
def _put_right(held):
    """Gives lists, dicts and arrays, in place, what they had when they were held."""
    for each, had in held:
        if isinstance(each, dict):
            each.clear()
            each.update(had)
        else:
            each[... if hasattr(each, "shape") else slice(None)] = had
'''


def structural(zero: str, bar: str = "bar") -> dict[str, str]:
    """The helpers that traverse a structure, by name.

    `zero` is the expression for zeros in the shape of x, `bar` that for bar in the shape of x.
    """
    return {
        "_zeros": _ZEROS.format(zero=zero),
        "_cells": _CELLS.format(zero=zero),
        "_like": _LIKE.format(bar=bar),
        "_put": _PUT,
        "_held": _HELD,
        "_put_right": _PUT_RIGHT,
    }
