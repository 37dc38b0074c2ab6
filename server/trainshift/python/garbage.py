"""Garbage: control of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection examines every object, and this many objects take about 40 MB.
_MANY = 400_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from searching until this ends.

    Facts refer to each other and live until the end all together, so that each search would look at all of
    them and find nothing.  Where it is kept from that already, it is left so: another thread may be about to
    end that.
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
