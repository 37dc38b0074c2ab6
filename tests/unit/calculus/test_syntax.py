"""Reading and showing terms: scopes, sugar, both spellings, errors by place, deep terms."""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest

from trainshift.calculus import (
    TRANSFORMATIONS,
    CalculusSyntaxError,
    Stuck,
    alpha_equal,
    difference,
    evaluate,
    parse,
    show,
)
from trainshift.calculus.names import apart, free_names, names_in
from trainshift.calculus.syntax import Const, Lam, Let

SAME = [
    ("f x y", "@ (@ f x) y"),
    ("@ @ f x y", "f x y"),
    ("f fst y", "f (fst y)"),
    ("fst y 2", "(fst y) 2"),
    ("!r x", "(!r) x"),
    ("a + b * c d", "a + (b * (c d))"),
    ("a + b + c", "(a + b) + c"),
    ("a := b + 1; c", "(a := (b + 1)); c"),
    ("a := b := c", "a := (b := c)"),
    ("a; b; c", "a; (b; c)"),
    ("λx. x; y", "λx. (x; y)"),
    ("1 + λx. x + 2", "1 + (λx. (x + 2))"),
    ("f λx. x", "f (λx. x)"),
    ("fst let x = 1 in x; y", "fst (let x = 1 in (x; y))"),
    ("shift k in k 1; 2", "shift k in (k 1; 2)"),
    ("if a then b else c; d", "if a then b else (c; d)"),
    ("case a of x ⇒ case b of y ⇒ 1 or z ⇒ 2 or w ⇒ 3", "case a of x ⇒ (case b of y ⇒ 1 or z ⇒ 2) or w ⇒ 3"),
    ("y' += !z' * y2", "y' := !y' + (!z' * y2)"),
    (r"\x. case x of a => <a> or b => ()", "λx. case x of a ⇒ ⟨a⟩ or b ⇒ ()"),
    ("let y^1 = 1 in y".replace("^1", "1^"), "let y1^ = 1 in y"),
    ("let ŷ = e in y' + fst ŷ", "let p = e in let y = fst p in let y' = snd p in y' + fst p"),
    ("let y^' = e in y' + y''", "let p = e in let y' = fst p in let y'' = snd p in y' + y''"),
    ("let x̂2 = e in x2", "let x2^ = e in x2"),
    ("let (y, z) = e in y z", "let q = e in let y = fst q in let z = snd q in y z"),
    ("letrec f = λx. f x in f", "let g = λh. λx. let f = h h in f x in let f = g g in f"),
    ("true; false", "let _ = inl () in inr ()"),
    ("2.50", "5/2"),
    ("1 // one\n + 2 // two", "1+2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_write_a_term(one: str, other: str) -> None:
    assert difference(parse(one), parse(other)) is None
    for ascii_only in (True, False):
        for expand in (True, False):
            for width in (8, 100):
                text = show(parse(one), ascii_only, expand, width)
                assert alpha_equal(parse(text), parse(one)), text
                assert text.isascii() or not ascii_only
    assert alpha_equal(apart(parse(one))[0], parse(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("λx. λy. x", "λx. λy. y"),
        ("x", "y"),
        ("1", "1e0"),
        ("λx. x y", "λx. x x"),
        ("inl 1", "inr 1"),
        ("let x = 1 in x", "(λx. x) 1"),
        ("λx. (λy. y) x", "λx. (λy. x) x"),
        ("()", "0"),
    ],
)
def test_terms_that_differ(one: str, other: str) -> None:
    assert not alpha_equal(parse(one), parse(other))


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "A term is missing before the end."),
        ("x +\n", 1, 4, "A term is missing before the end."),
        ("let x 3", 1, 7, "'=' is missing after the name, before '3'."),
        ("λ1. x", 1, 2, "A name is missing after λ, before '1'."),
        ("λx. x)", 1, 6, "')' does not belong here."),
        ("(1, 2, 3)", 1, 6, "')' is missing after a term in parentheses, before ','."),
        ("x\n  $ y", 2, 3, "'$' has no meaning here."),
        ("x - 1", 1, 3, "There is no subtraction"),
        ("f x += 1", 1, 5, "+= needs a name on its left."),
        ("letrec f = 1 in f", 1, 12, "letrec defines a function: write λ here."),
        ("_ + 1", 1, 1, "_ has no value: give it a name."),
        ("1e999", 1, 1, "This number is too large."),
        ("1/0", 1, 1, "A fraction cannot be by 0."),
        ("9" * 5000, 1, 1, "This number has too many digits."),
        ("⟨x", 1, 3, "'⟩' is missing after a term in ⟨ ⟩, before the end."),
        ("let if = 1 in 2", 1, 5, "A name is missing after let, before 'if'."),
        ("case x of y => 1", 1, 17, "'or' is missing after the first branch of case, before the end."),
        ("if x then y", 1, 12, "'else' is missing"),
        ("x or y", 1, 3, "'or' does not belong here."),
    ],
)
def test_what_cannot_be_read_has_a_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(CalculusSyntaxError) as found:
        parse(text)
    assert (found.value.line, found.value.column) == (line, column)
    assert reason in found.value.reason


