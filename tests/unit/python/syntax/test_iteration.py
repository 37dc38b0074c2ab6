"""The parts of a loop's target: what each gets is told by tables, and is true of loops that run."""

from __future__ import annotations

import ast

import pytest

from trainshift.python.syntax.iteration import Gets, Step, beside, counted_from_0, iterated, parts_given, step

PARTS = {
    "x in xs": ["x ELEMENT xs"],
    "x in xs[1:]": ["x ELEMENT xs[1:]"],
    "i in range(3)": ["i COUNT range(3)"],
    "i, x in enumerate(xs)": ["i COUNT enumerate(xs)", "x ELEMENT xs"],
    "i, x in enumerate(xs, start=2)": ["i COUNT enumerate(xs, start=2)", "x ELEMENT xs"],
    "pair in enumerate(xs)": ["pair ELEMENT enumerate(xs)"],
    "i, (x, y) in enumerate(zip(xs, ys))": [
        "i COUNT enumerate(zip(xs, ys))", "x ELEMENT xs", "y ELEMENT ys",
    ],
    "x, (i, y) in zip(xs, enumerate(ys))": ["x ELEMENT xs", "i COUNT enumerate(ys)", "y ELEMENT ys"],
    "[x, y] in zip(xs, ys)": ["x ELEMENT xs", "y ELEMENT ys"],
    "x, y in zip(*rows)": ["(x, y) ELEMENT zip(*rows)"],
    "x, y, z in zip(xs, ys)": ["(x, y, z) ELEMENT zip(xs, ys)"],
    "x, y in rows": ["(x, y) ELEMENT rows"],
    "x in reversed(xs)": ["x ELEMENT xs"],
    "x, y in reversed(list(zip(xs, ys)))": ["x ELEMENT xs", "y ELEMENT ys"],
    "x in sorted(xs)": ["x ELEMENT sorted(xs)"],
    "key, x in table.items()": ["key KEY table", "x VALUE table"],
    "key, (x, y) in table.items()": ["key KEY table", "(x, y) VALUE table"],
    "item in table.items()": ["item ELEMENT table.items()"],
    "i, (key, x) in enumerate(list(table.items()))": [
        "i COUNT enumerate(list(table.items()))", "key KEY table", "x VALUE table",
    ],
    "x in table['rows'].values()": ["x VALUE table['rows']"],
    "key in table.keys()": ["key KEY table"],
    "x in self.items(3)": ["x ELEMENT self.items(3)"],
    "x in list(xs, ys)": ["x ELEMENT list(xs, ys)"],
}  # fmt: skip


def _loop(text: str) -> tuple[ast.expr, ast.expr]:
    (node,) = ast.parse(f"for {text}: pass").body
    assert isinstance(node, ast.For)
    return node.target, node.iter


@pytest.mark.parametrize("text", PARTS)
def test_parts_of_a_target(text: str) -> None:
    found = parts_given(*_loop(text))
    shown = [f"{ast.unparse(each.target)} {each.gets.name} {ast.unparse(each.source)}" for each in found]
    assert shown == PARTS[text]


@pytest.mark.parametrize("text", PARTS)
def test_what_a_loop_gives_is_where_its_parts_say(text: str) -> None:
    target, source = _loop(text)
    known = {
        "xs": [10, 20, 30], "ys": [1, 2, 3], "rows": [(1, 2), (3, 4)],
        "table": {"a": (5, 6), "b": (7, 8), "rows": {"c": 9}},
    }  # fmt: skip
    for part in parts_given(target, source):
        if part.gets is Gets.COUNT or "self" in text or "list(xs, ys)" in text or "z" in ast.unparse(target):
            continue
        try:
            code = f"[{ast.unparse(part.target)} for {ast.unparse(target)} in {ast.unparse(source)}]"
            given = eval(code, {}, dict(known))
        except ValueError:
            continue
        whole = eval(ast.unparse(part.source), {}, dict(known))
        inside = list(whole.values()) if part.gets is Gets.VALUE else list(whole)
        assert all(each in inside for each in given)


@pytest.mark.parametrize(
    ("source", "way"),
    [("zip()", Step.BESIDE), ("enumerate()", Step.ELEMENTS), ("reversed(*xs)", Step.ELEMENTS),
     ("xs.items", Step.ELEMENTS), ("numpy.zip(xs)", Step.ELEMENTS)],
)  # fmt: skip
def test_a_step(source: str, way: Step) -> None:
    assert step(ast.parse(source, mode="eval").body)[0] is way


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("xs", ["xs"]),
        ("enumerate(zip(xs, reversed(ys)))", ["xs", "ys"]),
        ("table.items()", ["table"]),
        ("zip(list(xs), ys[0])", ["ys[0]"]),
        ("range(len(xs))", []),
    ],
)
def test_what_is_gone_through_without_a_copy(source: str, found: list[str]) -> None:
    assert [ast.unparse(each) for each in iterated(ast.parse(source, mode="eval").body)] == found


def test_iterables_side_by_side() -> None:
    whole = ast.parse("zip(xs, ys)", mode="eval").body
    assert [ast.unparse(each) for each in beside(whole)] == ["xs", "ys"]
    numbered = ast.parse("enumerate(xs)", mode="eval").body
    assert [ast.unparse(each) for each in beside(numbered)] == ["0", "xs"]
    assert beside(ast.parse("xs", mode="eval").body) == []


@pytest.mark.parametrize("text", ["enumerate(xs)", "enumerate(xs, 0)", "enumerate(xs, start=0)"])
def test_counts_from_0(text: str) -> None:
    assert counted_from_0(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize("text", ["enumerate(xs, 1)", "enumerate(xs, start=n)", "enumerate(*xs)", "range(3)"])
def test_does_not_count_from_0(text: str) -> None:
    assert not counted_from_0(ast.parse(text, mode="eval").body)
