"""Digests of arrays."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

# Arrays of this many bytes are folded, this many words at a time.
LARGE = 4096
MULTIPLIER = 0xD6E8FEB86659FD93


def digest(values: Sequence[Any]) -> str:
    """A short text that is equal for equal arrays, and for different ones only by chance."""
    total = hashlib.blake2b(digest_size=8)
    for value in values:
        total.update(
            folded(value) if value.nbytes >= LARGE and value.dtype.kind in "fiu" else value.tobytes()
        )
    return total.hexdigest()


def folded(value: Any) -> bytes:
    """A short digest of a large array that depends on each word and its place; hashing everything is slow."""
    numpy: Any = importlib.import_module("numpy")
    data = numpy.ascontiguousarray(value).reshape(-1).view("u1")
    words = data[: len(data) // 8 * 8].view("u8")
    whole = len(words) // LARGE * LARGE
    # Sums of products without a copy, modulo 2 ** 64.
    parts = [*numpy.einsum("ij,j->i", words[:whole].reshape(-1, LARGE), ramp())]
    if whole < len(words):
        parts.append(numpy.einsum("j,j->", words[whole:], ramp()[: len(words) - whole]))
    total = 0
    for part in parts:
        total = (total * MULTIPLIER + int(part)) % (1 << 64)
    found: bytes = total.to_bytes(8, "big") + data[len(words) * 8 :].tobytes()
    return found


@cache
def ramp() -> Any:
    """A factor for each place, odd, so that a change of any word changes the sum."""
    numpy: Any = importlib.import_module("numpy")
    return (numpy.arange(LARGE, dtype="u8") * numpy.uint64(0x9E3779B97F4A7C15)) | numpy.uint64(1)
