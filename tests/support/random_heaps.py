"""Random programs about objects: names, elements, loops, helpers and inner functions, from a seed."""

from __future__ import annotations

import random

HELPERS = """\
def same(v):
    return v


def pick(v, w, c):
    if c:
        return v
    return w


def put(v, w):
    v[0] = w
    return v


def chain(v, w):
    v.append(w)
    w = v[0]
    return [w, v]


def first(v):
    for e in v:
        return e
    return v


def make(n):
    made = []
    for i in range(n):
        made.append([i])
    return made


def deep(v, n):
    if n > 0:
        return deep([v], n - 1)
    return v


def swap(v, w):
    v[0], w[0] = w[0], v[0]


def keep(v):
    def get(w):
        v.append(w)
        return v

    return get


def apply(g, v):
    return g(v)


def deepest(v):
    if v and isinstance(v[0], list) and v[0] and isinstance(v[0][0], list):
        if v[0][0] and isinstance(v[0][0][0], list):
            return v[0][0][0]
        return v[0][0]
    return v


def place(v, w):
    if v and isinstance(v[0], list) and v[0]:
        v[0][0] = w
    return v


def link(v, w):
    v["k"] = w
    w["k"] = v
    return v["k"]
"""


class Author:
    """Writes `HELPERS` and a function `main` without parameters, whose names are lists (a to d), dicts
    (e, f) and functions (g, h).
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.inner = 0

    def text(self) -> str:
        """The text of one program."""
        lines = ["a = [[0], [1]]", "b = [a]", "c = [[2]]", "d = []", "e = {'k': [3]}", "f = {}"]
        lines += ["g = h = same", "n = 3"]
        for _ in range(self.random.randint(4, 12)):
            lines += self.statement()
        body = "\n".join("    " + line for line in [*lines, "return a"])
        return f"{HELPERS}\n\ndef main():\n{body}\n"

    def name(self) -> str:
        return self.random.choice("abcd")

    def value(self, deep: int = 0) -> str:
        """An expression for a list."""
        draw, one, other = self.random, self.name(), self.name()
        found = [
            one,
            one,
            f"{one}[0] if {one} and isinstance({one}[0], list) else {other}",
            f"[{one}, {other}]",
            f"[{one}] * 2",
            f"{one} + {other}",
            f"{one}[:]",
            f"list({one})",
            f"[v for v in {one}]",
            f"[[v] for v in {one}]",
            f"[{other} for v in {one}[:2]]",
            f"same({one})",
            f"pick({one}, {other}, len({one}) > 1)",
            f"put({one} or [0], {other})",
            f"deepest({one})",
            f"deepest([[[{one}, {other}]]])",
            f"place([{one}], {other})",
            f"chain({one}, {other})",
            "make(2)",
            f"deep({one}, 2)",
            f"e.get('k', {one})",
            f"list(e.values()) or {other}",
            f"[*{one}, {other}]",
            f"sorted({one}, key=id)",
            f"max([{one}], [{other}], key=len)",
            f"({one} or {other})",
            f"apply(same, {one})",
            f"apply(lambda w: [w, {other}], {one})",
            f"keep({one})({other})",
            f"{one}.copy()",
            f"list(map(same, [{one}, {other}]))",
            f"[v for v, w in zip({one}, {other})]",
            f"(lambda: {one})()",
            f"apply(lambda w: apply(lambda z: [z, w], {other}), {one})",
            f"(lambda w: h({one}))({other})",
        ]
        return draw.choice(found)

    def statement(self) -> list[str]:
        """One statement, with nested ones."""
        draw, one, other = self.random, self.name(), self.name()
        choice = draw.random()
        if self.depth < 3 and choice < 0.2:
            return self.block()
        if choice < 0.28 and not self.depth:
            self.inner += 1
            name = f"g{self.inner}"
            bound = draw.choice(["", f"nonlocal {one}"])
            lines = [f"def {name}(v):", *([f"    {bound}"] if bound else [])]
            if bound:
                lines += [f"    {one} = [v]"]
            else:
                lines += [f"    {one}.append(v)" if draw.random() < 0.6 else f"    {one}.append({other})"]
            return [*lines, f"    return {other}", f"h = {name}", f"{self.name()} = {name}({self.name()})"]
        found = [
            f"{one} = {self.value()}",
            f"{one} = {self.value()}",
            f"{one} = {self.value()}",
            f"{one}.append({other})",
            f"{one}.append({self.value()})",
            f"{one}.insert(0, {other})",
            f"{one}.extend({other}[:2])",
            f"{one}[:] = {other}",
            f"if {one}: {one}[0] = {self.value()}",
            f"if {one}: {one}[-1] = {other}",
            f"if {one}: {other} = [{one}.pop()]",
            f"if {one}: {other} = [{one}.pop(0)]",
            f"if len({one}) > 1: {one}[0], {one}[1] = {one}[1], {one}[0]",
            f"if {one} and {other}: swap({one}, {other})",
            f"{one}, {other} = {other}, {one}",
            f"{one}, *{other} = [{other}, *{one}]",
            f"e['k'] = {self.value()}",
            f"e['m'] = {other}",
            f"f['k'] = {one}",
            "f = e",
            "link(e, f)",
            f"e.setdefault('q', {one})",
            f"e.update(k={one})",
            f"{one} += {other}[:2]",
            f"{one}.reverse()",
            f"g = lambda v: [v, {one}]",
            f"{one} = g({other})",
            f"{one} = [{other}]",
            f"del {one}[:1]",
            f"{one} = first({other} or [[]])",
            f"if not isinstance({one}, list): {one} = [{one}]",
        ]
        return [draw.choice(found)]

    def block(self) -> list[str]:
        """A loop or a conditional."""
        draw, one = self.random, self.name()
        self.depth += 1
        head = draw.choice(
            [
                f"for i{self.depth} in range({draw.randint(1, 3)}):",
                f"for v in list({one})[:3]:",
                f"for v in {one}[:3]:",
                f"for i, v in enumerate({one}[:3]):",
                f"if len({one}) > 1:",
                f"for v, w in zip({one}[:3], {self.name()}[:3]):",
            ]
        )
        lines: list[str] = []
        for _ in range(draw.randint(1, 3)):
            lines += self.statement()
        if " v" in head and draw.random() < 0.7:
            lines.append(
                draw.choice([f"{self.name()}.append(v)", "d = [v]", "c = v if isinstance(v, list) else c"])
            )
        if draw.random() < 0.2 and head.startswith("for"):
            lines.append(f"if len({one}) > 2: {draw.choice(['break', 'continue'])}")
        self.depth -= 1
        return [head, *("    " + line for line in lines)]
