"""Slotted trees: the same as those of `ast.parse`, in less memory."""

from __future__ import annotations

import ast
import tracemalloc

import pytest

from support.fixtures import SCRIPTS
from trainshift.python.syntax.slotted_ast import kind_of, lean

FORMS = """
@a.b(c=1)
def f(x, /, y: int = 2, *z, w=[*p], **k) -> "r":
    global g
    g = h[1:2, ...] = (yield), lambda q=1: q
    x.y += -1 + 2 + 3 + not_(f"{x!r:>{y}}") ** 2
    with a as (b, *c), d: pass
    try: raise E(1) from e
    except (A, B) as e: del e.x
    else: assert x, "m"
    finally: return {**a, "k": v}
    for i, in {1, 2}: continue
    while (n := n - 1) < 3 <= 4 or not u: break
    match x:
        case C(a, k=1.5j) | [_, *r] | {"k": b"v", **s} if u is None: pass
class D(B, metaclass=M): a: int; b: str = "s"
import a.b as c
from . import d
print(*[i async for i in a if b], **{i: j for i, j in x}, key=(v if t else w))
"""


def told(tree: ast.AST) -> list[object]:
    """The whole contents of a tree, node by node."""
    found: list[object] = []
    for node in ast.walk(tree):
        parts = [getattr(node, name) for name in (*node._fields, *node._attributes)]
        found.append((kind_of(node), [part for part in parts if not isinstance(part, ast.AST | list)]))
    return found


@pytest.mark.parametrize(
    "text", [FORMS, *((folder / "before.py").read_text("utf-8-sig") for folder in SCRIPTS)]
)
def test_nothing_is_lost(text: str) -> None:
    made = lean(ast.parse(text))
    assert told(made) == told(ast.parse(text))
    assert ast.unparse(made) == ast.unparse(ast.parse(text))


def test_long_sums_are_no_deeper_than_others() -> None:
    text = "x = " + " + ".join(["a.b(1)"] * 990)
    assert told(lean(ast.parse(text))) == told(ast.parse(text))


def test_it_takes_less_than_half() -> None:
    def taken(make: bool) -> int:
        tracemalloc.start()
        tree = ast.parse("x = self.layer(tf.nn.relu(y), name='a')\n" * 500)
        kept = lean(tree) if make else tree
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert kept.body
        return size

    assert taken(make=True) < taken(make=False) / 2
