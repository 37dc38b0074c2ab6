"""What always holds of the transformations: the same results, sharing, tail calls, closed code."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from calculus.random_terms import random_function, random_program
from trainshift.calculus import TRANSFORMATIONS, Term, alpha_equal, evaluate, evaluate_dual, parse, show
from trainshift.calculus.cps import cps
from trainshift.calculus.cps_meta import cps_shift
from trainshift.calculus.forward import forward
from trainshift.calculus.machine import Run
from trainshift.calculus.names import free_names
from trainshift.calculus.plain import metacircular
from trainshift.calculus.reverse import reverse, reverse_meta, reverse_shift
from trainshift.calculus.syntax import App, Const, Lam, Reset, Shift, Var, size

PARTS, EACH = 20, 200  # 4,000 terms of each kind
POINT = Fraction(7, 3)


def parts_of(term: Term) -> list[Term]:
    """A term and all its subterms."""
    found, waiting = [], [term]
    while waiting:
        found.append(waiting.pop())
        waiting += [getattr(found[-1], field) for field, _ in found[-1].SCOPES]
    return found


def at(function: Term, x: Fraction | int = POINT) -> Run:
    return evaluate(App(function, Const(x)))


def assert_closed(code: Term) -> None:
    """Closed, without shift and reset, and without `λa. v a`."""
    assert free_names(code) == []
    for part in parts_of(code):
        assert not isinstance(part, Shift | Reset)
        if isinstance(part, Lam) and isinstance(part.body, App) and isinstance(part.body.left, Var):
            argument = part.body.right
            assert not (isinstance(argument, Var) and argument.name == part.name != part.body.left.name)


def assert_read_back(code: Term) -> None:
    """Read back as it is shown, in one spelling or the other."""
    text = show(code, ascii_only=size(code) % 2 == 0, expand=size(code) % 3 == 0)
    assert alpha_equal(parse(text), code)


@pytest.mark.parametrize("part", range(PARTS))
def test_continuation_passing_style_means_the_same(part: int, quick: bool) -> None:
    for seed in range(part * EACH, part * EACH + (EACH // 10 if quick else EACH)):
        term = random_program(seed)
        original, code = evaluate(term), cps(term)
        transformed = evaluate(code)
        assert transformed.value == original.value, show(term)
        assert evaluate(metacircular(term)).value == original.value
        assert alpha_equal(cps_shift(term), code)
        assert_closed(code)
        assert_read_back(code)
        assert size(code) <= 3 * size(term) + 100
        assert transformed.steps <= 3 * original.steps
        if seed % 4 == 0:
            assert_read_back(term)


@pytest.mark.parametrize("part", range(PARTS))
def test_derivatives_are_those_of_dual_numbers(part: int, quick: bool) -> None:
    for seed in range(part * EACH, part * EACH + (EACH // 10 if quick else EACH)):
        function = random_function(seed)
        original, dual = at(function), evaluate_dual(function, POINT).value
        assert dual.primal == original.value
        backwards = reverse(function)
        assert alpha_equal(reverse_meta(function), backwards)
        ahead = forward(function)
        assert_closed(backwards)
        assert_read_back(backwards if seed % 2 else ahead)
        limits = {"forward": (4, 13, 14), "reverse": (5, 25, 27)}
        for code, mode in ((ahead, "forward"), (reverse_shift(function), "reverse"), (backwards, "reverse")):
            found = at(code)
            operations, steps, nodes = limits[mode]
            assert found.value == dual.tangent, show(function)
            assert found.arithmetic <= operations * original.arithmetic
            assert found.steps <= steps * original.steps
            assert size(code) <= nodes * size(function) + 100


def test_random_terms_have_all_that_there_is() -> None:
    """And their derivatives are not all 0."""
    programs, functions = [random_program(seed) for seed in range(300)], [*map(random_function, range(300))]
    kinds = {type(part).__name__ for term in programs for part in parts_of(term)}
    without_control = {type(part).__name__ for term in functions for part in parts_of(term)}
    assert len(kinds) == 18
    assert kinds - without_control == {"Shift", "Reset"}
    assert sum(evaluate_dual(each, POINT).value.tangent != 0 for each in functions) > 120
    assert sum(evaluate(each).value != 0 for each in programs) > 150
    assert sum("letrec" in show(each) for each in functions) > 50


@pytest.mark.parametrize("outer", ["forward", "reverse-shift", "reverse-meta", "reverse"])
@pytest.mark.parametrize("inner", ["forward", "reverse-meta", "reverse"])
def test_a_derivative_of_a_derivative_is_the_second_one(inner: str, outer: str) -> None:
    first, second = TRANSFORMATIONS[inner].transform, TRANSFORMATIONS[outer].transform
    cubic = parse("λx. 2 * x * x * x + x * x + -5")
    assert at(second(first(cubic)), 3).value == 12 * 3 + 2
    for seed in range(60):
        function = first(random_function(seed))
        assert at(second(function)).value == evaluate_dual(function, POINT).value.tangent
    assert at(second(first(first(cubic))), 3).value == 12


# Sharing and cost


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_product_of_n_factors_becomes_a_linear_term(name: str) -> None:
    limit = {"forward": 14}.get(name, 27 if name.startswith("reverse") else 3)
    sizes = []
    for n in (10, 100, 200, 300, 400):
        product = parse("λx. " + " * ".join(["(x + 2)"] * n))
        sizes.append(size(TRANSFORMATIONS[name].transform(product)))
        assert sizes[-1] <= limit * size(product) + 100
    assert sizes[4] - sizes[3] == sizes[3] - sizes[2] == sizes[2] - sizes[1]


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_n_conditionals_in_a_row_become_a_linear_term(name: str) -> None:
    sizes = []
    for n in range(2, 13):
        term = parse("λx. λb. " + " + ".join(["(if b then x else 1)"] * n))
        sizes.append(size(TRANSFORMATIONS[name].transform(term)))
    steps = {later - earlier for earlier, later in pairwise(sizes[1:])}
    assert len(steps) == 1
    assert sizes[-1] < 172 * (27 if "reverse" in name else 14 if name == "forward" else 1)


# Proper tail calls


def numeral(n: int) -> str:
    return "inr (" * n + "inl ()" + ")" * n


LOOP = "letrec go = λn. λs. case n of _ ⇒ s or m ⇒ go m (s + 2) in go ({}) 1"


def test_a_loop_needs_no_deeper_stack_in_continuation_passing_style() -> None:
    frames = set()
    for rounds in (10, 100, 300):
        loop = parse("let n = " + numeral(rounds) + " in " + LOOP.format("n"))
        original, code = evaluate(loop), evaluate(cps(loop))
        assert original.value == code.value == 1 + 2 * rounds
        # The numeral itself is as deep as it is long; the loop is not.
        frames.add((original.frames - rounds, code.frames - rounds))
    assert len(frames) == 1
    assert all(after <= before for before, after in frames)


@pytest.mark.parametrize("rules", ["cps", "cps-shift"])
def test_a_last_call_is_given_what_the_function_was_given(rules: str) -> None:
    transform = TRANSFORMATIONS[rules].transform
    assert show(transform(parse("λf. λx. f x"))) == "λf. λk. k (λx. λk1. f x k1)"
    assert show(transform(parse("λf. λb. if b then f 1 else f 2"))) == (
        "λf. λk. k (λb. λk1. if b then f 1 k1 else f 2 k1)"
    )
