"""Following values: the possible sources of an expression's value, on any path."""

from __future__ import annotations

import ast

import pytest

from trainshift.core.program import Program
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script, read_script
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.execution.origins import Origins
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rate_cases import RateCases
from trainshift.training.learning_rates.rate_kinds import RateKind
from trainshift.training.uniformity.uniformity import Uniformity

# Paths by which a value `made()` reaches the last line, with `other()` beside it where named.
WAYS = [
    ("one if c else two", "one = made()\ntwo = other()\n", {"made()", "other()"}),
    ("cached or net", "cached = made()\nnet = other()\n", {"made()", "other()"}),
    ("cached and net", "cached = other()\nnet = made()\n", {"made()", "other()"}),
    ("(again := net)", "net = made()\n", {"made()"}),
    ("x", "if (x := made()):\n    pass\n", {"made()"}),
    ("x", "x, y = made(), other()\n", {"made()"}),
    ("x", "y, (z, x) = other(), (other(), made())\n", {"made()"}),
    ("x", "x, *rest = made(), other(), other()\n", {"made()"}),
    ("x", "*rest, x = other(), other(), made()\n", {"made()"}),
    ("x", "first, *middle, x = other(), other(), made()\n", {"made()"}),
    ("rest[0]", "first, *rest, last = other(), made(), other()\n", {"made()"}),
    ("rest[-1]", "first, *rest = other(), other(), made()\n", {"made()"}),
    ("x", "for x in [made(), *[other()]]:\n    pass\n", {"made()", "other()"}),
    ("x", "*all, x = [other(), *other(), made()]\n", {"made()"}),
    ("x", "pair = made(), other()\nx, y = pair\n", {"made()"}),
    ("x", "def build():\n    return other(), made()\n\n\ny, x = build()\n", {"made()"}),
    ("x", "a, b = other(), made()\nb, a = a, b\nx = a\n", {"made()"}),
    ("x", "for (y, x), z in [((other(), made()), other())]:\n    pass\n", {"made()"}),
    ("x", "for i, x in enumerate([made()]):\n    pass\n", {"made()"}),
    ("x", "for y, x in zip([other()], [made()]):\n    pass\n", {"made()"}),
    ("x", "for k, x in {'a': made()}.items():\n    pass\n", {"made()"}),
    ("x", "xs = []\nxs.append(made())\nfor x in xs:\n    pass\n", {"made()"}),
    ("x", "xs = []\nxs.append(made())\nys = xs\nfor x in ys:\n    pass\n", {"made()"}),
    ("x", "xs = []\nxs.extend([made()])\nfor x in xs:\n    pass\n", {"made()"}),
    ("d['a']", "d = {'a': made(), 'b': other()}\n", {"made()"}),
    ("d['a']", "d = {}\nd['a'] = made()\nd['b'] = other()\n", {"made()"}),
    ("d['a']", "d = dict(a=made(), b=other())\n", {"made()"}),
    ("f()", "def f(x=made()):\n    return x\n\n\n", {"made()"}),
    ("f(other())", "def f(x=made()):\n    return x\n\n\n", {"other()"}),
    ("f(y=made())", "def f(x=other(), *, y=other()):\n    return y\n\n\n", {"made()"}),
    ("f(other(), made())", "def g(a, b):\n    return b\n\n\ndef f(*v):\n    return g(*v)\n\n\n", {"made()"}),
    ("f(made())", "def g(a, b):\n    return a\n\n\ndef f(v):\n    return g(v, other())\n\n\n", {"made()"}),
    ("f()", "def g(a=made()):\n    return a\n\n\ndef f(*v):\n    return g(*v)\n\n\n", {"made()"}),
    ("f(**{'a': made(), 'b': other()})", "def f(a, b):\n    return a\n\n\n", {"made()"}),
    ("f(**{'b': other()})", "def f(a=made(), b=None):\n    return a\n\n\n", {"made()"}),
    ("(lambda: made())()", "", {"made()"}),
    (
        "p(other())",
        "from functools import partial\n\n\ndef f(x, y):\n    return x\n\n\np = partial(f, made())\n",
        {"made()"},
    ),
    (
        "p(made())",
        "from functools import partial\n\n\ndef f(x, y):\n    return y\n\n\np = partial(f, other())\n",
        {"made()"},
    ),
    (
        "t['a'](other())",
        "from functools import partial\n\n\ndef f(x, y):\n    return y\n\n\n"
        "t = {'a': partial(f, y=made())}\n",
        {"made()"},
    ),
    ("o.x", "class O:\n    def __init__(self):\n        self.x = made()\n\n\no = O()\n", {"made()"}),
    ("o.x", "class O:\n    x = made()\n\n\no = O()\n", {"made()"}),
    ("o.x", "class O:\n    @property\n    def x(self):\n        return made()\n\n\no = O()\n", {"made()"}),
    ("o.x", "class O:\n    pass\n\n\no = O()\no.x = made()\n", {"made()"}),
    ("o(1)", "class O:\n    def __call__(self, n):\n        return made()\n\n\no = O()\n", {"made()"}),
    (
        "a.x",
        "class A:\n    def __init__(self):\n        self.x = made()\n\n\n"
        "class B:\n    def __init__(self):\n        self.x = other()\n\n\na = A()\n",
        {"made()"},
    ),
    ("await f()", "async def f():\n    return made()\n\n\n", {"?"}),
    ("f(*pair)", "pair = made(), other()\n\n\ndef f(x=other()):\n    return x\n\n\n", {"?"}),
    ("x", "x, y = load()\n", {"?"}),
    ("x", "for x in load():\n    pass\n", {"?"}),
    ("x", "for x in {'a': made()}:\n    pass\n", {"?"}),
    ("f()", "async def f():\n    return made()\n\n\n", {"?"}),
    ("x", "x = made()\nx = x\n", {"made()"}),
    ("x", "while c:\n    x = y\n    y = x\n", set()),
]


