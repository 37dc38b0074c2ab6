"""On random functions, a value that is a tensor at run time is never read as anything else."""

from __future__ import annotations

import ast
import random
import re
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest

from support.fixtures import ROOT
from support.tensor_tracer import Tensor, traced
from trainshift.core.program import Program
from trainshift.dev.examples import Example, read_examples
from trainshift.python.names import containers
from trainshift.python.names.memo import Questions
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.domain.abstract_values import AbstractValue
from trainshift.static_graphs.expanding.door import expand
from trainshift.static_graphs.reading import evaluator, reading
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reading.reading import Reading
from trainshift.static_graphs.reading.walker import Walker

HEAD = """\
import paddle
from paddle.static import InputSpec

COUNT = 0
KEPT = [0]


class Box:
    def __init__(self):
        self.p = 0
        self.q = 0
        self.held = [0]

    def put(self, v):
        self.p = self.q
        self.q = v
        return self.p

    def hold(self, v):
        self.held.append(v)
        return self.held[0]


def swap(u, v):
    return v, u


def keep(items, v):
    items.append(v)
    return items[0]


def fill(table, v):
    table["k"] = v


def count(v):
    global COUNT
    COUNT = v
    KEPT.append(v)


def even(u, v, n):
    if n <= 0:
        return u
    return odd(v, u, n - 1)


def odd(u, v, n):
    if n <= 0:
        return 0
    return even(v, u, n - 1)


def one(v):
    return two(v)


def two(v):
    return v


@paddle.jit.to_static(full_graph=True, input_spec=[InputSpec([], "float32")])
def f(x):
    a = b = c = d = 0
    l = [0, 0]
    m = [1]
    t = (0, 0, 0)
    k = {"k": 0, "j": 1}
    o = Box()
    r = Box()

    def near():
        return a

    def hand(v):
        nonlocal b
        b = v
        return c

"""
NAMES = ("a", "b", "c", "d")
# `$n` is replaced by any of the names, `$v` by any of the values.
VALUES = """
$n | $n | $n | $n | x | 0 | $n + 1 | l[0] | m[-1] | t[0] | t[2] | k["k"] | k.get("j") | o.p | r.q | o.held[0]
near() | one(d) | even($n, 0, 4) | COUNT | KEPT[-1] | ($n if l[0] > 0 else t[1]) | paddle.abs(x)
(lambda v: v)($n) | o.put(a) | r.hold(c) | max([0, 1]) | l.pop() if len(l) > 2 else 0
"""
STATEMENTS = """
$n = $v | $n = $v | $n = $n | $n = $n | a, b, c = b, c, $v | a, d = swap($v, $v) | $n += $v | (e := $v)
l[0] = $v | m[-1] = $v | l.append($v) | m = l | l = m | l = [$v, $v] | l.insert(0, $v) | l.reverse()
t = (t[1], t[2], $v) | k["k"] = $v | k["j"] = k["k"] | k = dict(k) | $n = {"z": $v, "y": 0}["z"]
o.p = $v | o.put($v) | r.hold($v) | r = o | o = Box() | r.held = l
keep(l, $v) | fill(k, $v) | count($v) | hand($v) | m = [v for v in l if v == v] | $n = sum([$v])
"""


