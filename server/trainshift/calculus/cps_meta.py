"""Continuation-passing style is written more shortly with shift and reset at the time of transformation.

Below, `shift κ in` and ⟨ ⟩ run while the term is transformed, all else is code that is emitted.

    ⟦e1 + e2⟧           = ⟦e1⟧ + ⟦e2⟧                               and so for all but these:
    ⟦λy. e⟧             = λy. λk. ⟨k ⟦e⟧⟩
    ⟦e1 e2⟧             = shift κ in ⟦e1⟧ ⟦e2⟧ (ηa. ⟨κ a⟩)
    ⟦let y = e1 in e2⟧  = shift κ in let! y = ⟦e1⟧ in ⟨κ ⟦e2⟧⟩
    ⟦ref e⟧             = shift κ in let r = ref ⟦e⟧ in ⟨κ r⟩       and so for !, := and ⟨e⟩
    ⟦case e of y1 ⇒ e1 or y2 ⇒ e2⟧ =
      shift κ in let v = ⟦e⟧ in let! k = (ηa. ⟨κ a⟩) in
                 case v of y1 ⇒ ⟨k ⟦e1⟧⟩ or y2 ⇒ ⟨k ⟦e2⟧⟩
    ⟦shift k in e⟧      = shift κ in let k = λa. λk1. k1 ⟨κ a⟩ in ⟨⟦e⟧⟩

The result is that of AD11 to AD14, up to bound names. The let of v runs while the term is transformed, too.
"""

from __future__ import annotations

from typing import Any

from trainshift.calculus import trampoline
from trainshift.calculus.cps import Substitution, eta
from trainshift.calculus.names import apart
from trainshift.calculus.syntax import (
    Add,
    App,
    Assign,
    Case,
    Const,
    Deref,
    Lam,
    Let,
    Mul,
    Ref,
    Reset,
    Shift,
    Term,
    Var,
    rebuilt,
)
from trainshift.calculus.trampoline import Resume, Work


class CpsMeta(Substitution):
    """The transformation of a term, which captures the continuation where needed."""

    def translate(self, term: Term) -> Work[Term]:
        """The code of the term's value, in its context."""
        rule = getattr(self, _RULES.get(type(term), "plain"))
        code: Term = yield rule(term)
        return code

    def delimited(self, term: Term, function: Var | None = None) -> Work[Term]:
        """`⟨⟦term⟧⟩`, or `⟨function ⟦term⟧⟩`."""
        value: Term = yield self.translate(term)
        return App(function, value) if function else value

    def followed(self, term: Term, resume: Resume) -> Work[Term]:
        """`κ ⟦term⟧`."""
        value: Term = yield self.translate(term)
        rest: Term = yield resume(value)
        return rest

    def constant(self, term: Const) -> Work[Term]:
        """`()` or a real is itself."""
        return trampoline.done(term)

    def variable(self, term: Var) -> Work[Term]:
        """A variable is itself, or its replacement."""
        return trampoline.done(self.meaning(term))

    def operation(self, term: Add | Mul) -> Work[Term]:
        """Sums and products."""
        return self.plain(term)

    def plain(self, term: Term) -> Work[Term]:
        """A term that is transformed construct by construct."""
        changed: dict[str, Any] = {}
        for field, _ in term.SCOPES:
            changed[field] = yield self.translate(getattr(term, field))
        return rebuilt(term, changed)

    def function(self, term: Lam) -> Work[Term]:
        """A function takes the continuation of its calls."""
        k = Var(self.names.fresh("k"))
        body: Term = yield trampoline.reset(self.delimited(term.body, k))
        return Lam(term.name, Lam(k.name, body))

    def call(self, term: App) -> Work[Term]:
        """A call passes the continuation to the function."""

        def body(resume: Resume) -> Work[Term]:
            function: Term = yield self.translate(term.left)
            argument: Term = yield self.translate(term.right)
            a = self.names.fresh("a")
            rest: Term = yield resume(Var(a))
            return App(App(function, argument), eta(a, rest))

        return trampoline.shift(body)

    def named(self, term: Let) -> Work[Term]:
        """A let stays a let, except for variables."""

        def body(resume: Resume) -> Work[Term]:
            value: Term = yield self.translate(term.value)
            code: Term = yield self.let(
                term.name, value, lambda: trampoline.reset(self.followed(term.body, resume))
            )
            return code

        return trampoline.shift(body)

    def kept(self, term: Ref | Deref | Assign) -> Work[Term]:
        """A read or an update of a reference is bound by a let in place."""
        code: Term = yield self.plain(term)
        name: Term = yield self.bound(code)
        return name

    def reset(self, term: Reset) -> Work[Term]:
        """Inside, nothing follows."""
        inside: Term = yield trampoline.reset(self.delimited(term.of))
        name: Term = yield self.bound(inside)
        return name

    def bound(self, code: Term) -> Work[Term]:
        """The name of a let for the value of a code."""

        def body(resume: Resume) -> Work[Term]:
            r = self.names.fresh("r")
            rest: Term = yield resume(Var(r))
            return Let(r, code, rest)

        return trampoline.shift(body)

    def case(self, term: Case) -> Work[Term]:
        """The branches of a case share the continuation, as one function."""

        def body(resume: Resume) -> Work[Term]:
            value: Term = yield self.translate(term.of)
            a, k = self.names.fresh("a"), self.names.fresh("k")
            rest: Term = yield resume(Var(a))
            code: Term = yield self.let(k, eta(a, rest), lambda: self.branches(term, value, Var(k)))
            return code

        return trampoline.shift(body)

    def branches(self, term: Case, value: Term, k: Var) -> Work[Term]:
        """The case, both of whose branches pass their value to k."""
        k = self.meaning(k)
        left: Term = yield trampoline.reset(self.delimited(term.left, k))
        right: Term = yield trampoline.reset(self.delimited(term.right, k))
        return Case(value, term.left_name, left, term.right_name, right)

    def shift(self, term: Shift) -> Work[Term]:
        """Shift binds the continuation to a name."""

        def body(resume: Resume) -> Work[Term]:
            a, k1 = self.names.fresh("a"), self.names.fresh("k")
            rest: Term = yield resume(Var(a))
            inside: Term = yield trampoline.reset(self.delimited(term.body))
            return Let(term.name, Lam(a, Lam(k1, App(Var(k1), rest))), inside)

        return trampoline.shift(body)


_RULES: dict[type, str] = {
    Const: "constant",
    Var: "variable",
    Add: "operation",
    Mul: "operation",
    App: "call",
    Lam: "function",
    Let: "named",
    Case: "case",
    Shift: "shift",
    Reset: "reset",
    **dict.fromkeys((Ref, Deref, Assign), "kept"),
}


def cps_shift(term: Term) -> Term:
    """The term in continuation-passing style, as AD15 makes it."""
    term, names = apart(term)
    return trampoline.run(CpsMeta(names).delimited(term))
