"""Entries on the command line: what `trainshift explain wandb.init` says of a library and its members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainshift.core.libraries import told
from trainshift.libraries import api, entries
from trainshift.libraries.entries import Entry, Table

_SHORT = {"tf": "tensorflow", "np": "numpy", "pd": "pandas", "tfa": "tensorflow_addons"}


def explained(name: str, own: Mapping[str, Table]) -> list[str]:
    """Return the lines that say what is known of a library, or of a member, people's own entries first."""
    first, dot, rest = name.partition(".")
    name = f"{_SHORT.get(first, first)}{dot}{rest}"
    known = _of_people(name, own) or entries.entry(api.canonical(name) or name)
    if known is not None:
        return [_line(name, known)]
    of_package = {**entries.table(name), **own.get(name, {})}
    return [_line(f"{name}.{pattern}", each) for pattern, each in of_package.items()]


def _of_people(name: str, own: Mapping[str, Table]) -> Entry | None:
    return next(_found(name, own), None)


def _found(name: str, own: Mapping[str, Table]) -> Iterator[Entry]:
    for module, table in own.items():
        found = (
            entries.find(name.removeprefix(f"{module}."), table) if name.startswith(f"{module}.") else None
        )
        if found is not None:
            yield found


def _line(name: str, known: Entry) -> str:
    says = known.text("says")
    return f"{name}: {told(known)}{f'; {says}' if says and says != told(known) else ''}."
