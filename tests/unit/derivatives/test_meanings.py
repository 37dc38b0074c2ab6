"""The meanings of names in functions to differentiate: correct or refused, and never silently wrong."""

from __future__ import annotations

import ast
import copy
import inspect
import math
import random
import sys
import types
from itertools import count, islice
from typing import Any

import pytest

from support.derived import FOLDER, close, loaded, moved, numbers
from support.fixtures import rewrite_blocks
from support.random_names import ModuleAuthor
from trainshift.derivatives import Derived, Refused, derive
from trainshift.derivatives.reading.result import Mode
from trainshift.dev.examples import Example, files_of, read_examples

FILES = {each.heading: path for path in files_of(FOLDER / "names.md") for each in read_examples(path)}
CASES = [each for path in dict.fromkeys(FILES.values()) for each in read_examples(path)]
MODES: tuple[Mode, ...] = ("reverse", "forward")
# The file beside the cases, and its name.
MINE = "def act(x):\n    return x * x * x\n\n\ndef abs(x):\n    return x * x\n"


def slopes(text: str, name: str, args: dict[str, Any]) -> dict[str, list[float]]:
    """The difference quotients of a function of a file by all its numbers, with the file loaded again
    each time.
    """

    def at(param: str, place: int, step: float) -> float:
        steps = [step if each == place else 0.0 for each in range(len(numbers(args[param])))]
        given = copy.deepcopy(args)
        given[param] = moved(given[param], iter(steps))
        return numbers(getattr(loaded(text), name)(**given))[0]

    return {
        param: [
            (
                8 * (at(param, place, 1e-4) - at(param, place, -1e-4))
                - at(param, place, 2e-4)
                + at(param, place, -2e-4)
            )
            / 12e-4
            for place in range(len(numbers(value)))
        ]
        for param, value in args.items()
    }


def found_slopes(made: Derived, args: dict[str, Any]) -> tuple[Any, dict[str, list[float]]]:
    """The value, and the derivatives by all numbers, that a file's derivative returns."""
    function = made.made
    if made.mode == "reverse":
        value, bars = getattr(loaded(made.text), function)(**copy.deepcopy(args))
        return value, {name: numbers(bar) for name, bar in zip(made.wrt, bars, strict=True)}
    value, found = None, {}
    for name in made.wrt:
        dots = []
        for place in range(len(numbers(args[name]))):
            along = {
                f"{each}_dot": moved(
                    args[each],
                    iter([float(each == name and at == place) for at in count_of(args[each])]),
                    True,
                )
                for each in made.wrt
            }
            value, dot = getattr(loaded(made.text), function)(**copy.deepcopy(args), **along)
            dots += numbers(dot)
        found[name] = dots
    return value, found


def count_of(value: Any) -> range:
    return range(len(numbers(value)))


def verdict(text: str, name: str, args: dict[str, Any], mode: Mode) -> str:
    """`right`, the refusals, or the error in the derivative of a function of a file."""
    made = derive(text, name, mode)
    if isinstance(made, Refused):
        return "; ".join(f"refused: line {each.line}: {each.message}" for each in made.refusals)
    original = numbers(getattr(loaded(text), name)(**copy.deepcopy(args)))
    value, found = found_slopes(made, args)
    if numbers(value) != original:
        return f"wrong: {value} in place of {original}"
    wanted = slopes(text, name, args)
    right = all(
        close(one, other, 1e-5)
        for each in found
        for one, other in zip(found[each], wanted[each], strict=True)
    )
    return "right" if right else f"wrong: {found} in place of {wanted}"


@pytest.fixture(autouse=True)
def neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that cases import, and a `math` module that they may change."""
    mine = types.ModuleType("mine")
    exec(MINE, mine.__dict__)
    monkeypatch.setitem(sys.modules, "mine", mine)
    monkeypatch.setattr(math, "erf", math.erf)


@pytest.mark.parametrize("example", CASES, ids=[each.heading for each in CASES])
def test_names_mean_what_they_mean_in_python(example: Example, update_fixtures: bool) -> None:
    text = example.blocks["python"]
    (call,) = (kind for kind in example.blocks if kind != "python")
    node = ast.parse(call.partition(" ")[2], mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    params = inspect.getfullargspec(_as_defined(text, node.func.id)).args
    args = dict(zip(params, map(ast.literal_eval, node.args), strict=True))
    found = "".join(f"{mode}: {verdict(text, node.func.id, args, mode)}\n" for mode in MODES)
    assert "wrong" not in found
    assert "a mistake of" not in found
    if update_fixtures:
        rewrite_blocks(FILES[example.heading], example.heading, {call: found})
    else:
        assert found == example.blocks[call]


def _as_defined(text: str, name: str) -> Any:
    """A function of a file with its original definition, whatever its name means later."""
    (*_, node) = (each for each in ast.parse(text).body if getattr(each, "name", "") == name)
    assert isinstance(node, ast.FunctionDef)
    arguments = ", ".join(each.arg for each in node.args.args)
    return eval(f"lambda {arguments}: None")


def modules(item: int) -> Any:
    """Random modules whose function `f` has a value, with arguments."""
    for seed in count(item * 1_000_000):
        text = ModuleAuthor(seed).text()
        draw = random.Random(seed).uniform
        try:
            function = loaded(text).f
            names = inspect.getfullargspec(function).args
            args = {each: draw(0.2, 1.2) for each in names}
            value = function(**args)
        except (TypeError, NameError, ValueError, AttributeError, OverflowError, SyntaxError, RecursionError):
            continue
        if isinstance(value, float) and abs(value) < 1e3:
            yield seed, text, args


@pytest.mark.parametrize("item", range(4))
def test_random_modules_are_differentiated_rightly_or_refused(item: int, quick: bool) -> None:
    right = 0
    programs = 8 if quick else 25
    for seed, text, args in islice(modules(item), programs):
        for mode in MODES:
            found = verdict(text, "f", args, mode)
            assert found == "right" or found.startswith("refused"), (seed, mode, found, text)
            assert "a mistake of" not in found, (seed, mode, found, text)
            right += found == "right"
    assert right > programs // 2 - 2
