"""Unpacking: the value that each part of an assignment's target gets."""

from __future__ import annotations

import ast

import pytest

from trainshift.python.syntax.unpacking import parts_assigned


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a = x", [("a", "x")]),
        ("a, b = x, y", [("a", "x"), ("b", "y")]),
        ("[a, b] = (x, y)", [("a", "x"), ("b", "y")]),
        ("a, (b, c) = x, (y, z)", [("a", "x"), ("b", "y"), ("c", "z")]),
        ("a, (b, c) = x, pair", [("a", "x"), ("(b, c)", "pair")]),
        ("a, b = pair", [("(a, b)", "pair")]),
        ("a, *b = x, y", [("(a, *b)", "(x, y)")]),
        ("a, b = *x, y", [("(a, b)", "(*x, y)")]),
        ("a, b = x, y, z", [("(a, b)", "(x, y, z)")]),
        ("a[0], b.c = x, y", [("a[0]", "x"), ("b.c", "y")]),
    ],
)
def test_each_part_gets_what_stands_in_its_place(line: str, parts: list[tuple[str, str]]) -> None:
    node = ast.parse(line).body[0]
    assert isinstance(node, ast.Assign)
    found = parts_assigned(node.targets[0], node.value)
    assert [(ast.unparse(one), ast.unparse(value)) for one, value in found] == parts
