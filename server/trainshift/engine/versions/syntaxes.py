"""Syntaxes: convert the constraints of each kind of declaration to the syntax of PEP 440.

Every function yields alternatives, one of which must hold; unreadable text raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_CONDA_PIECE = re.compile(r"(==|>=|<=|!=|~=|<|>|=)?([\w.+!]+?)?(\.?\*)?(?:=.*)?")
_CARET_PIECE = re.compile(r"(\^|~=|~|===|==|!=|>=|<=|<|>|=)?\s*(\d[\w.+!*]*|\*)[\s,]*")


def pep440(asks: str) -> Iterator[str]:
    """Requirements that already have the syntax of PEP 440."""
    yield asks


def conda(asks: str) -> Iterator[str]:
    """Yield alternatives: ``=2.16`` is any 2.16, ``2.15|2.16`` one of both; a build may follow the
    version.
    """
    version = re.sub(r"([<>=!~,|])\s+", r"\1", asks).partition(" ")[0]
    for alternative in version.split("|"):
        pieces = [_conda_piece(piece) for piece in alternative.split(",")]
        yield ",".join(piece for piece in pieces if piece)


def _conda_piece(piece: str) -> str:
    match = _CONDA_PIECE.fullmatch(piece)
    if match is None:
        raise ValueError(f"{piece!r} is not a conda version")
    operator, version, star = match[1] or "", match[2] or "", match[3]
    if not version:
        return ""
    if operator == "=" or (star and operator in ("", "==", "!=")):
        return f"{'!=' if operator == '!=' else '=='}{version}.*"
    return f"{operator or '=='}{version}"


def caret(asks: str) -> Iterator[str]:
    """``^2.16`` is below 3, ``~2.16`` is below 2.17, ``2.16`` is exact, ``||`` separates alternatives."""
    for alternative in re.split(r"\|\|?", asks):
        rest = alternative.strip()
        pieces: list[str] = []
        while rest:
            match = _CARET_PIECE.match(rest)
            if match is None:
                raise ValueError(f"{asks!r} is not a constraint")
            pieces += _caret_piece(match[1] or "==", match[2])
            rest = rest[match.end() :]
        yield ",".join(pieces)


def _caret_piece(operator: str, version: str) -> Iterable[str]:
    if version == "*":
        return ()
    if operator not in ("^", "~"):
        return (f"{'==' if operator == '=' else operator}{version}",)
    release = [int(number) for number in re.findall(r"\d+", version)[:3]]
    significant = next((at for at, number in enumerate(release) if number), len(release) - 1)
    last = significant if operator == "^" else min(1, len(release) - 1)
    above = [*release[:last], release[last] + 1]
    return f">={version}", f"<{'.'.join(map(str, above))}"
