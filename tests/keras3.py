"""The scripts of `fixtures/keras3`, their conversions for Keras 3, and conversions that are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainshift.core.choices import KERAS_3, Choices
from trainshift.engine.conversion import Conversion, convert

SCRIPTS = sorted((Path(__file__).parents[1] / "fixtures" / "keras3").glob("*.py"))
_BROADCAST = re.compile(r"hvd\.broadcast_variables\(.*, root_rank=0\)")
# What makes a conversion wrong: a name, what it is told by in the text, and what stands there instead.
_MISTAKES = (
    ("not averaged", re.compile(r"hvd\.allreduce\((grad)\)"), r"\1"),
    ("not broadcast", _BROADCAST, "pass"),
    ("broadcast of nothing", _BROADCAST, "hvd.broadcast_variables([], root_rank=0)"),
    (
        "flag that a trace sets",
        re.compile(r"if (not hvd_broadcast_done(?:_\d+)?|optimizer\.iterations == 1):"),
        "if False:",
    ),
)


def converted(path: Path) -> Conversion:
    """The conversion of a script for Keras 3."""
    return convert(path.read_text(encoding="utf-8"), choices=Choices(keras=KERAS_3))


def wrong(text: str) -> Iterator[tuple[str, str]]:
    """The wrong conversions that a right one is turned into, each with its mistake."""
    for name, pattern, instead in _MISTAKES:
        if pattern.search(text):
            yield name, pattern.sub(instead, text)