def read_last(text: str) -> tuple[Script, Occurrence]:
    """The script, and the expression in its last line."""
    script = read_script(text)
    assert isinstance(script, Script)
    statement = script.top[-1]
    assert isinstance(statement.node, ast.Expr)
    return script, Occurrence(statement.node.value, statement.scope, statement)


def ends(script: Script, start: Occurrence) -> set[str]:
    """The texts of a value's origins, with "?" for unknown ones."""
    found: set[str] = set()
    seen: set[tuple[ast.expr, int]] = set()
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if (at.node, id(at.scope)) in seen:
            continue
        seen.add((at.node, id(at.scope)))
        step = script.names.steps_back(at)
        if step is None:
            found.add(ast.unparse(at.node))
        else:
            found.update({"?"} if step.unseen else ())
            waiting += step.sources
    return found


def name(way: tuple[str, str, set[str]]) -> str:
    """The name of a path in pytest."""
    return f"{way[1].strip()} -> {way[0]}".replace("\n", ";")


SHOWN = [way for way in WAYS if "made()" in way[2]]
WAY = ("last", "before", "expected")


@pytest.mark.parametrize(WAY, WAYS, ids=map(name, WAYS))
def test_a_value_is_followed_to_where_it_is_made(last: str, before: str, expected: set[str]) -> None:
    assert ends(*read_last(f"{before}{last}\n")) == expected


@pytest.mark.parametrize(WAY, SHOWN, ids=map(name, SHOWN))
def test_all_who_follow_values_agree(last: str, before: str, expected: set[str]) -> None:
    """All agree: the possible values, their creation, the calls that reach it, and its dependence on
    ranks.
    """
    script, at = read_last(f"from factory import made, other\n{before}{last}\n")
    values = script.names.values(at.node, at.scope, at.statement)
    calls = {ast.unparse(getattr(value, "node", at.node)) for value in values} - {last}
    assert calls == expected
    made = Program(script).fact(Origins).of(at)
    origins = {ast.unparse(each) for each in made if isinstance(each, ast.Call)} - {last}
    assert origins >= expected or origins == set()
    wanted = {site.node: site.name for site in script.sites_named("made")}
    assert reaching_calls(script, wanted, at.node, at.scope, at.statement) == ["made"]


@pytest.mark.parametrize(WAY, SHOWN, ids=map(name, SHOWN))
def test_a_rate_that_is_scaled_is_seen_whatever_way_it_comes(
    last: str, before: str, expected: set[str]
) -> None:
    body = f"{before}{last}\n".replace("made()", "hvd.size()").replace("other()", "0.1")
    script, at = read_last(f"import horovod.tensorflow as hvd\n{body}")
    program = Program(script)
    assert program.fact(Horovod).scaled(at.node, at.scope, at.statement)
    assert not program.fact(Uniformity).on_rank(at)
    assert RateCases(program).kinds(at) & RateKind.SCALED


@pytest.mark.parametrize(
    "last",
    ["await f()", "0.1 * scale", "pick(*pair)", "[x for x in pair][0]", "min(*pair)", "f'{pair}'"],
)
def test_what_is_not_taken_apart_still_depends_on_its_parts(last: str) -> None:
    before = (
        "import horovod.tensorflow as hvd\n\n\nasync def f():\n    return hvd.size()\n\n\n"
        "scale = hvd.size()\npair = hvd.size(), 0.1\npick = unseen\n"
    )
    script, at = read_last(f"{before}{last}\n")
    assert Program(script).fact(Horovod).scaled(at.node, at.scope, at.statement)