def test_reals_are_exact_unless_they_have_an_exponent() -> None:
    for text, value in (("7/2", Fraction(7, 2)), ("-0.1", Fraction(-1, 10)), ("12", 12), ("1e-1", 0.1)):
        term = parse(text)
        assert isinstance(term, Const)
        assert term.value == value
        assert isinstance(term.value, float) == ("e" in text)
    for value in (1e300, -2.5e-7, 1.0, 0.1):
        shown = show(Const(value))
        assert parse(shown).value == value  # type: ignore[attr-defined]
        assert "e" in shown


def test_names_that_are_bound_twice_are_told_apart() -> None:
    term, names = apart(parse("λx. x (λx. x y) (let y = x in y) (let ŷ = x in let ŷ = y in y' y)"))
    bound = [
        name for part in _parts(term) for name in [getattr(part, "name", None)] if isinstance(part, Lam | Let)
    ]
    assert len(bound) == len(set(bound)) == 9
    assert free_names(term) == ["y"]
    assert names.fresh("x") not in names_in(term)
    assert "let ŷ2 = x in let ŷ3 = y2 in y3' y3" in show(term)


def _parts(term: object) -> list[object]:
    found, waiting = [], [term]
    while waiting:
        found.append(waiting.pop())
        waiting += [getattr(found[-1], field) for field, _ in found[-1].SCOPES]  # type: ignore[attr-defined]
    return found


def test_letters_that_are_not_ascii_are_spelled_out() -> None:
    assert show(parse("λκ. κ kappa é"), ascii_only=True) == "\\kappa1. kappa1 kappa acute"
    assert show(parse("λfé. fé"), ascii_only=True) == "\\facute. facute"
    assert show(parse("λα. λx. α"), ascii_only=True) == "\\alpha. \\x. alpha"


N = 1500
DEEP = {
    "a sum to the left": " + ".join(["x"] * N),
    "a sum to the right": "x + (" * N + "x" + ")" * N,
    "lets": "let y = f x in " * N + "y",
    "pairs": "(" * N + "x" + ", 1)" * N,
    "calls": "f (" * N + "x" + ")" * N,
    "functions": "(λy. " * N + "x" + ")" * N,
    "a sequence": "f x; " * N + "x",
    "conditions": "if true then x else " * N + "x",
    "a numeral": "inr (" * N + "x" + ")" * N,
}


@pytest.mark.parametrize("name", DEEP)
def test_terms_may_be_deeper_than_the_stack_of_python(name: str) -> None:
    assert sys.getrecursionlimit() < N
    term = parse(DEEP[name])
    assert alpha_equal(parse(show(term)), term)
    function = Let("f", parse("λz. z"), Lam("x", term))
    for each in TRANSFORMATIONS.values():
        assert free_names(each.transform(function)) == []
    evaluate(Let("f", parse("λz. z"), Let("x", Const(1), term)))


def test_a_value_may_be_deep_and_a_reference_may_hold_itself() -> None:
    from trainshift.calculus.values import show_value

    text = show_value(evaluate(parse("inr (" * N + "1" + ")" * N)).value)
    assert text.count("inr") == N
    assert show_value(evaluate(parse("let r = ref inl 1 in r := inr r; r")).value) == "ref (inr ...)"


@pytest.mark.parametrize(
    ("text", "reason", "part"),
    [
        ("let f = 3 in 1 + f 2", "3 is not a function", "f 2"),
        ("fst 1", "1 is not a pair", "fst 1"),
        ("!(1, 2)", "(1, 2) is not a reference", "!(1, 2)"),
        ("() := 2", "() is not a reference", "() := 2"),
        ("1 + λx. x", "a function is not a number", "1 + (λx. x)"),
        ("case 1 of x ⇒ x or y ⇒ y", "1 is neither inl nor inr", "case 1 of x ⇒ x or y ⇒ y"),
        ("x", "x has no value", "x"),
        ("1e300 * " + "9" * 400, "a number is too large", ""),
    ],
)
def test_a_term_without_a_value_says_why(text: str, reason: str, part: str) -> None:
    with pytest.raises(Stuck) as found:
        evaluate(parse(text))
    assert reason in found.value.reason
    assert part in show(found.value.term)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + ⟨2 * shift k in k (k 3)⟩", 13),
        ("⟨(shift k in λx. k (k x)) + 1⟩ 5", 7),
        ("1 + shift k in 5", 5),
        ("⟨let x = shift k in (k 1) + (k 2) in ⟨x * shift j in j 10⟩⟩", 30),
        ("let f = λx. shift k in k (k x) in ⟨2 * f 3⟩ + ⟨3 * f 1⟩", 21),
        ("let r = ref 0 in ⟨let x = shift k in k 1; k 2 in r := !r * 10 + x⟩; !r", 12),
        ("let x = 1 in let f = λy. x + y in let x = 100 in f 10", 11),
        ("let a = 1 in let b = 2 in " + "let c = a in " * 40 + "a + b", 3),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(parse(text)).value == value
    for rules in ("metacircular", "cps", "cps-shift"):
        assert evaluate(TRANSFORMATIONS[rules].transform(parse(text))).value == value
