"""Scripts: the files that use TensorFlow, including unopened ones, for menus that offer to convert them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from trainshift.engine.checking import has_signs
from trainshift.host.disk import absolute, text_on_disk
from trainshift.host.walk import collect
from trainshift.lsp.transport.uris import path_of, uri_of


class Scripts:
    """The Python files of folders; unchanged files are not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], bool]] = {}

    def using_tensorflow(self, folders: Iterable[str]) -> list[str]:
        """The URIs of the files in folders, by their URIs, that use TensorFlow or seem to."""
        roots = [path for uri in folders if os.path.isdir(path := path_of(uri))]
        paths = [absolute(each.path) for each in collect(roots) if each.path.endswith(".py")]
        self._known = {path: known for path in paths if (known := self._judged(path)) is not None}
        return [uri_of(path) for path, (_, uses) in self._known.items() if uses]

    def _judged(self, path: str) -> tuple[tuple[int, int], bool] | None:
        """The stamp of a file, and whether it uses TensorFlow; None if it is deleted."""
        try:
            info = os.stat(path)
        except OSError:
            return None
        stamp = info.st_mtime_ns, info.st_size
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known
        return stamp, has_signs(text_on_disk(path) or "")
