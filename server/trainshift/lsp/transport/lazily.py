"""Import asyncio without TLS, and lsprotocol without building unused classes.

asyncio can do without `ssl`, and a server without it takes 4 MB less.  lsprotocol defines about a thousand
attrs classes, and building them all would delay every start by half a second. Here each class is built on its
first use.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


class _Fields:
    """A placeholder for the attributes of a class until their first use."""

    def __get__(self, instance: object, owner: type) -> Any:
        _build(owner)
        return owner.__attrs_attrs__  # type: ignore[attr-defined]


_NOT_YET = _Fields()


@functools.cache
def load() -> None:
    """Import both, unless they are imported already."""
    import sys

    import attrs

    if "ssl" not in sys.modules:
        sys.modules["ssl"] = None  # type: ignore[assignment]
        try:
            importlib.import_module("asyncio")
        finally:
            del sys.modules["ssl"]
    if "lsprotocol.types" in sys.modules:
        return
    define = attrs.define

    def put_off(cls: Any = None, **options: Any) -> Any:
        if cls is None or options:
            return define(cls, **options)
        cls.__attrs_attrs__ = _NOT_YET
        cls.__init__ = _first_instance
        return cls

    importlib.import_module("cattrs")  # It has classes of its own that it needs at once.
    setattr(attrs, "define", put_off)  # noqa: B010
    try:
        importlib.import_module("lsprotocol.types")
    finally:
        setattr(attrs, "define", define)  # noqa: B010
    # `_build` does this for each class on demand, instead of for all.
    setattr(importlib.import_module("lsprotocol._hooks"), "_resolved_forward_references", True)  # noqa: B010


def _first_instance(self: Any, *args: Any, **values: Any) -> None:
    _build(type(self))
    self.__init__(*args, **values)


def _build(cls: Any) -> None:
    import attrs
    from lsprotocol import types

    if cls.__dict__.get("__attrs_attrs__") is not _NOT_YET:
        return
    del cls.__attrs_attrs__, cls.__init__
    attrs.define(cls, slots=False)
    attrs.resolve_types(cls, types.ALL_TYPES_MAP, {})
