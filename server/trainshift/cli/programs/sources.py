"""Sources: the files of all programs in one run, each read once and shared."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.engine.claims import KeptClaims
from trainshift.engine.workspace import ParsedFiles
from trainshift.host import files
from trainshift.host.disk import absolute, files_on_disk
from trainshift.host.files import FileProblem, SourceFile, shown_path


class Sources:
    """The files as the next program of the run finds them.

    Those that an earlier one changes count as changed, whether or not they are written: so the result does
    not depend on that, and a change that two programs need in a file is reported once.  `on_read` is called
    with each path that is read, `choices_of` returns the choices for the program that a file starts.
    """

    def __init__(
        self,
        on_read: Callable[[str], None] = lambda _: None,
        choices_of: Callable[[str], Choices] = lambda _: Choices(),
    ) -> None:
        self._changed: dict[str, SourceFile] = {}
        self._ahead: dict[str, SourceFile | FileProblem] = {}
        self._on_read = on_read
        self.parsed: ParsedFiles = files_on_disk(self._text_of)
        self.parsed.stay()
        self.claims = KeptClaims(self.parsed, choices_of)

    def _text_of(self, path: str) -> str | None:
        self._on_read(shown_path(path))
        known = self._changed.get(path) or self._ahead.get(path)
        return known.text if isinstance(known, SourceFile) else None

    def read_ahead(self, path: str, name: str) -> None:
        """Read the file at an absolute path before the conversion, so that the report shows the converted
        text.
        """
        try:
            self._ahead[path] = files.read(name)
        except FileProblem as problem:
            self._ahead[path] = problem

    def known(self, path: str) -> SourceFile | None:
        """The file at an absolute path as it was read ahead, or as an unwritten change left it.

        None if it was not read yet; raises the FileProblem of reading it ahead.
        """
        known = self._changed.get(path) or self._ahead.pop(path, None)
        if isinstance(known, FileProblem):
            raise known
        return known

    def file(self, path: str, text: str) -> SourceFile:
        """The file at an absolute path; raises FileProblem if its text is no longer `text`."""
        name = shown_path(path)
        try:
            file = self._changed.get(path) or files.read(name)
        except FileProblem as problem:
            raise FileProblem(problem.message, problem.position, name) from problem
        if file.text != text:
            raise FileProblem(
                "changed on disk while it was converted; nothing was written, run the command again",
                path=name,
            )
        return file

    def change(self, path: str, file: SourceFile, text: str, is_written: bool) -> None:
        """Replace the text of the file at an absolute path, on disk or for this run only."""
        self._ahead.pop(path, None)
        if not is_written:
            self._changed[path] = replace(file, data=file.encode(text), text=text)
        self.parsed.forget(path, is_edit=True)


def home(path: str) -> str:
    """The absolute path of the directory in which Python looks for a script's imports.

    That is the place of the file itself where `path` is a symbolic link.
    """
    return absolute(os.path.realpath(path) if os.path.islink(path) else path)
