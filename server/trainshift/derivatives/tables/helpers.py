"""The helpers that derivatives call: plain functions, added to the file once, and only if they are used
(AD41).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from trainshift.derivatives.tables.helpers_numpy import HELPERS as OF_NUMPY
from trainshift.derivatives.tables.helpers_shared import structural
from trainshift.derivatives.tables.helpers_tensorflow import HELPERS as OF_TENSORFLOW


def _checking(head: str, refused: str, test: str, said: str) -> str:
    """The text of a helper that raises ValueError for arguments, and for parts of them, that fail a test."""
    return f"""
def {head}:
    \"\"\"Raises ValueError for {refused}.\"\"\"
    def visit(x, place):
        if {test}:
            raise ValueError(f"{{place}} {said}")
        if isinstance(x, (dict, list, tuple)):
            for key, each in x.items() if isinstance(x, dict) else enumerate(x):
                visit(each, f"{{place}}[{{key!r}}]")
    for name, each in given.items():
        visit(each, name)
"""


# Helpers by name; where the file imports NumPy, the second text is used.
_NUMBERS = {
    "_apart": '''
def _apart(others={}, /, **given):
    """Raises ValueError where one list or dict, which may be changed, stands in two places."""
    places, seen = {}, set()
    def visit(x, place, own):
        known = places.setdefault if own else places.get
        if not isinstance(x, tuple) and known(id(x), place) is not place:
            said = f"{places[id(x)]} and {place} are one {type(x).__name__}: pass a copy of one"
            raise ValueError(said)
        if not own and id(x) in seen:
            return
        if not own:
            seen.add(id(x))
        for key, each in x.items() if isinstance(x, dict) else enumerate(x):
            if isinstance(each, (dict, list, tuple)):
                visit(each, f"{place}[{key!r}]", own)
    for own in (given, others):
        for name, each in own.items():
            if isinstance(each, (dict, list, tuple)):
                visit(each, name, own is given)
''',
    "_lasting": '''
def _lasting(attributes=(), /, **given):
    """Raises ValueError for iterators, which can be gone through only once; also in these attributes."""
    seen = set()
    def visit(x, place):
        if hasattr(x, "__next__"):
            raise ValueError(f"{place} can be gone through only once: pass a list")
        if id(x) in seen:
            return
        seen.add(id(x))
        if isinstance(x, (dict, list, tuple)):
            for key, each in x.items() if isinstance(x, dict) else enumerate(x):
                visit(each, f"{place}[{key!r}]")
        for name in attributes:
            each = getattr(x, name, None)
            if each is not None and each is getattr(x, name, None):
                visit(each, f"{place}.{name}")
    for name, each in given.items():
        visit(each, name)
''',
    "_listed": _checking(
        "_listed(most, /, **given)",
        "arrays of more than most dimensions, where lists behave differently",
        'len(getattr(x, "shape", ())) > most',
        "is an array, not a list: annotate the parameter with np.ndarray",
    ),
    **structural("0.0 * x"),
    "_add": '''
def _add(a, b):
    """The sum of two values of one structure."""
    if isinstance(a, dict):
        return {key: _add(each, b[key]) if key in b else each for key, each in a.items()}
    if isinstance(a, (list, tuple)):
        return type(a)([_add(p, q) for p, q in zip(a, b, strict=True)]) if hasattr(b, "__len__") else a
    return b if a is None else a if b is None else a + b
''',
    "_add_at": '''
def _add_at(bar, index, term):
    """bar with term added to what index picks out of it."""
    if isinstance(bar, list) and isinstance(index, slice):
        bar[index] = map(_add, bar[index], term)
    else:
        bar[index] = _add(bar[index], term)
    return bar
''',
    "_folded": '''
def _folded(bar, x):
    """bar of a list or tuple that is x repeated, as that of x."""
    total = _cells(x)
    for start in range(0, len(bar), len(x) or 1):
        total = [_add(a, b) for a, b in zip(total, bar[start:])]
    return total
''',
    "_noted": '''
def _noted(x, tape):
    """Tangents in the structure of x that note on tape which others they are sums of."""
    def noted(*parts):
        made = kind()
        made.parts, made.bar = parts, 0.0
        tape.append(made)
        return made
    def inside(x):
        if isinstance(x, dict):
            return dict(zip(x, map(inside, x.values())))
        if isinstance(x, (list, tuple)):
            return type(x)(map(inside, x))
        return None if x is None or isinstance(x, str) or callable(x) else noted()
    kind = type("Tangent", (), {
        "__array_ufunc__": None,
        "__pos__": lambda self: self,
        "__neg__": lambda self: noted((-1.0, self)),
        "__add__": lambda self, other: noted((1.0, self), (1.0, other)) if hasattr(other, "parts") else self,
        "__radd__": lambda self, other: self,
        "__sub__": lambda self, other: noted((1.0, self), (-1.0, other)) if hasattr(other, "parts") else self,
        "__rsub__": lambda self, other: -self,
        "__mul__": lambda self, factor: noted((factor, self)),
        "__rmul__": lambda self, factor: noted((factor, self)),
        "__truediv__": lambda self, factor: noted((1 / factor, self)),
    })
    return inside(x)
''',
    "_transpose": '''
def _transpose(dot, bar, tape):
    """Adds bar to the adjoints of all that the tangent dot was made of, as noted on tape."""
    def begin(dot, bar):
        if isinstance(dot, (dict, list, tuple)):
            for key in dot if isinstance(dot, dict) else range(len(dot)):
                begin(dot[key], bar[key])
        elif hasattr(dot, "parts"):
            dot.bar += bar
    begin(dot, bar)
    for each in reversed(tape):
        for factor, part in each.parts:
            part.bar += factor * each.bar
''',
    "_bars": '''
def _bars(dot):
    """The adjoints that tangents have by now, in their structure."""
    if isinstance(dot, dict):
        return dict(zip(dot, map(_bars, dot.values())))
    if isinstance(dot, (list, tuple)):
        return type(dot)(map(_bars, dot))
    return getattr(dot, "bar", None)
''',
    "_copied": '''
def _copied(x):
    """x with containers of its own."""
    if isinstance(x, dict):
        return dict(zip(x, map(_copied, x.values())))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_copied, x))
    return x.copy() if hasattr(x, "shape") else x
''',
}
_ARRAYS = {
    "_apart": '''
def _apart(others={}, /, **given):
    """Raises ValueError where one list, dict or array, which may be changed, stands in two places."""
    places, arrays, seen = {}, {}, set()
    def visit(x, place, own):
        if isinstance(x, np.ndarray):
            whole = x
            while getattr(whole, "base", None) is not None:
                whole = whole.base
            for other, there in arrays.setdefault(id(whole), []):
                if np.shares_memory(x, other):
                    raise ValueError(f"{there} and {place} share an array: pass a copy of one")
            if own:
                arrays[id(whole)].append((x, place))
        elif isinstance(x, (dict, list, tuple)):
            known = places.setdefault if own else places.get
            if not isinstance(x, tuple) and known(id(x), place) is not place:
                said = f"{places[id(x)]} and {place} are one {type(x).__name__}: pass a copy of one"
                raise ValueError(said)
            if not own and id(x) in seen:
                return
            if not own:
                seen.add(id(x))
            for key, each in x.items() if isinstance(x, dict) else enumerate(x):
                if isinstance(each, (dict, list, tuple, np.ndarray)):
                    visit(each, f"{place}[{key!r}]", own)
    for own in (given, others):
        for name, each in own.items():
            visit(each, name, own is given)
''',
    **structural(
        "np.zeros(np.shape(x))", "np.reshape(bar, np.shape(x)) if isinstance(x, np.ndarray) else bar"
    ),
    "_add_at": '''
def _add_at(bar, index, term):
    """bar with term added to what index picks out of it."""
    if isinstance(bar, np.ndarray):
        np.add.at(bar, index, term)
    elif isinstance(index, slice):
        bar[index] = map(_add, bar[index], term)
    else:
        bar[index] = _add(bar[index], term)
    return bar
''',
    "_stored": '''
def _stored(bar, index):
    """bar at index; an element that index has more than once has it at its last place."""
    found = _copied(bar[index])
    if not any(map(np.ndim, index if isinstance(index, tuple) else (index,))):
        return found
    places, last = np.reshape(np.arange(np.size(found)), np.shape(found)), np.zeros(np.shape(bar), int)
    last[index] = places
    return np.where(last[index] == places, found, 0.0)
''',
    "_unbroadcast": '''
def _unbroadcast(bar, x):
    """bar summed over the axes along which x was broadcast."""
    shape, found = np.shape(x), np.shape(bar)
    if shape == found:
        return bar
    if len(found) < len(shape) or not found:
        return np.broadcast_to(bar, shape) + 0.0
    bar = np.sum(bar, axis=tuple(range(len(found) - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(bar)[i] != 1)
    return np.sum(bar, axis=axes, keepdims=True)
''',
}
_NEEDS = {
    "_held": ("_put_right",),
    "_add_at": ("_add",),
    "_stored": ("_copied",),
    "_folded": ("_add", "_cells"),
    "_others_dot": ("_others",),
    "_parts": ("_like",),
    "_columns": ("_like",),
    "_shares": ("_spread",),
    "_tensordot_left_bar": ("_tensordot_axes",),
    "_tensordot_right_bar": ("_tensordot_axes",),
    "_matvec_bar": ("_unbroadcast",),
    "_matmul_left_bar": ("_unbroadcast",),
    "_matmul_right_bar": ("_unbroadcast",),
}


OF_TAPES = frozenset(("_noted", "_transpose", "_bars"))
"""The helpers by which tangents are transposed."""
_VARIANTS = (_NUMBERS, _ARRAYS, OF_NUMPY, OF_TENSORFLOW)


def text_of(name: str, arrays: bool, tensors: bool = False) -> str:
    """The text of a helper, without empty lines around it: for tensors, arrays, or numbers."""
    known = [OF_TENSORFLOW] * tensors + [_ARRAYS, OF_NUMPY] * arrays + [_NUMBERS, OF_NUMPY]
    return next(each[name] for each in known if name in each).strip("\n") + "\n"


def helper_of(function: ast.FunctionDef) -> str | None:
    """The helper that a function of a file is, judged by its name, with or without a number, and its
    docstring.
    """
    name = re.sub(r"_\d+$", "", function.name)
    said = _bare(f'"""{ast.get_docstring(function, clean=False)}"""')
    return name if any(said in _bare(texts.get(name, "")) for texts in _VARIANTS) else None


def _bare(text: str) -> str:
    """A text without the names of modules."""
    return re.sub(r"\b\w+\.(?=[a-z])", "", text)


def variant_of(name: str, text: str) -> int | None:
    """The index of the helper's variant (numbers, arrays, tensors) with this text; None if there is none.

    A later variant works for numbers like an earlier one, but none works for both arrays and tensors.
    """
    same = (index for index, texts in enumerate(_VARIANTS) if _read(texts.get(name, "")) == _read(text))
    return next(same, None)


def text_of_variant(name: str, variant: int) -> str:
    """The text of a helper, without empty lines around it, in one of its variants."""
    return _VARIANTS[variant][name].strip("\n") + "\n"


def is_of_tensors(variant: int | None) -> bool:
    """Return whether a variant is for tensors, if arrays and numbers have a different one."""
    return variant is not None and _VARIANTS[variant] is OF_TENSORFLOW


def _read(text: str) -> str:
    return ast.unparse(ast.parse(text))


def closed(names: Iterable[str]) -> list[str]:
    """The helpers and those that they call, sorted."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += _NEEDS.get(each, ())
    return sorted(found)
