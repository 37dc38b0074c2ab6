"""The rules of differentiation: AD01 to AD20 of the calculus, AD31 to AD41 of Python functions.

The page of a rule of the calculus is the docstring of its implementation, because the code is the rule.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import reduce
from importlib import import_module

from trainshift.core.rule import Rule


@dataclass(frozen=True, slots=True)
class CalculusRule(Rule):
    """A rule of the calculus, and the object that implements it.

    `where` names a module of the calculus, and after a colon a function, class or method of it, whose
    docstring is the page.
    """

    where: str

    @property
    def doc(self) -> str:
        """The page of the rule, in Markdown."""
        module, _, names = self.where.partition(":")
        place = import_module(f"trainshift.{module}")
        found: object = reduce(getattr, names.split("."), place) if names else place
        return inspect.cleandoc(found.__doc__ or "") + "\n"

    @property
    def fixtures(self) -> str:
        """The folder of its fixture."""
        return "calculus"


DERIVATION_RULES: tuple[Rule, ...] = (
    CalculusRule("AD01", "syntax", "calculus.syntax"),
    CalculusRule("AD02", "call-by-value", "calculus.machine"),
    CalculusRule("AD03", "sugar", "calculus.sugar"),
    CalculusRule("AD04", "exact-reals", "calculus.lexer:number"),
    CalculusRule("AD10", "metacircular", "calculus.plain"),
    CalculusRule("AD11", "cps", "calculus.cps"),
    CalculusRule("AD12", "cps-references", "calculus.cps:Cps.kept"),
    CalculusRule("AD13", "cps-case", "calculus.cps:Cps.case"),
    CalculusRule("AD14", "cps-shift", "calculus.cps:Cps.shift"),
    CalculusRule("AD15", "cps-meta", "calculus.cps_meta"),
    CalculusRule("AD16", "forward", "calculus.forward"),
    CalculusRule("AD17", "dual-numbers", "calculus.dual"),
    CalculusRule("AD18", "reverse-shift", "calculus.reverse:reverse_shift"),
    CalculusRule("AD19", "reverse", "calculus.reverse:reverse"),
    CalculusRule("AD20", "reverse-meta", "calculus.reverse:reverse_meta"),
    Rule("AD31", "tangents"),
    Rule("AD32", "backward"),
    Rule("AD33", "branches"),
    Rule("AD34", "loops"),
    Rule("AD35", "closures"),
    Rule("AD36", "containers"),
    Rule("AD37", "changes-in-place"),
    Rule("AD38", "broadcasting"),
    Rule("AD39", "named-values"),
    Rule("AD40", "same-value"),
    Rule("AD41", "own-lines"),
)
