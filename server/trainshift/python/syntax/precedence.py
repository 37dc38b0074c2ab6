"""Precedence of expressions: how tightly their parts bind, and where parentheses are needed.

The only module with Python's precedence rules.  `core/layout.py` makes edits from it.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct

from trainshift.python.source.source import Span
from trainshift.python.syntax.slotted_ast import kind_of


class Level(IntEnum):
    """The precedence of an expression, or the least one that a place accepts without parentheses.

    A `:=` always gets parentheses, although a few places would accept it without.
    """

    NAMED = 0
    YIELD = 1
    TUPLE = 2
    CONDITIONAL = 3
    OR = 4
    AND = 5
    NOT = 6
    COMPARISON = 7
    BIT_OR = 8
    BIT_XOR = 9
    BIT_AND = 10
    SHIFT = 11
    SUM = 12
    PRODUCT = 13
    SIGN = 14
    POWER = 15
    AWAIT = 16
    ATOM = 17


# The precedence that a place requires.
ARGUMENT = ELEMENT = Level.CONDITIONAL
BRANCH = ALTERNATIVE = ITERATED = Level.OR
STARRED = Level.BIT_OR

_LEVELS: dict[type[ast.AST], Level] = {
    ast.NamedExpr: Level.NAMED,
    ast.Yield: Level.YIELD,
    ast.YieldFrom: Level.YIELD,
    ast.Lambda: Level.CONDITIONAL,
    ast.IfExp: Level.CONDITIONAL,
    ast.Or: Level.OR,
    ast.And: Level.AND,
    ast.Not: Level.NOT,
    ast.Compare: Level.COMPARISON,
    ast.BitOr: Level.BIT_OR,
    ast.BitXor: Level.BIT_XOR,
    ast.BitAnd: Level.BIT_AND,
    ast.LShift: Level.SHIFT,
    ast.RShift: Level.SHIFT,
    ast.Add: Level.SUM,
    ast.Sub: Level.SUM,
    ast.Mult: Level.PRODUCT,
    ast.MatMult: Level.PRODUCT,
    ast.Div: Level.PRODUCT,
    ast.FloorDiv: Level.PRODUCT,
    ast.Mod: Level.PRODUCT,
    ast.UAdd: Level.SIGN,
    ast.USub: Level.SIGN,
    ast.Invert: Level.SIGN,
    ast.Pow: Level.POWER,
    ast.Await: Level.AWAIT,
}

# The precedence that places require, by parent node; all others accept a conditional.
_ASKED: dict[tuple[type[ast.AST], str], Level] = {
    (ast.Attribute, "value"): Level.ATOM,
    (ast.Subscript, "value"): Level.ATOM,
    (ast.Call, "func"): Level.ATOM,
    (ast.Await, "value"): Level.ATOM,
    (ast.Compare, "left"): Level.BIT_OR,
    (ast.Compare, "comparators"): Level.BIT_OR,
    (ast.Starred, "value"): STARRED,
    (ast.IfExp, "body"): BRANCH,
    (ast.IfExp, "test"): BRANCH,
    (ast.comprehension, "iter"): ITERATED,
    (ast.comprehension, "ifs"): ITERATED,
}


class Frame(Struct, frozen=True):
    """Code with a hole for an expression: the text before it and after it.

    `asks` is the precedence required of the expression, `level` that of the whole.  A frame that begins with
    a star makes elements of a list, which cannot have parentheses.
    """

    before: str
    after: str
    asks: Level
    level: Level = Level.ATOM

    @property
    def is_starred(self) -> bool:
        """Return whether the whole is elements of a list and no expression."""
        return self.before.startswith("*")


def product(factor: str) -> Frame:
    """``expression * factor``; `factor` begins with its operator."""
    return Frame("", f" {factor}", Level.PRODUCT, Level.PRODUCT)


def total(added: str) -> Frame:
    """``expression + added``."""
    return Frame("", f" + {added}", Level.SUM, Level.SUM)


def conditional(test: str, otherwise: str) -> Frame:
    """``expression if test else otherwise``."""
    return Frame("", f" if {test} else {otherwise}", BRANCH, Level.CONDITIONAL)


def alternative(otherwise: str) -> Frame:
    """``expression or otherwise``."""
    return Frame("", f" or {otherwise}", ALTERNATIVE, Level.OR)


def handed_to(function: str, more: str = "") -> Frame:
    """``function(expression)``, with `more` after the expression."""
    return Frame(f"{function}(", f"{more})", ARGUMENT)


def of_each(node: ast.expr, name: str, made: str) -> Frame:
    """``[made for name in expression]``, if Python allows `node` there: not if it binds a name."""
    if any(isinstance(part, ast.NamedExpr) for part in ast.walk(node)):
        return Frame(f"list(map(lambda {name}: {made}, ", "))", ARGUMENT)
    return Frame(f"[{made} for {name} in ", "]", ITERATED)


def level(node: ast.expr, code: str) -> Level:
    """Return the precedence of the expression `node` with the text `code`."""
    if isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp):
        return _LEVELS[kind_of(node.op)]
    if isinstance(node, ast.Tuple | ast.GeneratorExp) and not _is_enclosed(code):
        return Level.TUPLE if isinstance(node, ast.Tuple) else Level.NAMED
    return _LEVELS.get(kind_of(node), Level.ATOM)


def asked(parent: ast.AST, node: ast.expr) -> Level:
    """The least precedence that the place of `node` in `parent` accepts without parentheses."""
    if isinstance(parent, ast.BoolOp):
        return Level(_LEVELS[kind_of(parent.op)] + 1)
    if isinstance(parent, ast.UnaryOp):
        return _LEVELS[kind_of(parent.op)]
    if isinstance(parent, ast.BinOp):
        own = _LEVELS[kind_of(parent.op)]
        if isinstance(parent.op, ast.Pow):
            return Level.AWAIT if node is parent.left else Level.SIGN
        return own if node is parent.left else Level(own + 1)
    if isinstance(parent, ast.Dict) and None in parent.keys:
        return STARRED  # ``**node``
    for name, value in ast.iter_fields(parent):
        if value is node or (isinstance(value, list) and any(each is node for each in value)):
            return _ASKED.get((kind_of(parent), name), Level.CONDITIONAL)
    return Level.CONDITIONAL


def assigned(code: str) -> str:
    """An expression's code on the right of an assignment, if only a call's parentheses joined its lines.

    It gets parentheses if its lines would separate, or Python requires them.
    """
    try:
        alone = len(ast.parse(f"_ = {code}").body) == 1
    except SyntaxError:
        alone = False
    return code if alone else f"({code})"


def parentheses(text: str, span: Span, bounds: Span) -> list[Span]:
    """The pairs of parentheses within `bounds` directly around `span`, inside out.

    `bounds` begins where an expression or a statement does.
    """
    closing: list[int] = []
    at = span.end
    while (at := _significant(text, at, bounds.end)) < bounds.end and text[at] == ")":
        at += 1
        closing.append(at)
    opening: list[int] = []
    for offset, token in reversed(list(_tokens(text[bounds.start : span.start])) if closing else []):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        if token.string != "(":
            break
        opening.append(bounds.start + offset)
    return [Span(*pair) for pair in zip(opening, closing, strict=False)]


def does_more(node: ast.expr | ast.stmt) -> bool:
    """Return whether code has an effect besides its calls: it binds a name, awaits or yields."""
    return any(
        isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(node)
    )


def _significant(text: str, at: int, end: int) -> int:
    """The offset of the next character that is not white space, a comment or a joined line."""
    while at < end and (text[at].isspace() or text[at] in "#\\"):
        if text[at] == "#":
            while at < end and text[at] not in "\r\n":
                at += 1
        else:
            at += 1
    return at


def _tokens(text: str) -> Iterator[tuple[int, tokenize.TokenInfo]]:
    """The tokens of a piece of code, which may end inside brackets, with their offsets."""
    unified = f"({text}".replace("\r\n", " \n").replace("\r", "\n")
    lines = [f"{line}\n" for line in unified.split("\n")]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    waiting = iter(lines)
    try:
        # The parenthesis joins the lines; it is not a token of the text.
        for token in tokenize.generate_tokens(lambda: next(waiting, "")):
            if token.start > (1, 0) and token.string:
                yield starts[token.start[0] - 1] + token.start[1] - 1, token
    except tokenize.TokenError:
        return


def _is_enclosed(code: str) -> bool:
    """Return whether code begins and ends with one pair of parentheses, unlike ``(a), (b)``."""
    try:
        return code.startswith("(") and isinstance(ast.parse(f"_{code}", mode="eval").body, ast.Call)
    except SyntaxError:
        return False
