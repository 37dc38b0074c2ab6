"""The shape of everything with a code: its family, its name, and the module with its page and function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeAlias

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.source import one_line

Findings: TypeAlias = Iterator[Finding]
_PACKAGE = Path(__file__).parents[1]


class Family(NamedTuple):
    """The codes that begin with the same letters.

    `fixtures` is the folder of their fixtures, if they have any.  A page is the docstring of a module of
    `package`, or a Markdown file of the folder `pages`.
    """

    kind: str
    heading: str
    fixtures: str = ""
    package: str = ""
    pages: str = ""


_RESTRICTIONS = Family("restriction", "Restrictions (check)", "restrictions", "restrictions")
FAMILIES = {
    "HV": Family("rule", "Rewriting rules (convert)", "transforms", "transforms"),
    "TF": _RESTRICTIONS,
    "TL": _RESTRICTIONS,
    "HZ": _RESTRICTIONS,
    "PD": Family("static", "Static graphs of Paddle (check)", "static_graphs", "static_graphs.findings"),
    "TS": Family("check", "The check itself", pages="engine/pages"),
    "AD": Family(
        "derivation",
        "Differentiation (differentiate, calculus)",
        "derivatives",
        pages="derivatives/pages",
    ),
}
"""All families, by their letters, in the order of the docs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Something with a code: the code, and its name in kebab-case.

    Its module or page is named after both, and loaded on first use.  The first sentence of the page is its
    title.
    """

    code: str
    name: str

    def __post_init__(self) -> None:
        is_code = re.fullmatch(r"[A-Z]{2}\d\d", self.code) and self.code[:2] in FAMILIES
        if not is_code or not re.fullmatch(r"[a-z]+(-[a-z]+)*", self.name):
            raise ValueError(f"not a rule: {self.code} {self.name}")

    @property
    def family(self) -> Family:
        """The family of its code."""
        return FAMILIES[self.code[:2]]

    @property
    def stem(self) -> str:
        """The name of its module and of its fixture."""
        return f"{self.code.lower()}_{self.name.replace('-', '_')}"

    @property
    def place(self) -> str:
        """The file of its module or page, from the package on."""
        if self.family.pages:
            return f"{self.family.pages}/{self.stem}.md"
        return f"{self.family.package.replace('.', '/')}/{self.stem}.py"

    @property
    def fixtures(self) -> str:
        """The folder of its fixture; empty without one."""
        return self.family.fixtures

    @property
    def module(self) -> ModuleType:
        """The module that implements it."""
        return import_module(f"trainshift.{self.family.package}.{self.stem}")

    @property
    def doc(self) -> str:
        """Its page, Markdown."""
        if self.family.pages:
            return (_PACKAGE / self.place).read_text(encoding="utf-8")
        return inspect.cleandoc(self.module.__doc__ or "") + "\n"

    @property
    def title(self) -> str:
        """Its meaning in one sentence: the first paragraph of its page."""
        return one_line(self.doc.partition("\n\n")[0])


@dataclass(frozen=True, slots=True)
class Restriction(Rule):
    """A condition on scripts; its module has the function `check`.

    `check` yields its findings in a program; a script that keeps to the restriction has none.
    One that is `seen_by_rules` is checked by rewrite rules themselves, which report it in their own words.
    """

    seen_by_rules: bool = field(default=False, kw_only=True)

    def check(self, program: Program) -> Findings:
        """Yield the findings in a program."""
        found: Findings = self.module.check(program, Report(program, self.code))
        return found
