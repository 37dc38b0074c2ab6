"""Write random Python functions about names, exits and evaluation order: text and arguments, from a seed.

Names form chains, swaps and rotations in loops; loops are left early, and have an `else`; helpers and inner
functions mutate objects that the same expression reads before and after the call.
"""

from __future__ import annotations

import random
from typing import Any

# Functions of the file. All of them mutate their argument, return it, or link it.
HELPERS = """\
def put(v, y):
    v[0] = y * 1.5
    return v[0] + v[1]


def scale(v, y):
    for i in range(len(v)):
        v[i] = v[i] * y
    return v


def same(v):
    return v


def pick(v, w, y):
    if y > 0.7:
        return v
    return w


def move(v, w):
    v[0] = w[1] * v[0]
    w[0] = v[1]
    return v[0] * 0.5


def shift(p, q, r, n):
    for i in range(n):
        p, q, r = q, r, p
        if i == 2:
            break
    return p


def first(v, y):
    for i in range(len(v)):
        if i == 1:
            return v[i] * y
        v[i] = v[i] * y
    return y


def fill(d, y):
    d["new"] = y * 0.5
    return d["a"] * y


def total(d):
    return d["a"] + d["new"] if "new" in d else d["a"] * 2.0
"""
ARRAY_HELPERS = """

def grow(v, y):
    v *= y
    return v[0]


def twice(v):
    return v * 2.0
"""


