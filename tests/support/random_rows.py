"""Write random Python functions that share rows: tables get rows, and parts of themselves, in all ways.

A row is put into several tables, twice into one, next to its own container, and mutated through any of these.
"""

from __future__ import annotations

import random
from typing import Any

HELPERS = """\
import math


def put_row(table, row):
    table.append(row)


def put_both(table, other):
    table.append(other[0])
    table.insert(0, other[-1])


def swap_in(table, row):
    old = table[0]
    table[0] = row
    return old


def scale(row, y):
    row[0] = row[0] * y
    return row


def wrap(table):
    return [table[0], table[1]]


"""
COPIES = ("list({})", "{}[:]", "{}.copy()", "wrap({})", "list(reversed({}))", "[each for each in {}]", "{}")
VALUES = ("math.sin({})", "{} * x", "0.5 * {}", "{} + x")


class Author:
    """One random function `f` of a number and a table, with arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: dict[str, list[str]] = {"table": ["v"], "row": [], "pairs": [], "dict": []}
        self.count = 0

    def file(self) -> tuple[str, dict[str, Any]]:
        """The text, and arguments of `f`."""
        lines = [line for _ in range(self.random.randint(5, 10)) for line in self.statement("    ")]
        value = f"{self.number()} + {self.number()} * {self.number()} + {self.number()}"
        text = "\n".join([f"{HELPERS}def f(x, v):", *lines, f"    return {value}"]) + "\n"
        return text, {"x": 1.17, "v": [[1.1, 0.6], [0.8, 1.3]]}

    def new(self, sort: str) -> str:
        """A new name of something."""
        self.count += 1
        self.names[sort].append(f"{sort}{self.count}")
        return self.names[sort][-1]

    def some(self, sort: str) -> str:
        """The name of an object; of a table if there is none."""
        return self.random.choice(self.names[sort] or self.names["table"])

    def row(self) -> str:
        """A row, as a name or a place."""
        draw = self.random
        sort = draw.choice(("row", "row", "table", "table", "pairs", "dict"))
        if not self.names[sort]:
            sort = "table"
        if sort == "row":
            return self.some(sort)
        places = {"table": ("0", "1", "-1"), "pairs": ("0", "1"), "dict": ('"a"', '"b"')}
        return f"{self.some(sort)}[{draw.choice(places[sort])}]"

    def number(self) -> str:
        """A number, from a row or elsewhere."""
        draw = self.random
        return f"{self.row()}[{draw.choice('01')}]" if draw.random() < 0.7 else draw.choice(("x", "0.7"))

    def block(self, margin: str) -> list[str]:
        """Statements of a branch or loop, whose names are known only there."""
        known = {sort: list(names) for sort, names in self.names.items()}
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement(margin)]
        self.names = known
        return lines

    def statement(self, margin: str) -> list[str]:
        """A statement, which may contain others."""
        draw, row, table = self.random, self.row(), self.some("table")
        kind = draw.randrange(16)
        if kind >= 14 and len(margin) < 12:
            head = f"for i in range({draw.choice('23')}):" if kind == 14 else f"if {self.number()} > 0.9:"
            return [f"{margin}{head}", *self.block(f"{margin}    ")]
        if kind < 5:
            value = draw.choice(COPIES).format(table) if kind < 2 else f"[{row}, {self.row()}]"
            made = {
                0: ("table", value),
                1: ("table", value),
                2: ("table", value),
                3: ("dict", f'{{"a": {row}, "b": {self.row()}}}'),
                4: ("pairs", f"({row}, {self.row()})"),
            }[kind]
            return [f"{margin}{self.new(made[0])} = {made[1]}"]
        if kind == 5 and self.names["dict"]:
            key = draw.choice(('"a"', '"b"'))
            return [f"{margin}{self.some('dict')}[{key}] = {row}"]
        if kind in (6, 7, 8):
            call = (row, f"swap_in({table}, {row})", f"scale({row}, {draw.choice(('x', '0.9'))})")[kind - 6]
            return [f"{margin}{self.new('row')} = {call}"]
        changes = {
            9: f"{table}.append({row})",
            10: f"{table}.insert({draw.choice('01')}, {row})",
            11: f"{table}[{draw.choice('01')}] = {row}",
            12: f"put_row({table}, {row})",
            13: f"put_both({table}, {self.some('table')})",
        }
        store = f"{row}[{draw.choice('01')}] = {draw.choice(VALUES).format(self.number())}"
        return [f"{margin}{changes.get(kind, store)}"]
