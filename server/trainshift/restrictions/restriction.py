"""The form of a restriction: a condition that makes a rewrite safe, as a pure function of the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TypeAlias

from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.python.source.source import one_line

Findings: TypeAlias = Iterator[Finding]


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction: its code, its name in kebab-case, and the function that checks it.

    The docstring of its module is its page, whose first sentence is its title.  `check` yields the findings
    in a program; a script that satisfies the restriction has none.
    """

    code: str
    name: str
    check: Callable[[Program], Findings]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"T[FL]\d\d|HZ\d\d", self.code) or not re.fullmatch(
            r"[a-z]+(-[a-z]+)*", self.name
        ):
            raise ValueError(f"not a restriction: {self.code} {self.name}")

    @property
    def title(self) -> str:
        """The condition, in one sentence: the first paragraph of its page."""
        return one_line(self.doc.partition("\n\n")[0])

    @property
    def doc(self) -> str:
        """The restriction's page: the docstring of its module, Markdown."""
        module = self.check.module if isinstance(self.check, Later) else self.check.__module__
        return (import_module(module).__doc__ or "").strip() + "\n"


@dataclass(frozen=True, slots=True)
class Later:
    """The `check` of a module that is imported on first use."""

    module: str

    def __call__(self, program: Program) -> Findings:
        """Run the module's `check`, importing it first."""
        found: Findings = import_module(self.module).check(program)
        return found


class InResult(Enum):
    """The handling of a serious hazard in a conversion's result whose source did not have it."""

    REFUSED = "the conversion is refused"
    DOUBTED = "it is a doubt: it wastes work, or writes a file twice"
    AUDITED = "the audit answers it by its own reader"


@dataclass(frozen=True, slots=True)
class Hazard(Restriction):
    """A mistake in a script that already uses Horovod; `check` takes a whole program.

    Scripts without Horovod do not load its module.

    `kind` has letters for its consequences: D for ranks that diverge, or a wrong result, H for a hang, C for
    a crash, W for wasted work.  `mended_by` are the rules of a conversion that fix it, if any.  `in_result`
    is its meaning in the result of a conversion; remarks of the rules `said_by` may have reported it already.
    """

    kind: str = "D"
    mended_by: tuple[str, ...] = ()
    in_result: InResult = InResult.REFUSED
    said_by: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        code: str,
        name: str,
        kind: str,
        mended_by: tuple[str, ...] = (),
        in_result: InResult = InResult.REFUSED,
        said_by: tuple[str, ...] = (),
    ) -> Hazard:
        """The hazard whose `check` is in the module named after its code and name."""
        module = f"{__package__}.{code.lower()}_{name.replace('-', '_')}"
        return cls(code, name, Later(module), kind, mended_by, in_result, said_by)

    @property
    def is_serious(self) -> bool:
        """Return whether more than work is lost by it."""
        return self.kind != "W"