class _Writer:
    """Writes the body of a random function, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counters = 0

    def text(self) -> str:
        """Return a script with a static function `f`."""
        return f"{HEAD}{self._block(0)}    return a\n"

    def _block(self, deep: int, *, is_loop: bool = False) -> str:
        count = self._random.randint(2, 5)
        return indent("".join(self._statement(deep, is_loop=is_loop) for _ in range(count)), "    ")

    def _value(self) -> str:
        return self._filled(VALUES)

    def _filled(self, templates: str) -> str:
        """Return one of some templates with names and values filled in."""
        chosen = self._random.choice([each.strip() for each in re.split(r"[|\n]", templates.strip())])
        chosen = re.sub(r"\$n", lambda _: self._random.choice(NAMES), chosen)
        return re.sub(r"\$v", lambda _: self._value(), chosen)

    def _statement(self, deep: int, *, is_loop: bool) -> str:
        if deep > 2 or self._random.random() < 0.6:
            if is_loop and self._random.random() < 0.2:
                return f"if {self._value()} > 0:\n    {self._random.choice(['break', 'continue'])}\n"
            return f"{self._filled(STATEMENTS)}\n"
        way = self._random.choice(["if", "for", "for", "while", "rows", "try", "pairs"])
        value, name = self._value(), self._random.choice(NAMES)
        if way == "if":
            body, other = (self._block(deep + 1, is_loop=is_loop) for _ in range(2))
            return f"if {value} > 0:\n{body}else:\n{other}"
        body = self._block(deep + 1, is_loop=way != "try")
        if way == "try":
            other = self._block(deep + 1)
            return f"try:\n{body}    int('x')\nexcept ValueError:\n{other}finally:\n    d = {value}\n"
        self._counters += 1
        counter = f"n{self._counters}"
        return {
            "for": f"for {counter} in range({self._random.randint(1, 4)}):\n{body}",
            "rows": f"for {name} in list(l)[:4]:\n{body}",
            "pairs": f"for {name}, c in zip(l[:3], m[:3]):\n{body}",
            "while": f"{counter} = 0\nwhile {counter} < 3:\n    {counter} += 1\n{body}",
        }[way]


def _run(names: dict[str, Any]) -> object:
    layers = [each for each in names.values() if hasattr(each, "forward") and isinstance(each, type)]
    return (names["f"] if "f" in names else layers[-1]())(Tensor(2.0))


def wrongly_read(text: str) -> list[str]:
    """Return the expressions with a wrong reading when `f`, or a layer `N`, gets a tensor."""
    script = read_script(text)
    assert isinstance(script, Script)
    kinds = {}
    for function in Program(script).fact(Reading).everywhere:
        for node, value in function.kinds.items():
            if hasattr(node, "lineno"):
                span = script.span(node, function.scope)
                kinds[span.start, span.end, node.__class__.__name__] = value
    found = []
    for place, seen in traced(text, _run).items():
        known = kinds.get(place)
        if known is None:
            continue
        may_be_tensor = known.tensor is not None or known.unknown
        if ("tensor" in seen and not may_be_tensor) or (seen == {"number"} and known.is_tensor):
            line = text.count("\n", 0, place[0]) + 1
            found.append(f"{text[place[0] : place[1]]} in line {line}: {known}")
    return found


CASES = read_examples(ROOT / "tensors" / "behind_names.md")


@pytest.mark.parametrize("example", CASES, ids=lambda example: example.heading)
def test_what_is_a_tensor_in_a_run_is_read_as_one(example: Example) -> None:
    assert wrongly_read(example.blocks["python"]) == []


SPEC = 'full_graph=True, input_spec=[InputSpec([], "float32")]'
START = f"import paddle\nfrom paddle.static import InputSpec\n\n\n@paddle.jit.to_static({SPEC})\ndef f(x):\n"


@pytest.mark.slow
def test_a_chain_that_is_followed_no_further_ends_in_what_is_unknown() -> None:
    names = [f"a{number}" for number in range(90)]
    body = "".join(f"        {one} = {other}\n" for one, other in zip(names, [*names[1:], "x"], strict=True))
    text = f"{START}    {' = '.join(names)} = 0\n    for i in range(99):\n{body}"
    text += "    if a0 > 0:\n        x = x + 1\n    return x\n"
    assert wrongly_read(text) == []
    assert _truths(text) == {Truth.EITHER}


def test_what_stands_too_deep_to_be_read_is_unknown() -> None:
    deep = "".join(f"{'    ' * (level + 1)}if x > {level}:\n" for level in range(90))
    calls = f"{'(' * 60}x{' + 1)' * 60}"
    text = f"{START}{deep}{'    ' * 91}y = {calls} if x > 0 else {'-' * 90}x\n    return x\n"
    assert wrongly_read(text) == []
    assert Truth.PYTHON not in _truths(text)


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("d['k#'] = d", "d['k1']['k2']['x']"),
        ("e.append(e)", "e[0][0][0]"),
        ("d['k#'] = e; e.append(d)", "e[0]['k1'][0]"),
        ("d.update(k#=[d])", "d['k1'][0]['x']"),
        ("d = [d, d, d, d]", f"d{'[0]' * 50}"),
    ],
)
def test_containers_that_hold_themselves_many_times(line: str, inner: str) -> None:
    """Without a limit, the parts of such a value grow as the sixth power of the number of lines."""
    lines = "".join(f"    {line.replace('#', str(each))}\n" for each in range(50))
    start = f"{START}    d = {{}}\n    e = []\n{lines}"
    assert _truths(f"{start}    if x > 0:\n        x = x + 1\n    return x\n") == {Truth.GRAPH}
    assert Truth.PYTHON not in _truths(f"{start}    if {inner}:\n        x = x + 1\n    return x\n")


def test_a_function_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: object) -> AbstractValue:
        raise RecursionError

    monkeypatch.setattr(Walker, "walk", walk)
    text = f"{START}    if x > 0:\n        x = x + 1\n    return x\n"
    assert _truths(text) == {Truth.EITHER}
    script = read_script(text)
    assert isinstance(script, Script)
    refused = expand(Program(script)).refused
    assert [each.reason for each in refused] == ["its statements are nested too deeply to be read"]


def _truths(text: str, name: str = "") -> set[Truth]:
    """Return the forms of the `if`s in the function with a name, or in the last one."""
    script = read_script(text)
    assert isinstance(script, Script)
    functions = Program(script).fact(Reading).functions
    function = next((each for each in functions if each.name == name), functions[-1])
    return {function.truth(each.node) for each in function.statements if isinstance(each.node, ast.If)}


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(30))
def test_a_tensor_is_never_read_as_no_tensor(seed: int) -> None:
    text = _Writer(seed).text()
    assert wrongly_read(text) == [], text


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(0, 30, 3))
@pytest.mark.parametrize(
    ("module", "bound", "value"),
    [
        (evaluator, "_MOST_ROUNDS", 0),
        (evaluator, "_MOST_DEEP", 2),
        (reading, "_MOST_NESTED", 0),
        (reading, "_PATIENCE", 0),
        (containers, "_DEEPEST", 0),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)).rpartition(".")[2],
)
def test_a_bound_that_is_reached_is_unknown(
    module: ModuleType, bound: str, value: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, bound, value)
    text = _Writer(seed).text()
    assert wrongly_read(text) == [], text


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(0, 30, 3))
@pytest.mark.parametrize("bounds", [(3, 80, 6), (10**6, 1, 6), (10**6, 80, 0)], ids=str)
def test_names_that_are_followed_no_further_are_unknown(
    bounds: tuple[int, int, int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Questions.__init__, "__defaults__", bounds)
    text = _Writer(seed).text()
    assert wrongly_read(text) == [], text


@pytest.mark.parametrize(
    ("before", "call", "read"),
    [
        ("from other import fill", "fill(k, x)", "k[0]"),
        ("import other", "other.fill([k], x)", "k[0]"),
        ("from other import Box\nbox = Box()", "box.put(k, x)", "k[0]"),
        ("from other import fill\ndef g(h, k, x):\n    h(k, x)", "g(fill, k, x)", "k[0]"),
        ("from other import fill", "fill(K, x)", "K[0]"),
        ("from other import fill", "fill(o, x)", "o.p"),
        ("import functools\ndef fill(k, x):\n    k[0] = x", "functools.partial(fill, k)(x)", "k[0]"),
        ("def fill(k, x):\n    k[0] = x", "list(map(fill, [k], [x]))", "k[0]"),
        ("import random", "k.append(x); random.shuffle(k)", "k[0]"),
        ("import operator", "operator.setitem(k, 0, x)", "k[0]"),
        ("", "k.__setitem__(0, x)", "k[0]"),
        ("", "vars(o)['p'] = x", "o.p"),
        ("", "o.__dict__['p'] = x", "o.p"),
    ],
)
def test_what_unseen_code_may_change_is_unknown(before: str, call: str, read: str) -> None:
    text = (
        f"{START}    k = [0]\n    o = Plain()\n    o.p = 0\n    {call}\n"
        f"    if {read} > 0:\n        x = x + 1\n    return x\n"
    )
    head = f"K = [0]\n\n\nclass Plain:\n    pass\n\n\n{before}\n\n\n"
    assert _truths(head + text, "f") == {Truth.EITHER}


@pytest.mark.parametrize("call", ["print(k)", "len(k)", "paddle.stack(k)", "json.dumps(k)", "max(k)"])
def test_what_a_known_function_reads_stays_known(call: str) -> None:
    text = f"import json\n{START}    k = [0]\n    {call}\n    if k[0] > 0:\n        x = x + 1\n    return x\n"
    assert _truths(text) == {Truth.PYTHON}
