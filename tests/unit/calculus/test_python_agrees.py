"""Derivatives of Python functions (AD31 to AD41) equal those of equivalent terms (AD16 to AD20)."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple

import pytest

from support.derived import close, loaded
from trainshift.calculus import TRANSFORMATIONS, Term, evaluate, evaluate_dual, parse
from trainshift.calculus.syntax import Const
from trainshift.calculus.values import Dual
from trainshift.derivatives import Derived, derive
from unit.calculus.python_terms import Writer
from unit.calculus.random_terms import random_function

Mode = Literal["forward", "reverse"]
MODES: tuple[Mode, ...] = ("forward", "reverse")
POINTS = (Fraction(-3, 2), Fraction(1, 3), Fraction(2))


class Same(NamedTuple):
    """A rule with a Python function ``f(x)`` to which it applies, and the equivalent term."""

    rule: str
    python: str
    term: str


SAME = [
    Same("AD31", "return x * x + 3 * x", r"\x. x * x + 3 * x"),
    Same(
        "AD32", "y = x * x\n    z = y * x\n    return z + y", r"\x. let y = x * x in let z = y * x in z + y"
    ),
    Same(
        "AD33",
        "n = 3\n    if n % 2 == 0:\n        return x * x\n    y = x * 5\n    return y * x",
        r"\x. letrec even = \n. case n of _ => true or m => if even m then false else true in "
        r"if even (inr (inr (inr (inl ())))) then x * x else let y = x * 5 in y * x",
    ),
    Same(
        "AD34",
        "y = 1\n    for i in range(4):\n        y = y * x + 2\n    return y",
        r"\x. letrec go = \n. case n of _ => 1 or m => go m * x + 2 in go (inr (inr (inr (inr (inl ())))))",
    ),
    Same(
        "AD35",
        "k = 3 * x\n    def g(y):\n        return k * y\n    return g(g(x))",
        r"\x. let k = 3 * x in let g = \y. k * y in g (g x)",
    ),
    Same(
        "AD36",
        "p = (x * x, (x, 2))\n    return p[0] * p[1][0] + p[0] * p[1][1]",
        r"\x. let p = (x * x, (x, 2)) in fst p * fst (snd p) + fst p * snd (snd p)",
    ),
    Same(
        "AD37",
        "r = [x]\n    r[0] = r[0] * x\n    r[0] += x\n    return r[0] * r[0]",
        r"\x. let r = ref x in r := !r * x; r += x; !r * !r",
    ),
    Same(
        "AD38",
        "v = np.array([1.0, 2.0]) * x + x\n    return np.sum(v * v)",
        r"\x. let v = (1 * x + x, 2 * x + x) in fst v * fst v + snd v * snd v",
    ),
    Same("AD39", "y = (x + 1) * (x + 2)\n    return y * y", r"\x. let y = (x + 1) * (x + 2) in y * y"),
    Same(
        "AD40",
        "r = [x]\n    y = r[0] * r[0]\n    r[0] = 7\n    return y * x + r[0]",
        r"\x. let r = ref x in let y = !r * !r in r := 7; y * x + !r",
    ),
    Same(
        "AD41",
        "# A comment.\n    y = x * x  # And one beside.\n\n    return y * x",
        r"\x. let y = x * x in y * x",
    ),
]


def by_term(term: Term, rules: str, at: Fraction) -> float:
    """The derivative of a term at a point, by a set of rules of the calculus."""
    found = evaluate(TRANSFORMATIONS[rules].at(term, Const(at))).value
    return float(found)


def by_python(text: str, mode: Mode, at: float) -> float | None:
    """The derivative of ``f(x)`` at a point; None if it is refused."""
    found = derive(text, "f", mode, ("x",))
    if not isinstance(found, Derived):
        return None
    module = loaded(found.text)
    if mode == "forward":
        return float(module.f_jvp(at, x_dot=1.0)[1])
    return float(module.f_grad(at)[1][0])


@pytest.mark.parametrize("same", SAME, ids=lambda same: same.rule)
@pytest.mark.parametrize("mode", MODES)
def test_a_rule_for_python_gives_the_derivative_of_the_calculus(same: Same, mode: Mode) -> None:
    text = f"import numpy as np\n\n\ndef f(x):\n    {same.python}\n"
    term = parse(same.term)
    rules = ["forward"] if mode == "forward" else ["reverse", "reverse-shift", "reverse-meta"]
    for point in POINTS:
        found = by_python(text, mode, float(point))
        assert found is not None, same.rule
        for name in rules:
            assert close(found, by_term(term, name, point)), (same.rule, name, point)


def test_every_rule_for_python_has_a_term() -> None:
    assert [same.rule for same in SAME] == [f"AD{number}" for number in range(31, 42)]


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(10, 200, 10))
def test_random_terms_have_the_same_derivative_as_python(first: int) -> None:
    differentiated = 0
    for seed in range(first, first + 10):
        term = random_function(seed)
        text = Writer().function("f", term)
        run = evaluate_dual(term, Fraction(7, 10)).value
        assert isinstance(run, Dual)
        assert close(loaded(text).f(0.7), float(run.primal)), text
        for mode in MODES:
            found = by_python(text, mode, 0.7)
            if found is not None:
                differentiated += 1
                assert close(found, float(run.tangent)), (seed, mode)
    # Functions whose value does not depend on x are refused.
    assert differentiated >= 6
