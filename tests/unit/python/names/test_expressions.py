"""The table of precedence, compared with Python's own grammar."""

from __future__ import annotations

import ast

import pytest

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.names.script import Script, read_script
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import apply
from trainshift.python.syntax.precedence import (
    ELEMENT,
    ITERATED,
    STARRED,
    Frame,
    Level,
    alternative,
    asked,
    assigned,
    conditional,
    handed_to,
    level,
    product,
)

FORMS = [
    "a", "1.5", "-1", "a.b", "a[0]", "a()", "[a]", "{a: b}", "(a, b)", "(a), (b)", "a, b", "()",
    "(a for a in b)", "[a for a in b]", '"x" "y"',
    'f"{a}"', "not a", "a or b", "a and b", "a < b < c", "a in b", "a is b",
    "a | b", "a ^ b", "a & b", "a << b", "a + b", "a - b", "a * b", "a // b", "a % b", "a @ b", "+a", "~a",
    "a ** b", "await a", "lambda: a", "lambda x: x if x else a", "a if b else c", "a := b", "yield a",
    "yield from a", "(a, b) + (c, d)", "...",
]  # fmt: skip
PLACES = [
    "{}.m", "{}[0]", "{}()", "await {}", "-{}", "not {}", "~{}", "{} ** b", "b ** {}", "{} * b", "b * {}",
    "{} + b", "b + {}", "b - {}", "{} << b", "b & {}", "b ^ {}", "b | {}", "{} < b", "b < {}", "b < {} < c",
    "{} and b", "b and {}", "b or {}", "{} if b else c", "b if {} else c", "b if c else {}", "[*{}]",
    "[x for x in {}]", "[x for x in b if {}]", "[{} for x in b]", "f(b, k={})", "f({}, b)", "[b, {}]",
    "{{**{}}}", "{{b: {}}}", "{{{}: b}}", "lambda: {}", "x[{}:b]",
]  # fmt: skip
FRAMES = {
    "product": product("* n"),
    "conditional": conditional("n", "m"),
    "alternative": alternative("n"),
    "handed_to": handed_to("n"),
    "elements": Frame("*([", "] if n else [])", ELEMENT),
    "star": Frame("[n, *", "]", STARRED),
    "iterated": Frame("[n for m in ", "]", ITERATED),
    "item": Frame("", "[n]", Level.ATOM),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_asks_for_parentheses_where_python_does(place: str) -> None:
    home, asks = _home(place)
    for form in FORMS:
        bare, safe = _parsed(place.format(form)), _parsed(place.format(f"({form})"))
        fits = level(_node(form), form) >= asks
        assert not fits or bare == safe, form
        # Where none are needed, none are added; some places accept a `:=`, or an operator of their own
        # kind.
        if bare == safe and not isinstance(_node(form), ast.NamedExpr):
            assert fits or type(_node(form)) is type(home), form


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.sampled
def test_a_framed_expression_means_what_the_frame_says(place: str, name: str) -> None:
    frame = FRAMES[name]
    if frame.is_starred and place not in ("[b, {}]", "f({}, b)"):
        return
    for form in {level(_node(form), form): form for form in FORMS}.values():
        for given in (form, f"(  # why\n{form}  # not\n)"):
            text = f"async def f():\n x = {place.format(given)}\n"
            if _parsed(place.format(given)) != _parsed(place.format(f"({form})")):
                continue
            whole = f"{frame.before}({form}){frame.after}"
            expected = place.format(whole if frame.is_starred else f"({whole})")
            after = _framed(text, place, frame)
            assert _parsed(after.partition("x = ")[2], True) == _parsed(expected, True), after
            assert comments_in(after) == comments_in(text)


@pytest.mark.parametrize(
    "call", ["f(a for a in b)", "f(  # c\n (a, b) for a, b in c\n)", "f((a) for a in (b))"]
)
def test_what_only_a_call_enclosed_gets_parentheses(call: str) -> None:
    text = f"x = {call}\n"
    start, end = call.index("(") + 1, len(call) - 1
    after = _framed(text, "f({})", product("* n"))
    assert after == f"x = {call[:start]}({call[start:end]}) * n)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a", "a"), ("a, b", "a, b"), ("yield a", "yield a"), ("a := b", "(a := b)"), ("a\n+ b", "(a\n+ b)"),
        ("a  # c\n  + b", "(a  # c\n  + b)"), ('"x"\n"y"', '("x"\n"y")'), ("[a,\nb]", "[a,\nb]"),
        ("a \\\n+ b", "a \\\n+ b"), ("a for a in b", "(a for a in b)"), ("a if b else c", "a if b else c"),
    ],
)  # fmt: skip
def test_what_is_assigned_keeps_its_lines_together(code: str, expected: str) -> None:
    assert assigned(code) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_parentheses_are_found_past_comments(newline: str) -> None:
    text = 'x = f("(#", (  # "\n  # (\n  (a + b)  # )\n), c)\n'.replace("\n", newline)
    assert _framed(text, "f(0, {}, c)", product("* n")) == text.replace("(a + b)", "(a + b) * n")


def _parsed(code: str, flat: bool = False) -> str:
    """The parsed form of an expression, in brackets that keep its lines together; empty if it is invalid.

    With `flat`, ``(a or b) or c`` means the same as ``a or b or c``.
    """
    try:
        tree = ast.parse(f"async def f():\n x = (\n{code}\n)")
        return ast.dump(_Flat().visit(tree) if flat else tree)
    except SyntaxError:
        return ""


class _Flat(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        """Take in the operands of a first operand of the same kind."""
        self.generic_visit(node)
        first = node.values[0]
        if isinstance(first, ast.BoolOp) and type(first.op) is type(node.op):
            node.values[:1] = first.values
        return node


def _node(code: str) -> ast.expr:
    (function,) = ast.parse(f"async def f():\n ({code})").body
    assert isinstance(function, ast.AsyncFunctionDef)
    assert isinstance(function.body[0], ast.Expr)
    return function.body[0].value


def _home(place: str) -> tuple[ast.AST, Level]:
    """The parent of a place's hole, and the precedence that it requires."""
    for parent in ast.walk(_node(place.format("HOLE"))):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.Name) and child.id == "HOLE":
                return parent, asked(parent, child)
    raise AssertionError(place)


def _framed(text: str, place: str, frame: Frame) -> str:
    """The text with the expression in the frame, in the hole of the place."""
    script = read_script(text)
    assert isinstance(script, Script)
    statement = next(each for each in script.statements if isinstance(each.node, ast.Assign))
    assert isinstance(statement.node, ast.Assign)
    node = _at_hole(_node(place.format("HOLE")), statement.node.value)
    assert node is not None
    return apply(text, Layout(Program(script)).put(node, statement, frame))


def _at_hole(pattern: ast.AST, node: ast.AST) -> ast.expr | None:
    """The part of `node` at the hole of the pattern."""
    if isinstance(pattern, ast.Name) and pattern.id == "HOLE":
        assert isinstance(node, ast.expr)
        return node
    pairs = zip(ast.iter_child_nodes(pattern), ast.iter_child_nodes(node), strict=False)
    return next((found for each in pairs if (found := _at_hole(*each)) is not None), None)
