"""Stand-in restrictions: calls with certain names are findings, so that tests do not depend on real ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.program import Program
from trainshift.core.rule import Restriction
from trainshift.python.source.edit import Change, Edit

_VERDICTS = {
    "bad": Verdict.VIOLATED,
    "mend": Verdict.VIOLATED,
    "fine": Verdict.HARMLESS,
    "maybe": Verdict.UNKNOWN,
    "breaks": Verdict.VIOLATED,
}


def check(program: Program) -> Iterator[Finding]:
    """`bad()` is violated, `fine()` harmless, `maybe()` unknown, and `mend()` can be fixed."""
    for name, verdict in _VERDICTS.items():
        for site in program.script.sites_named(name):
            span = program.script.span(site.node, site)
            target = program.script.statement_span(site.statement)
            fix = None
            if name in ("mend", "breaks"):
                text = "mended(" if name == "mend" else "("
                edit = Edit(span.start, program.script.span(site.node.func, site).end + 1, text)
                fix = Change("TF03", f"Call {text}", target, (edit,))
            related: tuple[Related, ...] = ()
            if site.node.args and isinstance(site.node.args[0], ast.Name):
                related = (Related(program.script.span(site.node.args[0], site), "this is it"),)
            yield Finding("TF03", verdict, span, f"{name} is called, and that matters.", related, fix)


def fail(program: Program) -> Iterator[Finding]:
    """`crash()` makes it fail."""
    if any(program.script.sites_named("crash")):
        raise KeyError("crash")
    yield from ()


@dataclass(frozen=True)
class Faked(Restriction):
    """A restriction whose function is given, not looked up in a module."""

    found: Callable[[Program], Iterator[Finding]]

    def check(self, program: Program) -> Iterator[Finding]:
        return self.found(program)


RULES = (
    Faked("TF03", "tensorflow-member-alias", check),
    Faked("TF04", "print-side-effect", fail),
)
