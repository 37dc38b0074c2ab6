"""URIs: the paths of the files that they name."""

from __future__ import annotations

import os
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit


@lru_cache(1024)
def path_of(uri: str) -> str:
    """The absolute path, with ``/`` between its parts, of a ``file:`` URI; "" for any other URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or "\0" in unquote(parts.path):
        return ""
    path = unquote(parts.path)
    if os.name == "nt":  # A drive follows the first slash.
        path = path.lstrip("/")
    if parts.netloc not in ("", "localhost"):
        path = f"//{parts.netloc}{path}"
    return path.replace(os.sep, "/") if os.path.isabs(path) else ""


def uri_of(path: str) -> str:
    """The URI of an absolute path with ``/`` between its parts."""
    return "file://" + quote(path if path.startswith("/") else f"/{path}", safe="/")
