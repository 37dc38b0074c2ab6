"""The three examples of the source document, with the derivatives it prints: a loop, a list and a tree."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import pytest

from support.fixtures import ROOT
from trainshift.calculus import TRANSFORMATIONS, Term, alpha_equal, evaluate, evaluate_dual, parse, show
from trainshift.calculus.names import apart
from trainshift.calculus.syntax import App, Const, Let, Real, Var, rebuilt
from trainshift.calculus.trampoline import Work, run

POINTS = (0, 3, Fraction(-7, 2), 10)
Formula: TypeAlias = Callable[[Real], Real]
VALUES: dict[str, Formula] = {"loop": lambda x: x * x, "list": lambda x: 30 * x, "tree": lambda x: 5 + 2 * x}
DERIVATIVES: dict[str, Formula] = {"loop": lambda x: 2 * x, "list": lambda x: 30, "tree": lambda x: 2}
RULES = [name for name, each in TRANSFORMATIONS.items() if each.is_derivative]


def example(name: str) -> Term:
    return parse((ROOT / "calculus" / f"{name}.txt").read_text(encoding="utf-8"))


def contracted(term: Term) -> Term:
    """The term without lets that only give a variable another name: `let!` all over."""
    meant: dict[str, Term] = {}

    def within(term: Term) -> Work[Term]:
        if isinstance(term, Var):
            return meant.get(term.name, term)
        if isinstance(term, Let):
            value: Term = yield within(term.value)
            if isinstance(value, Var):
                meant[term.name] = value
                rest: Term = yield within(term.body)
                return rest
        parts = {}
        for field, _ in term.SCOPES:
            parts[field] = yield within(getattr(term, field))
        return rebuilt(term, parts) if parts else term

    return run(within(apart(term)[0]))


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("rules", ["reverse", "reverse-meta"])
def test_the_transformation_is_the_one_that_is_printed(name: str, rules: str) -> None:
    made = TRANSFORMATIONS[rules].transform(example(name))
    printed = example(f"{name}_gradient")
    assert alpha_equal(contracted(made), contracted(printed)), show(made)


@pytest.mark.parametrize("x", POINTS)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_values_and_derivatives(name: str, x: Real) -> None:
    function = example(name)
    wanted = DERIVATIVES[name](x)
    assert evaluate(App(function, Const(x))).value == VALUES[name](x)
    assert evaluate_dual(function, x).value.tangent == wanted
    assert evaluate(App(example(f"{name}_gradient"), Const(x))).value == wanted
    for rules in RULES:
        assert evaluate(TRANSFORMATIONS[rules].at(function, Const(x))).value == wanted, rules
    for rules in ("metacircular", "cps", "cps-shift"):
        assert evaluate(TRANSFORMATIONS[rules].at(function, Const(x))).value == VALUES[name](x), rules
