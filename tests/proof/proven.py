"""Proven conversions, keyed by a digest of everything that decides their runs, in proven.json.

A recorded proof runs with one commit in three.  After a change (of the script, its conversion, the harness,
the judge, TensorFlow, Keras or Horovod) it runs with every commit, until `pytest -m proof --write-proven` has
recorded it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import pytest

from proof.code import Code
from proof.harness import HERE, Place, prove
from proof.originals import HERE as FOLDER
from proof.originals import PROVING, SOURCES, digest, sources
from proof.single_runs import PACKAGES, write

WRITTEN = FOLDER / "proven.json"
ONE_IN = 3


@dataclass(frozen=True)
class Conversion:
    """Code before and after its conversion, the arguments of both, and a unique name.

    It runs at a `place`, in which the packages `beside` are installed too; `expected` are the ids of faults
    that are not due to the conversion.
    """

    name: str
    before: Code
    after: Code
    arguments: tuple[str, ...] = ()
    place: Place = HERE
    beside: str = ""
    expected: frozenset[str] = frozenset()

    def key(self) -> str:
        """A digest of everything that decides the proof."""
        code = (*self.before.parts(), *self.after.parts(), *map(os.fsencode, self.arguments))
        return digest([*code, *filter(None, [self.beside.encode()]), harness().encode()])

    def assert_proven(self, config: pytest.Config) -> None:
        """Assert that its ranks do the same as the original; with `--write-proven`, record that."""
        found = prove(self.before, self.after, self.arguments, place=self.place)
        faults = [fault for fault in found if fault.partition(":")[0] not in self.expected]
        assert not faults, "\n".join([f"{self.name}:", *faults])
        if config.getoption("--write-proven"):
            write(WRITTEN, self.name, self.key())


def in_turns(conversions: Iterable[Conversion], one_in: int = ONE_IN) -> pytest.MarkDecorator:
    """Parametrize a test by `conversion`; recorded ones run in turns."""
    written = json.loads(WRITTEN.read_text("utf-8"))
    rows = []
    for each in conversions:
        known = written.get(each.name) == each.key()
        marks = [pytest.mark.in_turns(one_in, f"proof of {each.name}", 0)] if known else []
        rows.append(pytest.param(each, id=each.name, marks=marks))
    return pytest.mark.parametrize("conversion", rows)


@cache
def harness() -> str:
    """A digest of the code that runs and judges each conversion."""
    judges = sorted((PROVING / "judging").glob("*.py"))
    return digest([*sources((*SOURCES, *judges)), *(version(name).encode() for name in PACKAGES)])
