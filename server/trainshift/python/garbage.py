"""Garbage: control of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection examines every object, and this many objects take about 40 MB.
_MANY = 400_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the garbage collector off inside the block.

    Facts refer to each other and all live until the end, so each collection would examine all of them and
    find nothing.  If the collector is already off, it stays off: another thread may be responsible for it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def tidy() -> None:
    """Collect garbage after many allocations, if the collector is off."""
    if not gc.isenabled() and gc.get_count()[0] > _MANY:
        gc.collect()
