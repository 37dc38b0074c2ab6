"""Signs of one Keras: names, parameters and methods, without importing either version.

The data is `keras_signs.json`, written by `python -m trainshift.dev.generate_keras_signs` from the two, and
read on first use.  Answers are "2", "3", or "" for names that both or neither have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypedDict

from trainshift.libraries import api

PATH = Path(__file__).with_name("keras_signs.json")
# By its public spelling, not its location inside the package.
_BELOW = re.compile(r"(?:keras|tensorflow(?:\.\w+)*?\.keras)\.(?!src\.)(.*)")


class Data(TypedDict):
    """The committed file: the names that only one Keras has, by its number; parameters and methods
    by owner.
    """

    versions: dict[str, str]
    names: dict[str, list[str]]
    parameters: dict[str, dict[str, list[str]]]
    methods: dict[str, dict[str, list[str]]]


@cache
def of_name(name: str) -> str:
    """The only Keras with a full name, or with a module above it."""
    match = _BELOW.fullmatch(name)
    if match is None:
        return ""
    dots = (each.end() for each in re.finditer(r"\.", match[1]))
    found = {match[1], f"{match[1]}.", *(match[1][:end] for end in dots)}
    return next((keras for keras, names in _data()["names"].items() if not found.isdisjoint(names)), "")


def of_parameters(name: str, given: Iterable[str]) -> str:
    """The only Keras whose class or function has one of these parameters."""
    known = api.canonical(name) or ""
    return next(
        (k for k, by in _data()["parameters"].items() if not {*by.get(known, ())}.isdisjoint(given)), ""
    )


def of_method(cls: str, method: str) -> str:
    """The only Keras whose class has a method, its own or inherited."""
    above = api.ancestors(cls)
    return next(
        (k for k, by in _data()["methods"].items() if any(method in by.get(a, ()) for a in above)), ""
    )


@cache
def telling() -> frozenset[str]:
    """The last parts of the names, the parameters and the methods: other words need not be looked up."""
    data = _data()
    names = (name.rstrip(".").rpartition(".")[2] for each in data["names"].values() for name in each)
    of_owners = (*data["parameters"].values(), *data["methods"].values())
    return frozenset([*names, *(part for by in of_owners for parts in by.values() for part in parts)])


@cache
def _data() -> Data:
    data: Data = json.loads(PATH.read_text(encoding="utf-8"))
    return data
