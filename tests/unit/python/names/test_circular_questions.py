"""Names whose values lead to themselves: what a loop makes of them is found in full, or Unknown."""

from __future__ import annotations

import pytest

from trainshift.python.names.memo import Questions
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.values import UNKNOWN, Class, Display, UserInstance, Value

# A script whose last call is `show(x)`: the classes of objects that `x` may be, and whether all is known.
LOOPS = {
    "elements of elements": (
        "class A:\n    pass\nx = [[[A()]]]\nwhile c:\n    x = x[0]\nshow(x)",
        {"list", "A"},
        False,  # An object of A has elements that nobody sees.
    ),
    "attributes of attributes": (
        "class A:\n    def __init__(self, of):\n        self.of = of\n"
        "class B:\n    pass\n"
        "x = A(A(A(B())))\nfor i in range(3):\n    x = x.of\nshow(x)",
        {"A", "B"},
        False,
    ),
    "names that change places": (
        "class A:\n    pass\nclass B:\n    pass\nclass C:\n    pass\n"
        "x, y, z = A(), B(), C()\nwhile c:\n    x, y, z = y, z, x\nshow(x)",
        {"A", "B", "C"},
        True,
    ),
    "a chain that never ends": ("import numpy as x\nwhile c:\n    x = x.child\nshow(x)", set(), False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_values_of_a_loop_are_stable_or_unknown(name: str) -> None:
    text, wanted, all_known = LOOPS[name]
    script = read_script(text)
    assert isinstance(script, Script)
    (site,) = script.sites_named("show")
    values = script.names.site_values(site.node.args[0], site)
    assert {class_of(value) for value in values} - {""} == wanted
    assert (UNKNOWN not in values) == all_known


def class_of(value: Value) -> str:
    """The class of an object of the script, "list" for a display, empty for anything else."""
    if isinstance(value, UserInstance | Class):
        return value.scope.name
    return "list" if isinstance(value, Display) else ""


def test_an_answer_is_the_least_fixed_point() -> None:
    questions = Questions[frozenset[int]](frozenset(), frozenset({-1}))

    def at_most_five() -> frozenset[int]:
        found = questions.ask(("x",), at_most_five)
        return frozenset({0}) | {min(each + 2, 5) for each in found}

    assert questions.ask(("x",), at_most_five) == {0, 2, 4, 5}


def test_an_answer_that_grows_without_end_is_unknown() -> None:
    questions = Questions[frozenset[int]](frozenset(), frozenset({-1}))

    def counting() -> frozenset[int]:
        return frozenset({0}) | {each + 1 for each in questions.ask(("x",), counting)}

    assert questions.ask(("x",), counting) == {-1}


def test_the_order_of_questions_changes_no_answer() -> None:
    edges = {"a": ("b", 1), "b": ("c", 2), "c": ("a", 3)}

    def answers(first: str) -> dict[str, frozenset[int]]:
        questions = Questions[frozenset[int]](frozenset(), frozenset({-1}))

        def of(name: str) -> frozenset[int]:
            other, own = edges[name]
            return frozenset({own}) | questions.ask((other,), of, other)

        return {name: questions.ask((name,), of, name) for name in [first, *edges]}

    assert answers("a") == answers("b") == answers("c") == dict.fromkeys(edges, frozenset({1, 2, 3}))
