"""The code of an observed process: the files of its working directory, and its command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Code:
    """Files by their paths in one folder, and the words that follow `python` there.

    The command begins with the path of a file, or with ``-m`` and the name of a module.
    """

    files: dict[str, bytes]
    command: tuple[str, ...]

    def parts(self) -> list[bytes]:
        """The parts that determine its behaviour, for a digest."""
        files = [part for path in sorted(self.files) for part in (path.encode(), self.files[path])]
        return [*files, *map(str.encode, (str(len(files)), *self.command))]


def code_of(script: Path | str | Code) -> Code:
    """The code of a script, given by its path or its text; code is returned unchanged."""
    if isinstance(script, Code):
        return script
    text = script.read_bytes() if isinstance(script, Path) else script.encode()
    return Code({"script.py": text}, ("script.py",))
