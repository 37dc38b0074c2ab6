"""Lexer: the words and signs of a text, with their places."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from trainshift.calculus.syntax import Real

_CORE = {"let", "in", "fst", "snd", "ref", "inl", "inr", "case", "of", "or", "shift"}
KEYWORDS = frozenset(_CORE | {"true", "false", "if", "then", "else", "letrec"})
_SIGNS = {"\\": "λ", "=>": "⇒", "<": "⟨", ">": "⟩"}
_HATS = {"\u0302": "^", "\u0303": "~"}
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<number>[0-9]+(?:/(?=[0-9])[0-9]+|(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))
    |(?P<name>(?!λ)[^\W\d](?:(?!λ)\w|[\u0300-\u036f])*[~^]*'*)
    |(?P<sign>:=|\+=|=>|[λ\\.⇒@=!(),⟨⟩<>;+*-])""",
    re.VERBOSE,
)


class CalculusSyntaxError(Exception):
    """A text that cannot be parsed: the reason, and the line and the column, both from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {reason}")
        self.reason, self.line, self.column = reason, line, column


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a sign; `kind` is "name", "number", "end", or the word or sign itself."""

    kind: str
    text: str
    line: int
    column: int

    def error(self, reason: str) -> CalculusSyntaxError:
        """A syntax error at this token."""
        return CalculusSyntaxError(reason, self.line, self.column)


def tokens(text: str) -> Iterator[Token]:
    """The words and signs of a text, and "end" behind the last one; raises CalculusSyntaxError."""
    at, line, start = 0, 1, 0
    end = (1, 1)
    while at < len(text):
        found = _TOKEN.match(text, at)
        place = Token("", text[at], line, at - start + 1)
        if found is None:
            raise place.error(f"{text[at]!r} has no meaning here.")
        said, kind = found[0], found.lastgroup
        if kind == "number":
            yield Token("number", said, line, place.column)
        elif kind == "name":
            name = _spelled(said)
            yield Token(name if name in KEYWORDS else "name", name, line, place.column)
        elif kind == "sign":
            yield Token(_SIGNS.get(said, said), said, line, place.column)
        at = found.end()
        if kind != "space":
            end = (line, at - start + 1)
        if newlines := said.count("\n"):
            line += newlines
            start = at - len(said) + said.rindex("\n") + 1
    yield Token("end", "", *end)


def number(token: Token, negative: bool = False) -> Real:
    """Reals are exact, unless they are written with an exponent.

    `7`, `-7/2` and `2.5` are fractions, on which `+` and `*` make no error, so that results can be compared.
    `25e-1` is a floating-point number, and so is what is computed from one.
    """
    value: Real
    try:
        if "e" in token.text or "E" in token.text:
            value = float(token.text)
        elif token.text.isdigit():
            value = int(token.text)
        else:
            value = Fraction(token.text)
    except ZeroDivisionError:
        raise token.error("A fraction cannot be by 0.") from None
    except ValueError:
        raise token.error("This number has too many digits.") from None
    if isinstance(value, float) and not isfinite(value):
        raise token.error("This number is too large.")
    return -value if negative else value


def _spelled(name: str) -> str:
    """The name with its marks in ASCII: `y^` for ŷ."""
    plain = unicodedata.normalize("NFD", name)
    if plain.isascii():
        return name
    body = plain.rstrip("'~^")
    marks = "".join(_HATS.get(each, "") for each in body)
    letters = unicodedata.normalize("NFC", "".join(each for each in body if each not in _HATS))
    return letters + marks + plain[len(body) :]


def unicode_name(name: str) -> str:
    """Return how a name is shown: with its marks above its first letter."""
    body = name.rstrip("'")
    letters = body.rstrip("~^")
    marks = "".join(mark for each in body[len(letters) :] for mark, sign in _HATS.items() if sign == each)
    return unicodedata.normalize("NFC", letters[:1] + marks + letters[1:]) + name[len(body) :]


def ascii_name(name: str) -> str:
    """The name in ASCII: `kappa` for κ."""
    if name.isascii():
        return name
    words = (unicodedata.name(each, "x").split()[-1].lower().replace("-", "_") for each in name)
    return "".join(each if each.isascii() else word for each, word in zip(name, words, strict=True))
