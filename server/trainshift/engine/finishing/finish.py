"""Tidy the edited text as a person would: lists get names, neighbouring guards are merged, long lines broken.

These are edits of the edited text, combined with the edits that led to it.  They depend only on that text, so
changes applied one after another still end in the same text as all of them at once (spec.md 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.engine.finishing.compiling import compiles
from trainshift.engine.finishing.edited_text import Edited, Manner
from trainshift.engine.finishing.joined_guards import joined_guards, taken_up, taking_up
from trainshift.engine.finishing.lines import broken_lines, longest_line
from trainshift.engine.finishing.named_lists import calls_named, named_lists, split_lists
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Edit, apply, composed


def finished(
    text: str, edits: tuple[Edit, ...], manner: Manner, apart: Sequence[int] = ()
) -> tuple[Edit, ...]:
    """The edits, with further ones that tidy their result, all as edits of the original text.

    No edit joins text across one of the offsets in `apart`.
    """
    pending = [*{*manner.every}.difference(edits)]
    unfinished = taking_up(text, manner, apart) if pending else frozenset()
    later = calls_named(Edited(text, manner.every, apart), manner, pending, True) if pending else frozenset()
    edited = Edited(text, edits, apart)
    now = calls_named(edited, manner, pending, False)
    for step in (
        partial(split_lists, pending=pending),
        partial(named_lists, pending=pending),
        joined_guards,
        partial(taken_up, pending=pending),
        partial(broken_lines, unfinished=unfinished, unnamed=later, named=now),
    ):
        more = sorted(step(edited, manner), key=lambda each: (each.start, each.end))
        if more:
            edits = composed(edits, more, len(text))
            edited = Edited(text, edits, apart)
    return tuple(each for each in edits if text[each.start : each.end] != each.text)


def laid_out(
    script: Script, edits: tuple[Edit, ...], line_length: int = 0, apart: Sequence[int] = ()
) -> tuple[Edit, ...]:
    """Finish edits that fix findings of a script, like those of a conversion.

    `length` is the project's line length, or 0 if unknown.  A text that is not valid Python stays unchanged.
    """
    if not compiles(apply(script.source.text, edits)):
        return edits
    modules = [
        name
        for name, bindings in script.module_bindings.items()
        if any(each.full_name.partition(".")[0] == "horovod" for each in bindings)
    ]
    unit = Layout(Program(script)).unit
    return finished(
        script.source.text,
        edits,
        Manner(unit, line_length or longest_line(script, edits, modules)),
        apart,
    )
