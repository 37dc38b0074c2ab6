"""The edits that give a list of hooks the broadcast, and what they decide, shared by the rules that do so."""

from __future__ import annotations

from trainshift.core.callbacks import Role
from trainshift.core.edit import Edit
from trainshift.core.hooks import BROADCAST, Hooks
from trainshift.core.program import Program
from trainshift.transforms.lists import put_first, run


def hooked(program: Program, hooks: Hooks) -> tuple[list[Edit], dict[str, str]]:
    """The edits, or the keyword, that put the broadcast in front of the hooks of a call."""
    first = [f"{program.setup.hvd}.{BROADCAST}(0)"]
    if hooks.given is None:
        return [], {hooks.word: f"[{first[0]}]"}
    edited = any(each.role is Role.WRITES for each in hooks.members)
    return put_first(program, hooks.given, hooks.site, hooks.found, first, edited), {}


def titled(title: str, hooks: Hooks) -> str:
    """The title of a change, with the hooks that cannot be seen."""
    unknown = hooks.named(Role.UNKNOWN)
    return f"{title}; {', '.join(unknown)}, which cannot be seen, stays on every rank" if unknown else title


def doubts(program: Program, hooks: Hooks) -> tuple[str, ...]:
    """What is assumed of hooks that cannot all be seen."""
    if hooks.given is None or hooks.found.complete:
        return ()
    return (f"{program.script.text(hooks.given, hooks.site)} is taken to hold hooks that every rank needs",)


def decisions(hooks: Hooks) -> tuple[str, ...]:
    """What was decided of the hooks."""
    found = []
    every = hooks.named(Role.STEERS, Role.OWN)
    if every:
        found.append(f"{', '.join(every)} {run(every)} on every rank")
    writing = hooks.named(Role.WRITES)
    if writing:
        found.append(f"{', '.join(writing)} {run(writing)} on rank 0 only")
    return tuple(found)
