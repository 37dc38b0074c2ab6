"""The rules of differentiation: AD01 to AD20 of the calculus, AD31 to AD41 of Python functions.

The page of a rule of the calculus is the docstring of its implementation, because the code is the rule.  That
of a rule for Python is a Markdown file in `derivatives/pages`.  Each is read on demand.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path

from trainshift.python.source.source import one_line

_DERIVATIVES = "derivatives"
_PAGES = Path(__file__).parents[1] / _DERIVATIVES / "pages"


@dataclass(frozen=True, slots=True)
class DerivationRule:
    """A rule of differentiation: its code, its name in kebab-case, and the object that implements it.

    `where` names a module of the calculus, and after a colon a function, class or method of it, whose
    docstring is the page; or the package `derivatives`.  The first sentence of a page is its title.
    """

    code: str
    name: str
    where: str

    @property
    def title(self) -> str:
        """The first sentence of the rule."""
        return one_line(self.doc.partition("\n\n")[0])

    @property
    def doc(self) -> str:
        """The page of the rule, in Markdown."""
        if self.where == _DERIVATIVES:
            name = f"{self.code.lower()}_{self.name.replace('-', '_')}.md"
            return (_PAGES / name).read_text(encoding="utf-8")
        module, _, names = self.where.partition(":")
        place = import_module(f"trainshift.{module}")
        found: object = reduce(getattr, names.split("."), place) if names else place
        return inspect.cleandoc(found.__doc__ or "") + "\n"

    @property
    def folder(self) -> str:
        """The folder of its fixture: that of the package that implements it."""
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
    DerivationRule("AD31", "tangents", "derivatives"),
    DerivationRule("AD32", "backward", "derivatives"),
    DerivationRule("AD33", "branches", "derivatives"),
    DerivationRule("AD34", "loops", "derivatives"),
    DerivationRule("AD35", "closures", "derivatives"),
    DerivationRule("AD36", "containers", "derivatives"),
    DerivationRule("AD37", "changes-in-place", "derivatives"),
    DerivationRule("AD38", "broadcasting", "derivatives"),
    DerivationRule("AD39", "named-values", "derivatives"),
    DerivationRule("AD40", "same-value", "derivatives"),
    DerivationRule("AD41", "own-lines", "derivatives"),
)
