"""Entries on the command line: `trainshift explain wandb.init` shows a library's entries."""

from __future__ import annotations

from collections.abc import Mapping

from trainshift.core.libraries import described
from trainshift.libraries import api, entries
from trainshift.libraries.entries import Entry, Table

_SHORT = {"tf": "tensorflow", "np": "numpy", "pd": "pandas", "tfa": "tensorflow_addons"}


def explained(name: str, own: Mapping[str, Table]) -> list[str]:
    """Return the lines about a library, or about a member, from the user's own entries first."""
    first, dot, rest = name.partition(".")
    name = f"{_SHORT.get(first, first)}{dot}{rest}"
    known = entries.of_people(name, own) or entries.entry(api.canonical(name) or name)
    if known is not None:
        return [_line(name, known)]
    of_package = {**entries.table(name), **own.get(name, {})}
    return [_line(f"{name}.{pattern}", each) for pattern, each in of_package.items()]


def _line(name: str, known: Entry) -> str:
    said = dict.fromkeys([described(known), known.text("says")])
    return f"{name}: {'; '.join(filter(None, said))}."
