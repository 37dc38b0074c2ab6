"""Invariants of the transformations: the same results, sharing, tail calls, closed code."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest

from trainshift.calculus import TRANSFORMATIONS, Term, alpha_equal, evaluate, evaluate_dual, parse, show
from trainshift.calculus.cps import cps
from trainshift.calculus.cps_meta import cps_shift
from trainshift.calculus.forward import forward
from trainshift.calculus.machine import Reals, Run
from trainshift.calculus.names import free_names
from trainshift.calculus.plain import metacircular
from trainshift.calculus.reverse import reverse, reverse_meta, reverse_shift
from trainshift.calculus.syntax import App, Const, Lam, Real, Reset, Shift, Var, size
from trainshift.calculus.values import Dual, Value
from unit.calculus.random_terms import parts_of, random_function, random_program

PARTS, EACH = 20, 200  # 4,000 terms of each kind
POINT = Fraction(7, 3)


def at(function: Term, x: Fraction | int = POINT) -> Run:
    return evaluate(App(function, Const(x)))


class Sums(Reals):
    """Plain numbers, with a count of their sums."""

    count = 0

    def add(self, left: Value, right: Value) -> Value:
        self.count += 1
        return super().add(left, right)


def count_of_sums(function: Term) -> int:
    """The number of additions that differentiating a function makes."""
    sums = Sums()
    evaluate(App(function, Const(POINT)), sums)
    return sums.count


@dataclass(slots=True, eq=False)
class Jet(Dual):
    """A real with its first and its second derivative."""

    second: Real


class Jets:
    """Arithmetic of reals with two derivatives."""

    def constant(self, value: Real) -> Value:
        return Jet(value, 0, 0)

    def add(self, left: Value, right: Value) -> Value:
        return Jet(left.primal + right.primal, left.tangent + right.tangent, left.second + right.second)

    def multiply(self, left: Value, right: Value) -> Value:
        a, da, b, db = left.primal, left.tangent, right.primal, right.tangent
        return Jet(a * b, a * db + da * b, a * right.second + 2 * da * db + left.second * b)


def second_derivative(function: Term) -> Real:
    """The second derivative of a function, without any transformation."""
    second: Real = evaluate(App(function, Var("at")), Jets(), {"at": Jet(POINT, 1, 0)}).value.second
    return second


def assert_closed(code: Term) -> None:
    """Check that a term is closed, and has no shift or reset."""
    assert free_names(code) == []
    assert not any(isinstance(part, Shift | Reset) for part in parts_of(code))


def assert_proper_tail_calls(code: Term) -> None:
    """Without `λa. v a`."""
    for part in parts_of(code):
        if isinstance(part, Lam) and isinstance(part.body, App) and isinstance(part.body.left, Var):
            argument = part.body.right
            assert not (isinstance(argument, Var) and argument.name == part.name != part.body.left.name)


def assert_read_back(code: Term) -> None:
    """Check that a term can be parsed from its display, in both spellings."""
    for ascii_only in (True, False):
        assert alpha_equal(parse(show(code, ascii_only, expand=size(code) % 2 == 0)), code)


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
        assert_proper_tail_calls(code)
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
        sums = count_of_sums(function)
        products = original.arithmetic - sums
        assert dual.primal == original.value
        backwards = reverse(function)
        assert alpha_equal(reverse_meta(function), backwards)
        ahead = forward(function)
        shifted = reverse_shift(function)
        assert_closed(ahead)
        assert_closed(backwards)
        assert_proper_tail_calls(backwards)
        assert free_names(shifted) == []
        assert_read_back((ahead, backwards, shifted)[seed % 3])
        forwards, reverses = (2 * sums + 4 * products, 13, 14), (3 * sums + 5 * products, 25, 27)
        for code, limits in ((ahead, forwards), (shifted, reverses), (backwards, reverses)):
            found = at(code)
            operations, steps, nodes = limits
            assert found.value == dual.tangent, show(function)
            assert found.arithmetic == operations
            assert found.steps <= steps * original.steps
            assert size(code) <= nodes * size(function) + 100


def test_random_terms_have_all_that_there_is() -> None:
    """Random terms contain every construct, and their derivatives are not all 0."""
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
        function = random_function(seed)
        assert at(second(first(function))).value == second_derivative(function), show(function)
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
