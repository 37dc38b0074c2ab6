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
    """What is assumed of hooks that cannot all be seen, or that end the training."""
    found = [
        f"{name} is taken to stop all ranks at the same step; otherwise those that go on would wait for ever"
        for name in hooks.stopping
    ]
    if hooks.given is not None and not hooks.found.complete:
        given = program.script.text(hooks.given, hooks.site)
        found.append(f"{given} is taken to hold hooks that every rank needs")
    return tuple(found)


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
