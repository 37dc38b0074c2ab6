"""Edits that add the broadcast to a list of hooks, with their doubts, for all rules that need them."""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string, in_stars
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit, Withheld
from trainshift.rewriting.edits.list_edits import put_first
from trainshift.rewriting.keras.helpers import Helpers
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.horovod.own_horovod import HOOK
from trainshift.training.keras_version.target import Target
from trainshift.training.rank_regions.hooks import Hooks


def obstacle(report: Report, hooks: Hooks) -> Withheld | None:
    """The reason why the hooks of a call cannot get the broadcast; None if they can."""
    reason = in_f_string() if hooks.site.in_fstring else ""
    if hooks.hidden:
        reason = in_stars("the hooks may be", "pass hooks= by name")
    return report.withheld(hooks.site, reason, True) if reason else None


def hooked(program: Program, hooks: Hooks) -> tuple[list[Edit], dict[str, str]]:
    """The edits, or the keyword, that put the broadcast before the hooks of a call."""
    home = program.at(hooks.site)
    has_own = program.fact(Target).has_own_hook
    first = [
        f"{home.fact(Helpers).names[HOOK]}()" if has_own else f"{home.fact(Prerequisites).hvd}.{HOOK}(0)"
    ]
    if hooks.given is None:
        return [], {hooks.word: f"[{first[0]}]"}
    return put_first(program, hooks, hooks.site, first), {}


def doubts(program: Program, hooks: Hooks) -> tuple[str, ...]:
    """The doubts about hooks that are unknown, or that end the training."""
    found = [
        f"{name} must stop all ranks at the same step, or the others wait forever" for name in hooks.stopping
    ]
    if hooks.given is not None and not hooks.found.complete:
        given = program.script.text(hooks.given, hooks.site)
        found.append(f"{given} is assumed to hold hooks that every rank needs")
    return tuple(found)
