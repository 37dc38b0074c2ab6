"""The scopes that hold names, compared with those that Python's own compiler tells."""

from __future__ import annotations

import ast
import symtable

import pytest

from trainshift.python.names.scoping import name_uses, owner_of
from trainshift.python.names.script import Script, read_script

TEXT = """\
total = 1.0


def f(x, act=total):
    from math import sin as s

    def inner(v):
        nonlocal x
        global total
        x = v + total
        rate = [v * s(k) for k in (lambda k: [k])(x)]
        return rate, (lambda v: v + y)(act)

    class Config:
        rate = x

        def method(self):
            return rate, x

    y = [total := k for k in range(3)]
    return inner(x), Config, y
"""


@pytest.fixture(name="script")
def read() -> Script:
    script = read_script(TEXT)
    assert isinstance(script, Script)
    return script


@pytest.mark.parametrize(
    ("line", "name", "owner"),
    [
        (10, "x", "f"),
        (10, "v", "inner"),
        (10, "total", ""),
        (11, "rate", "inner"),
        (11, "s", "f"),
        (12, "y", "f"),
        (12, "act", "f"),
        (15, "rate", "Config"),
        (18, "rate", ""),
        (18, "x", "f"),
        (20, "total", "f"),
        (20, "range", ""),
    ],
)
def test_a_name_belongs_to_its_scope(script: Script, line: int, name: str, owner: str) -> None:
    scope = next(each for each in script.scopes if each.name == "f")
    assert isinstance(scope.node, ast.FunctionDef)
    uses = [
        each for each in name_uses(scope.node, scope) if each.node.lineno == line and each.node.id == name
    ]
    assert uses
    for use in uses:
        assert (use.owner.name if use.owner is not None else "") == owner
        assert owner_of(name, use.scope) is use.owner


def test_names_of_comprehensions_and_lambdas_are_their_own(script: Script) -> None:
    scope = next(each for each in script.scopes if each.name == "f")
    assert isinstance(scope.node, ast.FunctionDef)
    inside = [each for each in name_uses(scope.node, scope) if each.node.id in ("k", "v")]
    kinds = {(each.node.lineno, each.node.id, each.owner.kind) for each in inside if each.owner is not None}
    assert (11, "k", "comprehension") in kinds
    assert (20, "k", "comprehension") in kinds
    lambdas = [each for each in inside if each.owner is not None and isinstance(each.owner.node, ast.Lambda)]
    assert {each.node.id for each in lambdas} == {"k", "v"}


def test_globals_are_those_of_the_compiler(script: Script) -> None:
    scope = next(each for each in script.scopes if each.name == "f")
    assert isinstance(scope.node, ast.FunctionDef)
    found = {each.node.id for each in name_uses(scope.node, scope) if each.owner is None}
    wanted, waiting = (
        set(),
        [each for each in symtable.symtable(TEXT, "", "exec").get_children() if each.get_name() == "f"],
    )
    while waiting:
        table = waiting.pop()
        wanted |= {each.get_name() for each in table.get_symbols() if each.is_global()}
        waiting += table.get_children()
    # The names that the compiler itself binds in a class.
    assert found == {each for each in wanted if not each.startswith("__")}
