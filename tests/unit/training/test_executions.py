"""Executions of a script's code: how often, by whom, in which order and under which conditions."""

from __future__ import annotations

import ast

import pytest

from support.finding_fixtures import program_of
from trainshift.core.program import Program
from trainshift.python.names.linked_program import LinkedProgram
from trainshift.python.names.occurrence import of_call
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.execution.conditions import Conditions
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import Executions, innermost_loop
from trainshift.training.loops.execution_order import Course
from trainshift.training.uniformity.backward_slice import Trails


def call(program: Program, name: str = "at") -> Site:
    """The only call of a function of that name."""
    (site,) = program.script.sites_named(name)
    return site


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("at()\n", False),
        ("for x in xs:\n    at()\n", True),
        ("for x in at():\n    use(x)\n", False),
        ("while at():\n    use()\n", True),
        ("while test():\n    use()\nelse:\n    at()\n", False),
        ("while test():\n    at()\n    break\n", False),
        ("while test():\n    at()\n    if done():\n        break\n", True),
        ("while test():\n    if done():\n        at()\n        break\n", False),
        (
            "for x in xs:\n    try:\n        use()\n    except ValueError:\n        at()\n        raise\n",
            False,
        ),
        ("for x in xs:\n    try:\n        use()\n    finally:\n        at()\n", True),
        ("for x in xs:\n    def later():\n        at()\n", False),
    ],
)
def test_code_repeats_where_a_loop_may_come_to_it_again(text: str, repeats: bool) -> None:
    program = program_of(text, {})
    assert program.fact(ControlFlow).repeats(call(program).statement) is repeats
    assert program.fact(Executions).runs_once(call(program)) is not (repeats or "def later" in text)


def test_a_break_in_the_else_of_a_loop_leaves_the_loop_around_it() -> None:
    text = "while a:\n    for x in xs:\n        pass\n    else:\n        at()\n        break\n"
    loop = innermost_loop(call(program_of(text, {})).statement)
    assert loop is not None
    assert isinstance(loop.node, ast.While)


CHAIN = 70


def chain(first: str) -> str:
    """Functions that call each other in a row; `first` calls the first one."""
    links = [f"def f{number}():\n    f{number + 1}()\n" for number in range(CHAIN)]
    return "".join([*links, f"def f{CHAIN}():\n    at()\n", first])


def test_a_custom_step_is_found_through_any_number_of_callers() -> None:
    model = "class Net(tf.keras.Model):\n    def train_step(self, data):\n        f0()\n"
    program = program_of(f"import tensorflow as tf\n{chain(model)}", {})
    found = program.fact(Executions).custom_model(call(program).scope)
    assert found is not None
    assert found.name == "Net"
    program = program_of(f"import tensorflow as tf\n{chain(model)}f0()\n", {})
    assert program.fact(Executions).custom_model(call(program).scope) is None


def test_a_helper_that_calls_itself_is_still_the_step_of_its_model() -> None:
    text = (
        "import tensorflow as tf\ndef helper(n):\n    at()\n    if n:\n        helper(n - 1)\n"
        "class Net(tf.keras.Model):\n    def train_step(self, data):\n        helper(3)\n"
    )
    program = program_of(text, {})
    found = program.fact(Executions).custom_model(call(program).scope)
    assert found is not None
    assert found.name == "Net"


def test_what_is_entered_once_is_told_through_any_number_of_callers() -> None:
    program = program_of(chain("f0()\n"), {})
    assert program.fact(Executions).runs_once(call(program))
    program = program_of(chain("while test():\n    f0()\n"), {})
    assert not program.fact(Executions).runs_once(call(program))
    program = program_of(chain("f0()\nf0()\n"), {})
    assert not program.fact(Executions).runs_once(call(program))


def order(text: str, **others: str) -> list[str]:
    """The names of the calls of a program, in execution order."""
    program = program_of(text, {f"{name}.py": body for name, body in others.items()})
    workspace = program.script.workspace
    if others and workspace is not None:
        program = Program(LinkedProgram(workspace.reachable))
    return [site.name for site in program.fact(Course).calls()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b(a())\n", "a b"),
        ("def f():\n    inner()\nfirst()\nf()\nf()\nlast()\n", "first f inner f last"),
        ("if test():\n    a()\nelse:\n    b()\nc()\n", "test a b c"),
        ("try:\n    a()\nexcept E:\n    b()\nelse:\n    c()\nfinally:\n    d()\n", "a c d"),
        ("try:\n    raise E()\nexcept E:\n    b()\n", "E b"),
        ("def f():\n    a()\n    return\n    b()\nf()\n", "f a"),
        ("while True:\n    a()\nb()\n", "a"),
        ("class C(base()):\n    a()\n    def __init__(self):\n        b()\nC()\n", "base a C b"),
        ("run = lambda: a()\nb(run)\n", "b a"),
        ("for x in a():\n    b()\nelse:\n    c()\nd()\n", "a b c d"),
    ],
)
def test_the_course_comes_to_calls_in_order(text: str, expected: str) -> None:
    assert order(text) == expected.split()


def test_the_course_runs_no_guarded_code_of_an_imported_file() -> None:
    other = 'start()\nif __name__ == "__main__":\n    guarded()\nelse:\n    imported()\nend()\n'
    assert order("first()\nimport other\nlast()\n", other=other) == [
        "first", "start", "imported", "end", "last"
    ]  # fmt: skip
    assert "guarded" in order(other)


def test_the_course_goes_through_any_number_of_functions() -> None:
    links = "".join(f"def f{number}():\n    f{number + 1}()\n" for number in range(2_000))
    assert order(f"{links}f0()\n")[-1] == "f2000"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if MODE == 'a':\n    at()\n", [("a", True)]),
        ("if MODE == 'a':\n    pass\nelse:\n    at()\n", [("a", False)]),
        ("if MODE == 'a':\n    raise SystemExit\nat()\n", [("a", False)]),
        ("if MODE == 'a':\n    use()\nat()\n", []),
        ("while True:\n    if MODE == 'a':\n        break\n    at()\n", [("a", False)]),
        ("while True:\n    if MODE == 'a':\n        break\nat()\n", [("a", True)]),
        ("assert MODE == 'a'\nat()\n", [("a", True)]),
        ("try:\n    if MODE == 'a':\n        raise E\n    use()\nexcept E:\n    at()\n", []),
        ("if MODE == 'a':\n    if LEVEL == 'b':\n        at()\n", [("a", True), ("b", True)]),
        ("if MODE == 'a':\n    import sys\n    sys.exit()\nelse:\n    use()\nat()\n", [("a", False)]),
    ],
)
def test_what_holds_where_code_runs(text: str, expected: list[tuple[str, bool]]) -> None:
    program = program_of(f"import settings\nMODE = settings.mode\nLEVEL = settings.level\n{text}", {})
    found = program.fact(Conditions).of(of_call(call(program)))
    assert sorted((*each.values, each.among) for each in found) == expected


def test_a_trail_is_followed_however_long_it_is() -> None:
    links = "".join(f"def f{number}():\n    use(f{number + 1})\n" for number in range(2_100))
    program = program_of(f"{links}def f2100():\n    last()\nat(f0)\n", {})
    (given,) = call(program).node.args
    at = of_call(call(program)).part(given)
    assert call(program, "last").node in {each.node for each in program.fact(Trails).behind(at)}
