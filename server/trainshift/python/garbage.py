"""Garbage: control of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection examines every object, and this many objects take about 40 MB.
_MANY = 400_000
# Old objects become garbage when files are dropped, seldom; examining them takes a second for a big project.
_FULL_AFTER = 3


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
    """Collect garbage after many allocations, if the collector is off.

    Only new objects are examined, except every `_FULL_AFTER` times.
    """
    young, since_full, _ = gc.get_count()
    if not gc.isenabled() and young > _MANY:
        gc.collect(2 if since_full >= _FULL_AFTER else 0)
