"""Functions in single-exit form have the same behaviour, and the form."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from typing import Any

import pytest

from trainshift.python.rewrite.separate_targets import separate_targets
from trainshift.python.rewrite.single_exit import PythonSingleExit
from trainshift.python.syntax.fresh_names import fresh_name

STEPS = 60


class _Author:
    """Writes a function of an oracle `c` and a protocol `say`, with exits of all kinds."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def block(self, depth: int, looping: bool) -> list[str]:
        return [line for _ in range(self.rng.randint(1, 3)) for line in self.statement(depth, looping)]

    def statement(self, depth: int, looping: bool) -> list[str]:
        self.count += 1
        here = self.count
        simple = ["say", "say", "return", "return", "chain", "pass", "raise"]
        kinds = [*simple, *(["break", "continue"] * 2 if looping else [])]
        if depth < 4:
            kinds += ["if", "if", "if", "if", "while", "for", "true"]
        match self.rng.choice(kinds):
            case "say":
                return [f"say({here})"]
            case "return":
                return [self.rng.choice([f"return {here}", "return say(0)", "return"])]
            case "chain":
                return [f"a = b = say({here})", "say((a, b))"]
            case "raise":
                return [f"raise KeyError({here})"] if self.rng.random() < 0.3 else [f"say({here})"]
            case "if":
                return self.compound(f"if c({here}):", depth, looping, "else:")
            case "while":
                return self.compound(f"while c({here}):", depth, True, "else:", after=looping)
            case "true":
                return self.compound("while True:", depth, True, "", first=f"say({here})")
            case "for":
                return self.compound(f"for i{here} in range(3):", depth, True, "else:", after=looping)
            case word:
                return [word]

    def compound(
        self, head: str, depth: int, looping: bool, other: str, first: str = "", after: bool | None = None
    ) -> list[str]:
        body = [*([first] if first else []), *self.block(depth + 1, looping)]
        found = [head, *(f"    {line}" for line in body)]
        if other and self.rng.random() < 0.4:
            orelse = self.block(depth + 1, looping if after is None else after)
            found += [other, *(f"    {line}" for line in orelse)]
        return found


def _program(seed: int) -> str:
    lines = _Author(random.Random(seed)).block(0, False)
    return "\n".join(["def f(c, say):", *(f"    {line}" for line in lines)])


def _rewritten(text: str) -> ast.FunctionDef:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}

    def fresh(base: str) -> str:
        found = fresh_name(base, used)
        used.add(found)
        return found

    body = separate_targets(function.body, fresh)
    function.body = PythonSingleExit("result", fresh).body(body)
    assert not any(isinstance(each, ast.Return) for each in ast.walk(function))
    assert not any(isinstance(each, ast.Assign) and len(each.targets) > 1 for each in ast.walk(function))
    for block in _blocks(function):
        assert not any(isinstance(each, ast.Break | ast.Continue) for each in block[:-1])
    assert not any(each.orelse for each in ast.walk(function) if isinstance(each, ast.For | ast.While))
    return function


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for each in ast.walk(node):
        for field in ("body", "orelse"):
            if isinstance(block := getattr(each, field, None), list):
                yield block


class _TooLongError(Exception):
    pass


def _run(function: ast.FunctionDef, result: str, seed: int) -> tuple[list[object], object]:
    """The output and the result of a function, with the answers of one oracle."""
    made = ast.Module([function], [])
    if result:
        body = [*function.body, ast.Return(ast.Name(result, ast.Load()))]
        made = ast.Module([ast.FunctionDef(function.name, function.args, body, [])], [])
    space: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(made), "program", "exec"), space)
    rng, said = random.Random(seed), list[object]()

    def say(what: object) -> int:
        said.append(what)
        if len(said) > STEPS:
            raise _TooLongError
        return len(said)

    def c(what: int) -> bool:
        say(("asked", what))
        return rng.random() < 0.5

    try:
        return said, space["f"](c, say)
    except (KeyError, _TooLongError) as error:
        return said, repr(error)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_functions_do_what_they_did(first: int) -> None:
    for seed in range(first, first + 50):
        text = _program(seed)
        function = ast.parse(text).body[0]
        assert isinstance(function, ast.FunctionDef)
        made = _rewritten(text)
        for run in range(6):
            assert _run(made, "result", run) == _run(function, "", run), (
                f"{text}\n\n{ast.unparse(ast.fix_missing_locations(made))}"
            )


FORMS = {
    "the rest of a block moves into the branch that goes on": (
        """
        if c:
            return 1
        y = 2
        return y
        """,
        """
        if c:
            result = 1
        else:
            y = 2
            result = y
        """,
    ),
    "one flag serves exits in nested conditionals": (
        """
        if c:
            if d:
                if e:
                    return 1
                x = 1
            y = 2
        z = 3
        """,
        """
        returned = False
        if c:
            if d:
                if e:
                    result = 1
                    returned = True
                else:
                    x = 1
            if not returned:
                y = 2
        if not returned:
            z = 3
            result = None
        """,
    ),
    "a return from inner loops leaves all of them": (
        """
        for x in c:
            for y in x:
                if y:
                    return y
                g(y)
            g(x)
        return 0
        """,
        """
        returned = False
        for x in c:
            for y in x:
                if y:
                    result = y
                    returned = True
                    break
                else:
                    g(y)
            if returned:
                break
            else:
                g(x)
        if not returned:
            result = 0
        """,
    ),
    "the else of a loop runs unless a break stopped it": (
        """
        while c:
            if d:
                break
        else:
            return 1
        return 2
        """,
        """
        stopped = False
        while c:
            if d:
                stopped = True
                break
        if not stopped:
            result = 1
        else:
            result = 2
        """,
    ),
    "no flag tells of a loop that nothing but a return ends": (
        """
        while True:
            if c:
                return 1
            g()
        """,
        """
        while True:
            if c:
                result = 1
                break
            else:
                g()
        """,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    before, after = FORMS[name]
    made = _rewritten(f"def f(c, d, e, g):{before}")
    wanted = ast.parse(f"def f(c, d, e, g):{after}")
    assert ast.unparse(ast.fix_missing_locations(made)) == ast.unparse(wanted)
