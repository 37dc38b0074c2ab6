"""Writes terms of the calculus as Python functions, so that both derivatives can be compared.

A pair is a tuple, a reference a list of one element, and ``inl e`` the tuple ``(0, e)``.
"""

from __future__ import annotations

from trainshift.calculus.names import Names
from trainshift.calculus.sugar import Folding, Letrec
from trainshift.calculus.syntax import (
    Add,
    App,
    Assign,
    Case,
    Const,
    Deref,
    Fst,
    Inl,
    Inr,
    Lam,
    Let,
    Mul,
    Pair,
    Ref,
    Snd,
    Term,
    Var,
)

_UNIT = "None"


class Writer:
    """Writes one function; what a term does before it has a value stands in lines of its own."""

    def __init__(self) -> None:
        self._names = Names()
        self._lines: list[str] = []
        self._indent = 1

    def function(self, name: str, term: Term, parameter: str = "x") -> str:
        """The source of ``def name(parameter)``, which calls the term with its parameter."""
        self._names = Names([name, parameter])
        self._folding = Folding(term)
        match term:
            case Lam(bound, body):
                result = self._expression(body, {bound: parameter})
            case _:
                result = f"{self._expression(term, {})}({parameter})"
        return "\n".join([f"def {name}({parameter}):", *self._lines, f"    return {result}", ""])

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _bound(self, name: str, value: str) -> str:
        found = self._names.fresh(name.replace("'", "_").replace("^", "_"))
        self._line(f"{found} = {value}")
        return found

    def _expression(self, term: Term, scope: dict[str, str]) -> str:
        match term:
            case Const(value):
                return f"({value!s})" if term.is_real else _UNIT
            case Var(name):
                return scope[name]
            case Add(left, right) | Mul(left, right):
                one = self._expression(left, scope)
                sign = "+" if isinstance(term, Add) else "*"
                return f"({one} {sign} {self._expression(right, scope)})"
            case Pair(left, right):
                one = self._expression(left, scope)
                return f"({one}, {self._expression(right, scope)})"
            case App(left, right):
                one = self._expression(left, scope)
                return self._bound("v", f"{one}({self._expression(right, scope)})")
            case Assign(left, right):
                one = self._expression(left, scope)
                self._line(f"{one}[0] = {self._expression(right, scope)}")
                return _UNIT
            case Let(name, value, body):
                if recursive := self._folding.letrec(term):
                    return self._recursive(recursive, scope)
                return self._expression(
                    body, {**scope, name: self._bound(name, self._expression(value, scope))}
                )
            case Fst(of):
                return f"{self._expression(of, scope)}[0]"
            case Snd(of):
                return f"{self._expression(of, scope)}[1]"
            case Ref(of):
                return self._bound("r", f"[{self._expression(of, scope)}]")
            case Deref(of):
                return self._bound("v", f"{self._expression(of, scope)}[0]")
            case Inl(of):
                return f"(0, {self._expression(of, scope)})"
            case Inr(of):
                return f"(1, {self._expression(of, scope)})"
            case Lam(name, body):
                return self._function(name, body, scope)
            case Case(of, one, left, other, right):
                return self._case(self._expression(of, scope), (one, left), (other, right), scope)
        raise AssertionError(term)

    def _function(self, name: str, body: Term, scope: dict[str, str]) -> str:
        function, parameter = self._names.fresh("f"), self._names.fresh("p")
        self._line(f"def {function}({parameter}):")
        self._indent += 1
        self._line(f"return {self._expression(body, {**scope, name: parameter})}")
        self._indent -= 1
        return function

    def _recursive(self, term: Letrec, scope: dict[str, str]) -> str:
        function, parameter = self._names.fresh("go"), self._names.fresh("n")
        self._line(f"def {function}({parameter}):")
        self._indent += 1
        inside = {**scope, term.name: function, term.parameter: parameter}
        self._line(f"return {self._expression(term.inside, inside)}")
        self._indent -= 1
        return self._expression(term.body, {**scope, term.name: function})

    def _case(self, of: str, left: tuple[str, Term], right: tuple[str, Term], scope: dict[str, str]) -> str:
        chosen, result = self._bound("s", of), self._names.fresh("w")
        for head, (name, body) in ((f"if {chosen}[0] == 0:", left), ("else:", right)):
            self._line(head)
            self._indent += 1
            inside = {**scope, name: self._bound("c", f"{chosen}[1]")}
            self._line(f"{result} = {self._expression(body, inside)}")
            self._indent -= 1
        return result