class Author:
    """Writes one file: helpers, and `f` that calls them. `arrays`: the vectors are NumPy arrays."""

    def __init__(self, seed: int, arrays: bool = False) -> None:
        self.random = random.Random(seed)
        self.arrays = arrays
        self.lists = ["a", "b", "c"]
        self.closures = False
        self.count = 0
        self.loops = 0
        self.frozen: set[str] = set()

    def file(self) -> tuple[str, dict[str, Any]]:
        """The text, and arguments of `f`."""
        draw = self.random
        lines = ["    d = {'a': x * 0.9}"]
        for place, name in enumerate(self.lists):
            made = f"[x * {draw.uniform(0.4, 1.2):.2f}, {draw.uniform(0.4, 1.2):.2f}]"
            if place == 2 and draw.random() < 0.5:
                made = f"[{draw.uniform(0.4, 1.2):.2f}, y]"
            lines.append(f"    {name} = {self.vector(made)}")
        lines.append("    s = x * y")
        if draw.random() < 0.4:
            self.closures = True
            lines += self.inner()
        for _ in range(draw.randint(3, 7)):
            lines += ["    " + line for line in self.statement(0)]
        names = [each for each in self.lists if draw.random() < 0.8] or ["a"]
        ends = [f"{name}[{draw.randint(0, 1)}]" for name in names]
        ends += [each for each in ("s", "total(d)") if draw.random() < 0.5]
        draw.shuffle(ends)
        head = "import math\n" + ("import numpy as np\n" if self.arrays else "")
        helpers = HELPERS + (ARRAY_HELPERS if self.arrays else "")
        body = "\n".join([*lines, f"    return {' + '.join(ends)} * x"])
        text = f"{head}\n\n{helpers}\n\ndef f(x, y, n):\n{body}\n"
        return text, {"x": round(draw.uniform(0.5, 1.3), 3), "y": round(draw.uniform(0.5, 1.3), 3), "n": 3}

    def vector(self, display: str) -> str:
        """A vector of the numbers of a display."""
        return f"np.array({display})" if self.arrays else display

    def inner(self) -> list[str]:
        """A function inside that assigns and mutates outer variables."""
        draw = self.random
        name = draw.choice(self.lists)
        lines = ["    def bump(z):", "        nonlocal s"]
        lines.append(f"        s = s * z + {draw.choice(['0.1', f'{name}[0]', 'x'])}")
        if draw.random() < 0.5:
            lines.append(f"        {name}[1] = {name}[1] * z")
        return [*lines, "        return s * 0.5"]

    # Expressions.

    def leaf(self) -> str:
        """A short number."""
        draw = self.random
        names = ["x", "y", "s", "d['a']", f"{draw.uniform(0.3, 1.3):.1f}"]
        return draw.choice([*names, *(f"{each}[{draw.randint(0, 1)}]" for each in self.lists)])

    def call(self) -> str:
        """A call that returns a number, and mutates something."""
        draw = self.random
        some = draw.choice(self.lists)
        found = [
            f"put({some}, {self.leaf()})",
            f"first({some}, {self.leaf()})",
            f"move({some}, {draw.choice(self.lists)})",
            f"fill(d, {self.leaf()})",
            f"scale({some}, {self.leaf()})[0]",
            "total(d)",
        ]
        if self.arrays:
            found += [f"grow({some}, {self.leaf()})", f"np.sum({some})"]
        if self.closures:
            found += [f"bump({self.leaf()})"] * 3
        return draw.choice(found)

    def number(self, deep: int = 0) -> str:
        """An expression, with calls and reads of variables that they mutate."""
        draw = self.random
        choice = draw.random()
        if deep > 1 or choice < 0.3:
            return self.leaf()
        if choice < 0.5:
            return self.call()
        if choice < 0.8:
            left, right = self.number(deep + 1), self.number(deep + 1)
            return f"{left} {draw.choice('+*')} {right}" if draw.random() < 0.6 else f"({left} - {right})"
        if choice < 0.88:
            return f"math.sin({self.number(deep + 1)})"
        if choice < 0.94:
            return f"({self.number(deep + 1)} if {self.test()} else {self.number(deep + 1)})"
        return f"[{self.number(deep + 1)}, {self.number(deep + 1)}][{draw.randint(0, 1)}]"

    def test(self) -> str:
        """A condition on a number, or on the iteration of a loop."""
        draw = self.random
        if self.loops and draw.random() < 0.6:
            return f"i{self.loops} {draw.choice(['==', '>', '<'])} {draw.randint(0, 2)}"
        found = f"{self.leaf()} > {draw.uniform(0.1, 1.5):.2f}"
        return f"{found} and {self.leaf()} < 3.0" if draw.random() < 0.15 else found

    def named(self) -> str:
        """An expression for a vector, often an existing name."""
        draw = self.random
        one, other = draw.choice(self.lists), draw.choice(self.lists)
        found = [
            one,
            one,
            f"{one} if {self.test()} else {other}",
            f"same({one})",
            f"pick({one}, {other}, {self.leaf()})",
            f"shift({', '.join(draw.sample(self.lists, 3))}, n)",
            f"[{one}, {other}][{draw.randint(0, 1)}]",
            f"({one}, {other})[{draw.randint(0, 1)}]",
        ]
        return draw.choice(found)

    def new(self) -> str:
        """An expression that makes a vector."""
        draw = self.random
        one = draw.choice(self.lists)
        found = [self.vector(f"[{self.number(1)}, {self.leaf()}]"), f"{one}[:]", f"{one}[::-1]"]
        found += [f"{one} * {self.leaf()}", f"twice({one})", f"{one}.copy()"] if self.arrays else []
        found += [] if self.arrays else [f"[v * {self.leaf()} for v in {one}]", f"list({one})"]
        return draw.choice(found)

    # Statements.

    def statement(self, deep: int) -> list[str]:
        """One statement, with nested ones."""
        draw = self.random
        choice = draw.random()
        if deep < 3 and choice < 0.22:
            return self.loop(deep)
        if deep < 3 and choice < 0.32:
            lines = [f"if {self.test()}:", *self.block(deep, draw.randint(1, 2))]
            if draw.random() < 0.5:
                lines += ["else:", *self.block(deep, 1)]
            return lines
        if self.loops and choice < 0.4:
            leaves = ["break", "continue", f"return {self.number()} * s"]
            before = self.block(deep, 1) if draw.random() < 0.4 else []
            return [f"if {self.test()}:", *before, f"    {draw.choice(leaves)}"]
        if choice < 0.43:
            return [f"if {self.test()}:", f"    return {self.number()} + {self.leaf()}"]
        return [self.simple()]

    def simple(self) -> str:
        """An assignment, a store or a call."""
        draw = self.random
        one, other, third = draw.sample(self.lists, 3)
        at = draw.randint(0, 1)
        swaps = [
            f"{one}, {other} = {other}, {one}",
            f"{one}, {other}, {third} = {other}, {third}, {one}",
            f"{one}[0], {one}[1] = {one}[1], {one}[0]",
            f"{one}[0], {other}[1] = {self.leaf()}, {self.leaf()}",
        ]
        stores = [f"{one}[{at}] = {self.number()}", f"{one}[{at}] {draw.choice('+*')}= {self.number(1)}"]
        found = [
            draw.choice(swaps),
            draw.choice(swaps),
            f"{one} = {self.named()}",
            f"{one} = {self.new()}",
            f"{one} = {self.new()}",
            *stores,
            *stores,
            f"s = {self.number()}",
            f"s {draw.choice('+*-')}= {self.number(1)}",
            f"s = d['a'] = {self.number(1)}",
            f"d['a'] = {self.number()}",
            self.call(),
            f"s, {one}[{at}] = {self.number(1)}, {self.number(1)}",
        ]
        if self.arrays:
            found += [f"{one} *= {self.leaf()}", f"{one} = {one} + {other}", f"{one}[:] = {other} * 0.9"]
        return draw.choice(found)

    def block(self, deep: int, size: int) -> list[str]:
        """The lines of a block, indented by one level."""
        return ["    " + line for _ in range(size) for line in self.statement(deep + 1)]

    def loop(self, deep: int) -> list[str]:
        """A loop over a range, or while a count lasts."""
        draw = self.random
        self.loops += 1
        place = f"i{self.loops}"
        if draw.random() < 0.6:
            lines = [f"for {place} in range({draw.choice(['n', '2', '4'])}):"]
            lines += self.block(deep, draw.randint(1, 3))
        else:
            lines = [f"{place} = 0", f"while {place} < {draw.choice(['n', '2', '4'])}:", f"    {place} += 1"]
            lines += self.block(deep, draw.randint(1, 3))
        self.loops -= 1
        if draw.random() < 0.3:
            lines += ["else:", *self.block(deep, 1)]
        return lines
