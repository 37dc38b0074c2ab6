r"""A term is one of eighteen constructs; everything else is written with them.

    e ::= c | x | e + e | e * e | λx. e | @ e e | let x = e in e
        | fst e | snd e | (e, e) | ref e | !e | e := e | inl e | inr e
        | case e of x ⇒ e or x ⇒ e | shift x in e | ⟨e⟩

`c` is `()` or a real number. In ASCII λ is `\`, ⇒ is `=>`, and ⟨e⟩ is `<e>`. Two terms side by side are a
call too, to the left: `f x y` is `@ (@ f x) y`. Comments begin with `//`, and names may end in primes. The
name `_` can be bound, but not read.

## What reaches how far

λ, let, case, if and shift reach as far to the right as they can. From the loosest to the tightest follow `;`,
`:=` and `+=`, `+`, `*`, calls, and the words before an operand: `fst`, `snd`, `ref`, `!`, `inl`, `inr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeAlias

Real: TypeAlias = int | Fraction | float
UNIT: Final = ()
IGNORED: Final = "_"
"""The name of what is bound and never read."""


class Term:
    """A term.  Terms are compared by `names.alpha_equal`, and printed by `printer.show`.

    `SCOPES` names the fields that are terms, in the order in which they stand, each with the field of the
    name that is bound in it.
    """

    __slots__ = ()
    SCOPES: ClassVar[tuple[tuple[str, str | None], ...]] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Term):
    """A real number, or `UNIT`."""

    value: Real | tuple[()]

    @property
    def is_real(self) -> bool:
        """Return whether it is a number."""
        return self.value != UNIT


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(Term):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Two(Term):
    left: Term
    right: Term
    SCOPES = (("left", None), ("right", None))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Add(_Two):
    """A sum."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mul(_Two):
    """A product."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pair(_Two):
    """A pair."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class App(_Two):
    """A call: the function `left`, and its argument."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assign(_Two):
    """The reference `left` gets a new content."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lam(Term):
    """A function of one parameter."""

    name: str
    body: Term
    SCOPES = (("body", "name"),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(Term):
    """A name for a value."""

    name: str
    value: Term
    body: Term
    SCOPES = (("value", None), ("body", "name"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _One(Term):
    of: Term
    SCOPES = (("of", None),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fst(_One):
    """The first of a pair."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snd(_One):
    """The second of a pair."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ref(_One):
    """A new reference."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deref(_One):
    """The contents of a reference."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inl(_One):
    """A value of the left kind."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inr(_One):
    """A value of the right kind."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reset(_One):
    """The delimiter of continuations that a shift inside captures."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case(Term):
    """A choice by the kind of a value."""

    of: Term
    left_name: str
    left: Term
    right_name: str
    right: Term
    SCOPES = (("of", None), ("left", "left_name"), ("right", "right_name"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shift(Term):
    """The continuation up to the nearest reset, as a function."""

    name: str
    body: Term
    SCOPES = (("body", "name"),)


def rebuilt(term: Term, changed: dict[str, Any]) -> Term:
    """Rebuild the construct with other parts: all subterms by their fields, and new names."""
    if isinstance(term, _Two | _One):
        return type(term)(**changed)
    for _, binder in term.SCOPES:
        if binder and binder not in changed:
            changed[binder] = getattr(term, binder)
    return type(term)(**changed)


def size(term: Term) -> int:
    """Return the number of constructs in a term."""
    count, waiting = 0, [term]
    while waiting:
        each = waiting.pop()
        count += 1
        waiting += [getattr(each, field) for field, _ in each.SCOPES]
    return count
