"""Questions that depend on each other in cycles have the same answers in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from trainshift.core.program import Program
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.script import Script, read_script
from trainshift.training.loops.exclusive_modes import Modes
from trainshift.training.uniformity.uniformity import Uniformity

GRAPH = {"a": "bc", "b": "a", "c": "d", "d": "cb", "e": "a"}
OWN = {"c": {1}, "e": {2}}


@pytest.mark.parametrize("order", list(permutations("abcd")), ids="".join)
def test_a_circle_has_one_answer(order: tuple[str, ...]) -> None:
    questions = Questions[frozenset[int]](frozenset(), frozenset({-1}))

    def find(node: str) -> frozenset[int]:
        found = [questions.ask((each,), find, each) for each in GRAPH[node]]
        return frozenset(OWN.get(node, ())).union(*found)

    assert {node: questions.ask((node,), find, node) for node in order} == {node: {1} for node in order}
    assert questions.ask(("e",), find, "e") == {1, 2}


def test_what_is_too_deep_is_unknown() -> None:
    questions = Questions(0, 99, deepest=10)

    def find(number: int) -> int:
        return questions.ask((number + 1,), find, number + 1)

    assert questions.ask((0,), find, 0) == 99


def program(text: str) -> Program:
    script = read_script(text)
    assert isinstance(script, Script)
    return Program(script)


def test_names_that_are_made_of_each_other_depend_on_the_rank_in_any_order() -> None:
    made = program(
        "import horovod.tensorflow as hvd\n"
        "hvd.init()\na = 0\nb = 0\nfor i in x:\n    a = b + 1\n    b = a + hvd.rank()\nf(a)\nf(b)\n"
    )
    sites = list(made.script.sites_named("f"))
    for order in (sites, sites[::-1]):
        uniformity = Uniformity(made)
        for site in order:
            assert uniformity.on_rank(Occurrence(site.node.args[0], site.scope, site.statement))


def test_a_list_depends_on_the_rank_if_what_is_put_into_it_does() -> None:
    made = program("import horovod.tensorflow as hvd\nrows = []\nrows.append(hvd.rank())\nf(rows)\n")
    (site,) = made.script.sites_named("f")
    assert made.fact(Uniformity).on_rank(of_call(site).part(site.node.args[0]))


def test_functions_that_call_each_other_exclude_nothing() -> None:
    made = program("def f(n):\n    one()\n    g(n)\n\ndef g(n):\n    two()\n    f(n)\n\nf(1)\n")
    (one,), (two,) = (list(made.script.sites_named(name)) for name in ("one", "two"))
    modes = Modes(made)
    assert not modes.exclude(of_call(one), of_call(two), [])
    assert not modes.exclude(of_call(two), of_call(one), [])
