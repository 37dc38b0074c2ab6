"""Methods: names that show a call's effect for any object, as data (`methods.toml`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_DATA = Path(__file__).with_name("methods.toml")


def named(group: str) -> frozenset[str]:
    """Return the names of one group of `methods.toml`."""
    return _groups()[group]


@cache
def _groups() -> dict[str, frozenset[str]]:
    from trainshift.libraries.toml import loads

    return {group: frozenset(names) for group, names in loads(_DATA.read_text("utf-8")).items()}
