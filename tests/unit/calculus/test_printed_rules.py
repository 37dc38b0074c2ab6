"""The deviations from the source document: each rule as printed, and its failure in a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.fixtures import ROOT
from trainshift.calculus import (
    CalculusSyntaxError,
    Refused,
    Stuck,
    Term,
    alpha_equal,
    evaluate,
    evaluate_dual,
    parse,
    show,
)
from trainshift.calculus.cps import Context, Cps, cps, eta, identity
from trainshift.calculus.cps_meta import CpsMeta, cps_shift
from trainshift.calculus.forward import Forward, forward
from trainshift.calculus.names import Names, apart, free_names
from trainshift.calculus.reverse import Reverse, reverse, reverse_meta, reverse_shift
from trainshift.calculus.sugar import let_pair
from trainshift.calculus.syntax import App, Case, Const, Lam, Let, Pair, Shift, Var, rebuilt, size
from trainshift.calculus.trampoline import Resume, Work, done, reset, run, shift
from trainshift.calculus.values import Closure


def value_of(text: str) -> object:
    return evaluate(parse(text)).value


@contextmanager
def stuck(reason: str) -> Iterator[None]:
    with pytest.raises(Stuck) as found:
        yield
    assert reason in found.value.reason


def printed(rules: type[Cps], text: str) -> Term:
    """The term in continuation-passing style by other rules."""
    term, names = apart(parse(text))
    return run(rules(names).translate(term, identity))


def test_c30_an_increase_is_by_any_term() -> None:
    """`y1 += !y2` alone is defined, so that `a += !b * 3` reads as `(a := !a + !b) * 3`."""
    with stuck("() is not a number"):
        value_of("let a = ref 1 in let b = ref 2 in (a := !a + !b) * 3")
    assert value_of("let a = ref 1 in let b = ref 2 in a += !b * 3; !a") == 7


def test_c31_the_names_of_letrec_are_new() -> None:
    """`f'` is a name like others, and may stand in the function."""
    inside = "case n of _ ⇒ f' or m ⇒ f m"
    as_printed = f"let f' = λf'. λn. let f = f' f' in {inside} in let f = f' f' in f (inr true)"
    assert isinstance(value_of(f"let f' = 5 in {as_printed}"), Closure)
    assert value_of(f"let f' = 5 in letrec f = λn. {inside} in f (inr true)") == 5


def test_c32_nothing_follows_the_term_of_a_shift() -> None:
    """The body is `⟨@ k2 ⟦e⟧⟩`, and no k2 is in scope there."""

    class Printed(CpsMeta):
        def shift(self, term: Shift) -> Work[Term]:
            k2 = Var("k2")

            def body(resume: Resume) -> Work[Term]:
                rest: Term = yield resume(Var("v"))
                inside: Term = yield reset(self.delimited(term.body, k2))
                return Let(term.name, Lam("v", Lam("k2", App(k2, rest))), inside)

            return shift(body)

    term, names = apart(parse("1 + shift k in k 5"))
    code = run(Printed(names).delimited(term))
    assert free_names(code) == ["k2"]
    with stuck("k2 has no value"):
        evaluate(code)
    assert evaluate(cps_shift(term)).value == 6


def test_c33_a_function_returns_to_its_caller() -> None:
    """Its body ends in κ, which follows the function itself, and not in k."""

    class Printed(Cps):
        def function(self, term: Lam, context: Context) -> Work[Term]:
            body: Term = yield self.translate(term.body, context)
            code: Term = yield context(Lam(term.name, Lam(self.names.fresh("k"), body)))
            return code

    with stuck("is not a"):
        evaluate(printed(Printed, "(λy. y + 1) 2 * 10"))
    assert evaluate(cps(parse("(λy. y + 1) 2 * 10"))).value == 30


def test_c34_a_call_is_emitted() -> None:
    """The inner call is one of translation time, but m and n are code."""

    class Printed(Cps):
        def call(self, term: App, context: Context) -> Work[Term]:
            def both(function: Term, argument: Term) -> Work[Term]:
                a = self.names.fresh("a")
                rest: Term = yield context(Var(a))
                return App(function(argument), eta(a, rest))  # type: ignore[operator]

            return self.operands(term, both)

    with pytest.raises(TypeError, match="not callable"):
        printed(Printed, "(λy. y + 1) 2")
    assert evaluate(cps(parse("(λy. y + 1) 2"))).value == 3


def test_c35_what_follows_a_case_is_not_copied() -> None:
    """κ in both branches doubles the code with each conditional."""

    class Printed(Cps):
        def case(self, term: Case, context: Context) -> Work[Term]:
            def with_value(value: Term) -> Work[Term]:
                left: Term = yield self.translate(term.left, context)
                right: Term = yield self.translate(term.right, context)
                return Case(value, term.left_name, left, term.right_name, right)

            return self.translate(term.of, with_value)

    sizes = []
    for n in (10, 11, 12):
        text = "λb. " + " + ".join(["(if b then 1 else 2)"] * n)
        sizes.append(size(printed(Printed, text)))
    assert sizes[2] > 50_000
    assert sizes[2] > 2 * sizes[1] > 4 * sizes[0]
    assert size(cps(parse(text))) < 200


def test_c36_the_continuation_of_a_case_is_made_after_what_it_looks_at() -> None:
    """Made before, it does the same, but the two ways to write the rules give different code."""

    class Printed(Cps):
        def case(self, term: Case, context: Context) -> Work[Term]:
            a, k = self.names.fresh("a"), self.names.fresh("k")
            rest: Term = yield context(Var(a))

            def within() -> Work[Term]:
                return self.translate(term.of, lambda value: self.branches(term, value, Var(k)))

            code: Term = yield self.let(k, eta(a, rest), within)
            return code

    text = "1 + (case (λx. inl x) 3 of y ⇒ y * 2 or z ⇒ z)"
    code = printed(Printed, text)
    assert evaluate(code).value == evaluate(parse(text)).value == 7
    assert not alpha_equal(code, cps_shift(parse(text)))
    assert alpha_equal(cps(parse(text)), cps_shift(parse(text)))


def test_c37_only_a_function_that_does_nothing_more_is_left_out() -> None:
    """`λy. @ e y` becomes e, whatever e is: also where it has y in it."""

    def printed_eta(name: str, code: Term) -> Term:
        if isinstance(code, App) and isinstance(code.right, Var) and code.right.name == name:
            return code.left
        return Lam(name, code)

    class Printed(Cps):
        def function(self, term: Lam, context: Context) -> Work[Term]:
            k = self.names.fresh("k")
            body: Term = yield self.translate(term.body, lambda value: done(App(Var(k), value)))
            code: Term = yield context(printed_eta(term.name, printed_eta(k, body)))
            return code

    text = "(λx. x x) (λy. 1)"
    with stuck("has no value"):
        evaluate(printed(Printed, text))
    assert evaluate(cps(parse(text))).value == 1


class Overtaken(Cps):
    """The rules for ref, `!`, `:=` and ⟨ ⟩ as they are printed: they hand on code."""

    def kept(self, code: Term, context: Context) -> Work[Term]:
        return context(code)


class OvertakenReverse(Overtaken, Reverse):
    """Reverse mode with these rules."""


def test_c38_what_reads_a_reference_is_not_overtaken() -> None:
    text = "let r = ref 1 in !r * (let z = r := 2 in (λy. y) 5)"
    assert value_of(text) == evaluate(cps(parse(text))).value == 5
    assert evaluate(printed(Overtaken, text)).value == 10

    function = parse("λx. let r = ref x in !r * (r := x + x; x)")
    assert evaluate_dual(function, 3).value.tangent == 6
    assert evaluate(App(reverse(function), Const(3))).value == 6
    term, names = apart(function)

    def swept(pair: Term) -> Term:
        end = parse("λr. let ŷ = r in y' := 1")
        return run(OvertakenReverse(names).translate(term, lambda dual: done(App(App(dual, pair), end))))

    whole = parse("λx0. let p = (x0, ref 0) in hole; !(snd p)")
    code = with_hole(whole, swept(Var("p")))
    assert evaluate(App(code, Const(3))).value == 12


def with_hole(term: Term, code: Term) -> Term:
    """The term with code in place of the name `hole`; nothing is renamed."""
    if isinstance(term, Var):
        return code if term.name == "hole" else term
    if isinstance(term, Const):
        return term
    return rebuilt(term, {field: with_hole(getattr(term, field), code) for field, _ in term.SCOPES})


@pytest.mark.parametrize("name", ["loop", "list", "tree"])
def test_c39_the_rules_that_are_lost_agree_with_each_other(name: str) -> None:
    function = parse((ROOT / "calculus" / f"{name}.txt").read_text(encoding="utf-8"))
    wanted = evaluate_dual(function, 4).value.tangent
    for transform in (reverse_shift, reverse_meta, reverse):
        assert evaluate(App(transform(function), Const(4))).value == wanted
    assert alpha_equal(reverse(function), reverse_meta(function))


def test_c40_a_function_to_differentiate_has_no_free_names() -> None:
    """In `λx. let ŷ = @ D(f) (x, 1) in y'`, the x captures that of f."""
    function = parse("λz. z * x")
    names = Names(["x", "z"])
    dual = run(Forward(names).translate(function))
    as_printed = Lam("x", let_pair("y^", "y", "y'", App(dual, Pair(Var("x"), Const(1))), Var("y'")))
    with stuck("3 is not a pair"):
        evaluate(App(as_printed, Const(3)), given={"x": evaluate(parse("(5, 0)")).value})
    for transform in (forward, reverse_shift, reverse, reverse_meta):
        with pytest.raises(Refused, match="x is free"):
            transform(function)


LOOP = """λx. let l = inr (inr (inl ())) in
  let f0 = λf. λll. λac. case ll of y1 ⇒ ac or y2 ⇒ f f y2 (x_0 * ac) in f0 f0 l 1"""


def test_c41_the_loop_multiplies_by_x() -> None:
    """The term multiplies by x_0, which is unbound, and the result by x, which is not a pair there."""
    with stuck("x_0 has no value"):
        evaluate(App(parse(LOOP), Const(3)))
    corrected = (ROOT / "calculus" / "loop_gradient.txt").read_text(encoding="utf-8")
    with stuck("3 is not a pair"):
        evaluate(App(parse(corrected.replace("let ẑ1 = x̃", "let ẑ1 = x")), Const(3)))
    assert evaluate(App(parse(corrected), Const(3))).value == 6


def test_c42_the_tree_goes_on_after_the_inner_call() -> None:
    """Without the `;`, the inner call gets z1' too, and nothing is left to increase."""
    corrected = (ROOT / "calculus" / "tree_gradient.txt").read_text(encoding="utf-8")
    as_printed = corrected.replace("w2' += !w'));", "w2' += !w'))")
    assert as_printed != corrected
    with pytest.raises(CalculusSyntaxError, match="needs a name on its left"):
        parse(as_printed)
    assert evaluate(App(parse(corrected), Const(3))).value == 2


def test_c43_trees_are_data_however_they_are_coded() -> None:
    """Leaves that contain reals, as in the text, or nodes that do, as in the example: neither needs a
    rule.
    """
    leaves = """λx. letrec sum = λt. case t of leaf ⇒ leaf * x or node ⇒ sum (fst node) + sum (snd node) in
        sum (inr (inl 5, inl 6))"""
    nodes = """λx. letrec sum = λt. case t of _ ⇒ 0 or node ⇒
        fst node * x + sum (fst (snd node)) + sum (snd (snd node)) in
        sum (inr (5, (inl (), inr (6, (inl (), inl ())))))"""
    for text in (leaves, nodes):
        for transform in (forward, reverse_shift, reverse, reverse_meta):
            assert evaluate(App(transform(parse(text)), Const(2))).value == 11, show(parse(text))
    with stuck("is not a"):  # the example's function, called with the tree of the text
        evaluate(App(parse(nodes.split("sum (inr")[0] + "sum (inr (inl 5, inl 6))"), Const(2)))
