"""Walk: list the files that the arguments of `convert` mean, in a deterministic order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from trainshift.host.files import describe, is_notebook

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STANDARD_INPUT = "-"
SKIPPED_DIRECTORIES = frozenset({"__pycache__", "venv", "node_modules"})
_WHAT_IS_SKIPPED = (
    "no Python files (*.py, *.ipynb) here; hidden directories, virtual environments, "
    "node_modules, symbolic links and files matched by .gitignore or --exclude are skipped"
)


class Input(Struct, frozen=True):
    """One file to convert, or the message to print instead.

    `named`: the user named this path.  `problem`: the reason why a directory cannot be listed. `nothing`: the
    message about a directory without Python files.
    """

    path: str
    named: bool = True
    problem: str = ""
    nothing: str = ""


def collect(paths: Iterable[str], exclude: Sequence[str] = ()) -> Iterator[Input]:
    """Yield the inputs behind `paths`, each file once: files themselves, and the files below directories.

    `exclude` holds gitignore patterns, relative to the walked or the current directory; a file that is named
    itself is never excluded.  Raises ValueError for an invalid pattern.
    """
    seen: set[str] = set()
    for path in paths:
        found = _walk(path, exclude) if path != STANDARD_INPUT and os.path.isdir(path) else [Input(path)]
        for item in found:
            identity = item.path if item.path == STANDARD_INPUT else os.path.realpath(item.path)
            if identity not in seen:
                seen.add(identity)
                yield item


def _walk(root: str, exclude: Sequence[str]) -> Iterator[Input]:
    """The *.py and *.ipynb files below `root`, sorted by path; no symbolic link is followed below it."""
    excluded = _Excluded(root, exclude)
    found = False
    # Entries still to visit, in reverse order, each with its ignore files.
    pending: list[tuple[str, bool, _IgnoreFiles]] = [(root, True, _IgnoreFiles.above(root))]
    while pending:
        path, is_directory, ignore_files = pending.pop()
        if not is_directory:
            found = True
            yield Input(path, named=False)
            continue
        ignore_files = ignore_files.with_directory(path)
        try:
            with os.scandir(path) as entries:
                children = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            found = True
            yield Input(path, named=path == root, problem=f"cannot be listed: {describe(error)}")
            continue
        for entry in children:
            child = entry.name if path == os.curdir else os.path.join(path, entry.name)
            directory = entry.is_dir(follow_symlinks=False)
            wanted = _is_wanted_directory(entry) if directory else _is_wanted_file(entry)
            if wanted and not excluded.match(child, directory) and not ignore_files.match(child, directory):
                pending.append((child, directory, ignore_files))
    if not found:
        yield Input(root, nothing=_WHAT_IS_SKIPPED)


def _is_wanted_file(entry: os.DirEntry[str]) -> bool:
    return (entry.name.endswith(".py") or is_notebook(entry.name)) and entry.is_file(follow_symlinks=False)


def _is_wanted_directory(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in SKIPPED_DIRECTORIES:
        return False
    return not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


class _Excluded:
    """The --exclude patterns."""

    def __init__(self, root: str, patterns: Sequence[str]) -> None:
        self._spec = spec_of(patterns) if patterns else None
        self._bases = (os.getcwd(), os.path.abspath(root))

    def match(self, path: str, is_directory: bool) -> bool:
        """Return whether the patterns exclude `path`, first relative to the current directory."""
        for base in self._bases if self._spec else ():
            verdict = verdict_of(self._spec, base, path, is_directory)
            if verdict is not None:
                return verdict
        return False


class _IgnoreFiles(Struct, frozen=True):
    """The .gitignore files that govern a directory, outermost first, each with its own directory."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, root: str) -> _IgnoreFiles:
        """The ignore files of the directories above `root` in the same Git repository.

        None if they ignore `root` itself: it was named explicitly.
        """
        absolute = os.path.abspath(root)
        ancestors: list[str] = []
        directory = absolute
        while not os.path.exists(os.path.join(directory, ".git")):
            parent = os.path.dirname(directory)
            if parent == directory:
                return cls()
            ancestors.append(parent)
            directory = parent
        found = cls()._with_file(directory, os.path.join(directory, ".git", "info", "exclude"))
        for ancestor in reversed(ancestors):
            found = found.with_directory(ancestor)
        return cls() if ancestors and found.match(absolute, True) else found

    def with_directory(self, directory: str) -> _IgnoreFiles:
        """These, and the .gitignore of `directory` if it has one."""
        return self._with_file(directory, os.path.join(directory, ".gitignore"))

    def _with_file(self, directory: str, path: str) -> _IgnoreFiles:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                lines = stream.read().splitlines()
        except OSError:
            return self
        return _IgnoreFiles((*self.specs, (os.path.abspath(directory), spec_of(lines, lenient=True))))

    def match(self, path: str, is_directory: bool) -> bool:
        """Return whether `path` is ignored: the innermost file with a matching pattern decides."""
        for base, spec in reversed(self.specs):
            verdict = verdict_of(spec, base, path, is_directory)
            if verdict is not None:
                return verdict
        return False


def spec_of(patterns: Iterable[str], *, lenient: bool = False) -> GitIgnoreSpec:
    """Compile gitignore `patterns`; an invalid one raises ValueError, or is skipped if `lenient`."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        if not lenient:
            raise
        return GitIgnoreSpec.from_lines([pattern for pattern in patterns if _is_pattern(pattern)])


def _is_pattern(pattern: str) -> bool:
    try:
        spec_of([pattern])
    except ValueError:
        return False
    return True


def verdict_of(spec: GitIgnoreSpec | None, base: str, path: str, is_directory: bool) -> bool | None:
    """The verdict of `spec`, from the directory `base`, on `path`: ignored, kept (by a "!"), or neither."""
    absolute = os.path.abspath(path)
    prefix = base if base.endswith(os.sep) else base + os.sep
    if spec is None or not absolute.startswith(prefix):
        return None
    relative = absolute[len(prefix) :].replace(os.sep, "/")
    return spec.check_file(relative + "/" if is_directory else relative).include
