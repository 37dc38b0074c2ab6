"""Names whose values lead to themselves: all values from a loop are found, or Unknown."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from trainshift.python.flow.traversal import closure
from trainshift.python.names.memo import Questions, Revisable
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.values import UNKNOWN, Class, Display, UserInstance, Value

# A script whose last call is `show(x)`: the classes of objects that `x` may be, and whether all is known.
LOOPS = {
    "elements of elements": (
        "class A:\n    pass\nx = [[[A()]]]\nwhile c:\n    x = x[0]\nshow(x)",
        {"list", "A"},
        False,  # An object of A has unknown elements.
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


def test_answers_are_what_follows_in_random_graphs() -> None:
    random = Random(36)
    for _ in range(400):
        size = random.randrange(2, 12)
        edges = {
            node: [random.randrange(size) for _ in range(random.choice([0, 1, 1, 2, 3]))]
            for node in range(size)
        }
        questions = Questions[frozenset[int]](frozenset(), frozenset({-1}), rounds=20)

        def of(
            node: int,
            edges: dict[int, list[int]] = edges,
            questions: Questions[frozenset[int]] = questions,
        ) -> frozenset[int]:
            return frozenset({node}).union(*(questions.ask((each,), of, each) for each in edges[node]))

        for node in random.sample(range(size), size):
            assert questions.ask((node,), of, node) == closure([node], edges)


def test_only_readers_of_what_grows_are_answered_anew() -> None:
    questions = Questions[frozenset[str]](frozenset(), frozenset({"?"}))
    edges = {"ring": ["quiet"], "quiet": ["ring", "reader"], "reader": ["source", "calm"], "calm": ["still"]}
    edges |= {"still": ["ring"], "source": []}
    turns: Counter[str] = Counter()

    def of(name: str) -> frozenset[str]:
        turns[name] += 1
        found = frozenset({name}).union(*(questions.ask((each,), of, each) for each in edges[name]))
        return found if name != "still" else frozenset({"still"})

    every = {name: questions.ask((name,), of, name) for name in edges}
    assert every["ring"] == {*edges}
    assert every["reader"] == {"reader", "source", "calm", "still"}
    assert turns == {"ring": 2, "quiet": 2, "reader": 1, "source": 1, "calm": 1, "still": 2}


def test_an_attribute_that_only_itself_gives_a_value_is_unknown_wherever_it_is_read() -> None:
    text = (
        "class A:\n    def __init__(self):\n        self.a = same(self.a)\n\n"
        "def same(x):\n    return x\n\nshow(A().a)\n"
    )
    for first in ("same", "show"):
        script = read_script(text)
        assert isinstance(script, Script)
        for name in sorted(("same", "show"), key=lambda name: name != first):
            (site,) = script.sites_named(name)
            assert UNKNOWN in script.names.site_values(site.node.args[0], site)


def test_what_depends_on_something_that_grew_is_asked_anew() -> None:
    questions = Revisable[frozenset[str]](frozenset(), frozenset({"?"}), rounds=6)
    cell = {"x"}

    def of(name: str) -> frozenset[str]:
        if name == "cell":
            questions.note("cell")
            return frozenset(cell)
        return questions.ask(("cell",), of, "cell") if name == "reader" else frozenset({name})

    with questions.reading("outside"):
        assert questions.ask(("reader",), of, "reader") == {"x"}
    assert questions.ask(("other",), of, "other") == {"other"}
    cell.add("y")
    assert questions.ask(("reader",), of, "reader") == {"x"}
    assert questions.forget(["cell"]) >= {("cell",), ("reader",), "outside"}
    assert ("other",) in questions.known
    assert questions.ask(("reader",), of, "reader") == {"x", "y"}
