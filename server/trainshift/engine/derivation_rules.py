"""The rules of differentiation: AD01 to AD20 of the calculus, AD31 to AD41 of Python functions.

The page of each is the docstring of what implements it, and is read when it is asked for.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import reduce
from importlib import import_module

from trainshift.python.source.source import one_line


@dataclass(frozen=True, slots=True)
class DerivationRule:
    """A rule of differentiation: its code, its name in kebab-case, and what implements it.

    `where` names a module below the package, and after a colon a function, class or method of it.  The first
    sentence of its docstring is the title, the whole is the page.
    """

    code: str
    name: str
    where: str

    @property
    def title(self) -> str:
        """What the rule says, in one sentence."""
        return one_line(self.doc.partition("\n\n")[0])

    @property
    def doc(self) -> str:
        """The rule's page, Markdown."""
        module, _, names = self.where.partition(":")
        place = import_module(f"trainshift.{module}")
        found: object = reduce(getattr, names.split("."), place) if names else place
        return inspect.cleandoc(found.__doc__ or "") + "\n"

    @property
    def folder(self) -> str:
        """The folder of its fixture: that of the package which implements it."""
        return self.where.partition(".")[0]


DERIVATION_RULES: tuple[DerivationRule, ...] = (
    DerivationRule("AD01", "syntax", "calculus.syntax"),
    DerivationRule("AD02", "call-by-value", "calculus.machine"),
    DerivationRule("AD03", "sugar", "calculus.sugar"),
    DerivationRule("AD04", "exact-reals", "calculus.lexer:number"),
    DerivationRule("AD10", "metacircular", "calculus.plain"),
    DerivationRule("AD11", "cps", "calculus.cps"),
    DerivationRule("AD12", "cps-references", "calculus.cps:Cps.kept"),
    DerivationRule("AD13", "cps-case", "calculus.cps:Cps.case"),
    DerivationRule("AD14", "cps-shift", "calculus.cps:Cps.shift"),
    DerivationRule("AD15", "cps-meta", "calculus.cps_meta"),
    DerivationRule("AD16", "forward", "calculus.forward"),
    DerivationRule("AD17", "dual-numbers", "calculus.dual"),
    DerivationRule("AD18", "reverse-shift", "calculus.reverse:reverse_shift"),
    DerivationRule("AD19", "reverse", "calculus.reverse:reverse"),
    DerivationRule("AD20", "reverse-meta", "calculus.reverse:reverse_meta"),
    DerivationRule("AD31", "tangents", "derivatives.forward"),
    DerivationRule("AD32", "backward", "derivatives.reverse"),
    DerivationRule("AD33", "branches", "derivatives.reading.normal"),
    DerivationRule("AD34", "loops", "derivatives.reverse.ways:Ways._loop"),
    DerivationRule("AD35", "closures", "derivatives.reverse.ways:Ways._definition"),
    DerivationRule("AD36", "containers", "derivatives.reverse.pull:Pull.add_at"),
    DerivationRule("AD37", "changes-in-place", "derivatives.reverse.changes"),
    DerivationRule("AD38", "broadcasting", "derivatives.reverse.pull:Pull.total"),
    DerivationRule("AD39", "named-values", "derivatives.terms"),
    DerivationRule("AD40", "same-value", "derivatives.reverse.pull:Pull.ahead"),
    DerivationRule("AD41", "own-lines", "derivatives.layout"),
)
