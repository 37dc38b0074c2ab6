"""Link a script to the files that it imports; others read these files."""

from __future__ import annotations

import posixpath
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar, cast

from trainshift.engine.evidence import TEXT, Noted, Observation, digest, digest_of_names
from trainshift.python.garbage import tidy
from trainshift.python.names.script import Script
from trainshift.python.names.workspace import MOST_FILES, Workspace
from trainshift.python.source.source import BOM, Source
from trainshift.python.syntax.chunks import ChunkCache, ParseFailure, parse
from trainshift.python.syntax.code import Code

T = TypeVar("T")
Answers: TypeAlias = dict[Hashable, tuple[object, Noted]]
"""Answers to questions about files, with their evidence."""

# The number of parsed files to keep for the next scripts.
_MOST_KEPT = 200
# Their total number of characters, each of which takes about 50 bytes when parsed.
_MOST_CHARACTERS = 1_500_000
_MOST_LEVELS = 8
# Files and directories beyond this number are not searched for imports of one.
_MOST_SEARCHED = 5000
# Limits without a project: the number of files, and the levels of parent directories with Python files.
_MOST_NEAR = 500
_MOST_ABOVE = 2
# Folders of third-party files, or without Python files.
_FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env"})
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.M)
_PYTHONPATH = re.compile(r"^[ \t]*(?:export[ \t]+)?PYTHONPATH[ \t]*=[ \t]*(.*?)[ \t]*$", re.M)
_ROOT_MARKS = frozenset({".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "trainshift.toml"})


class _Around(NamedTuple):
    """The files of a project, below its `root`; `is_whole` unless their number exceeds the search limit."""

    root: str
    paths: dict[str, None]
    is_whole: bool
    has_notebooks: bool


class ParsedFiles:
    """Files for the core, parsed once for all scripts that import them.

    `text_of` returns a file's text (None if it cannot be read), `entries` the names in a directory (none if
    it does not exist).  Paths are absolute, with ``/`` between their parts.
    """

    def __init__(
        self, text_of: Callable[[str], str | None], entries: Callable[[str], frozenset[str]]
    ) -> None:
        self._text_of = text_of
        self._entries = entries
        self._words: dict[str, frozenset[str]] = {}
        self._by_word: dict[str, set[str]] = {}
        self._listed: dict[str, _Around] = {}
        self._surveyed: set[str] = set()
        self._changed: set[str] = set()
        self._naming: dict[str, list[str]] = {}
        self._used: dict[tuple[str, str], bool] = {}
        self._parsed: OrderedDict[str, Code | None] = OrderedDict()
        self._kept = 0
        self._dropped: list[Code] = []
        self._failures: dict[str, ParseFailure] = {}
        self._edited: dict[str, ChunkCache] = {}
        self._noted: Noted | None = None
        self._answers: Answers | None = None
        self._digests: dict[str, str] = {}
        self._observed: dict[Observation, str] = {}
        self.is_torn = False
        """True if a file that should stay the same has changed."""
        self.turns = 0
        """The number of changes of files so far."""

    def stay(self) -> None:
        """Assume that only files passed to `forget` change, so that results of `once` are kept until then.

        Files that are dropped wait for `release`.
        """
        self._answers = {}

    @property
    def are_steady(self) -> bool:
        """Return whether all files stay as they are."""
        return self._answers is not None

    def once(self, question: Hashable, find: Callable[[], T]) -> T:
        """The result of `find`, computed once for each `question`, and again when files may have changed."""
        if self._answers is None:
            return find()
        known = self._answers.get(question)
        if known is None:
            before, self._noted = self._noted, Noted()
            try:
                known = self._answers[question] = find(), self._noted
            finally:
                self._noted = before
        if self._noted is not None:
            self._noted.once[question] = known[1]
        return cast("T", known[0])

    def knows(self, question: Hashable) -> bool:
        """Return whether `once` has an answer."""
        return self._answers is not None and question in self._answers

    def answers(self, question: Hashable) -> Answers:
        """The answer to a question, for another process; its evidence is flat, so that it is small."""
        known = (self._answers or {}).get(question)
        return {question: (known[0], known[1].flat())} if known is not None else {}

    def learn(self, answers: Answers) -> None:
        """Take over answers of another process, which had the same files."""
        if self._answers is not None:
            self._answers |= answers

    def observe(self, asked: Observation) -> str:
        """The short form of an observation's result; raises KeyError for an unknown kind."""
        known = self._observed.get(asked)
        if known is None:
            known = _OBSERVED[asked.kind](self, asked)
            if self.are_steady:
                self._observed[asked] = known
        return known

    def _note(self, asked: Observation) -> None:
        if self._noted is not None:
            self._noted.others.add(asked)

    def _text(self, path: str) -> str | None:
        """The text of a file, if it can be read."""
        text = self._text_of(path)
        now = digest(text.removeprefix(BOM)) if text is not None else ""
        self.is_torn |= self.are_steady and self._digests.get(path, now) != now
        self._digests[path] = now
        return text

    def digest(self, path: str) -> str:
        """The digest of a file's text; "" if it cannot be read."""
        if path not in self._digests:
            self._text(path)
        return self._digests[path]

    def read(self, path: str) -> Code | None:
        """The parsed file; None if it cannot be read or is not Python."""
        self.note((path,))
        if path in self._parsed:
            self._parsed.move_to_end(path)
            return self._parsed[path]
        text = self._text(path)
        chunks = parse(text.removeprefix(BOM), self._edited.get(path)) if text is not None else None
        known = None
        self._failures.pop(path, None)
        if isinstance(chunks, ParseFailure):
            self._failures[path] = chunks
        if text is not None and isinstance(chunks, list):
            known = Code(Source(text.removeprefix(BOM)), chunks)
        self._keep(path, known)
        return known

    def _keep(self, path: str, code: Code | None) -> None:
        """Keep a parsed file: recent ones, up to a limit."""
        self._drop(path)
        self._parsed[path] = code
        self._kept += _size_of(code)
        while len(self._parsed) > _MOST_KEPT or (self._kept > _MOST_CHARACTERS and len(self._parsed) > 1):
            oldest = next(iter(self._parsed))
            dropped = self._drop(oldest)
            # What an edit keeps of a file is part of its next reading.
            if dropped is not None and self.are_steady and oldest not in self._edited:
                self._dropped.append(dropped)

    def _drop(self, path: str) -> Code | None:
        code = self._parsed.pop(path, None)
        self._kept -= _size_of(code)
        return code

    def release(self) -> None:
        """Free at once the files dropped since the last call, which must not be used any more.

        The facts of a file refer to each other: to find them, Python's collector examines all others. It
        still looks for other garbage, after many allocations.
        """
        while self._dropped:
            for facts in self._dropped.pop().facts:
                facts.dissolve()
        tidy()

    @contextmanager
    def noting(self) -> Iterator[Noted]:
        """Record the observations of files made inside the `with` block."""
        before, self._noted = self._noted, Noted()
        try:
            yield self._noted
        finally:
            if before is not None:
                before.add(self._noted)
            self._noted = before

    def know(self, path: str, code: Code) -> None:
        """Accept a parsed file from its reader, such as an open document, if it is current."""
        text = self._text(path)
        if text is not None and text.removeprefix(BOM) == code.source.text:
            self._keep(path, code)
            self._failures.pop(path, None)

    def note(self, paths: Iterable[str]) -> None:
        """Record the use of files whose results were known already."""
        if self._noted is not None:
            self._noted.paths.update(paths)

    def failure(self, path: str) -> ParseFailure | None:
        """The syntax error of a file that was read; None if it is valid, or cannot be read at all."""
        return self._failures.get(path)

    def forget(self, path: str, *, is_edit: bool = False) -> None:
        """Read a file again at its next use; with `is_edit` it existed before and still does.

        For an edit, only the changed parts are parsed again.
        """
        self.turns += 1
        self._digests.pop(path, None)
        known = self._drop(path)
        if is_edit and known is not None:
            self._edited[path] = ChunkCache(known.pieces)
        if not is_edit:
            self._edited.pop(path, None)
            self._listed.clear()
            self._surveyed.clear()
        self._forget_words(path)
        self._observed.clear()
        if self._answers is not None:
            decided: dict[int, bool] = {}
            answers = self._answers.items() if is_edit else ()
            self._answers = {asked: each for asked, each in answers if not each[1].depends_on(path, decided)}

    def _forget_words(self, path: str) -> None:
        """Read the imports of a file again at their next use."""
        if path not in self._words:
            return
        self._naming.clear()
        self._used.clear()
        self._changed.add(path)
        for word in self._words.pop(path):
            self._by_word[word].discard(path)

    def holds(self, path: str, text: str) -> bool:
        """Return whether a file that was read reads so."""
        return self.parsed(path, text) is not None

    def parsed(self, path: str, text: str) -> Code | None:
        """The parsed file, if it was read and reads so."""
        known = self._parsed.get(path)
        return known if known is not None and known.source.text == text else None

    def survey(self, path: str, pause: Callable[[], None]) -> None:
        """Read the imports of all files in the project of `path`; `pause` may raise to abort."""
        for _ in self._surveying(posixpath.dirname(path)):
            pause()

    def has_file(self, path: str) -> bool:
        """Return whether there is such a file."""
        directory, name = posixpath.split(path)
        self._note(Observation("folder", directory))
        return name in self._entries(directory)

    def has_modules(self, path: str) -> bool:
        """Return whether there is such a directory with Python files right in it."""
        self._note(Observation("folder", path))
        return self._has_modules(path)

    def _has_modules(self, path: str) -> bool:
        return any(name.endswith(".py") for name in self._entries(path))

    def may_be_imported(self, path: str) -> bool:
        """Return whether another file of the project may import the one at `path`."""
        self._note(Observation("may be imported", path))
        return self._may_be_imported(path)

    def _may_be_imported(self, path: str) -> bool:
        around = self._around(posixpath.dirname(path)).paths
        word = _module_of(path)
        return any(other != path and word in self._imported_words(other) for other in around)

    def naming(self, path: str) -> list[str]:
        """The files of the project that contain a word of an import of the file at `path`."""
        self._note(Observation("naming", path))
        return self._named(path)

    def _named(self, path: str) -> list[str]:
        for _ in self._surveying(posixpath.dirname(path)):
            pass
        if path not in self._naming:
            around = self._around(posixpath.dirname(path)).paths
            found = self._by_word.get(_module_of(path), set())
            self._naming[path] = sorted(other for other in found if other != path and other in around)
        return self._naming[path]

    def searches_all(self, path: str) -> bool:
        """Return whether all files of the project, of any number, are searched for imports of the file at
        `path`.
        """
        self._note(Observation("searches all", path))
        return self._searches_all(path)

    def _searches_all(self, path: str) -> bool:
        return self._around(posixpath.dirname(path)).is_whole

    def has_notebooks(self, path: str) -> bool:
        """Return whether the project of the file at `path` has notebooks, which may import any file of it."""
        self._note(Observation("has notebooks", path))
        return self._has_notebooks(path)

    def _has_notebooks(self, path: str) -> bool:
        return self._around(posixpath.dirname(path)).has_notebooks

    def is_used_beside(self, path: str, module: str) -> bool:
        """Return whether a file that may import the one at `path`, directly or indirectly, also imports a
        module.
        """
        self._note(Observation("used beside", path, module))
        return self._is_used_beside(path, module)

    def _is_used_beside(self, path: str, module: str) -> bool:
        waiting, seen = [path], {path}
        for each in waiting:
            known = self._used.get((each, module))
            if known:
                return True
            for other in self._named(each) if known is None else ():
                if module in self._imported_words(other):
                    self._used[each, module] = True
                    return True
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        self._used.update(((each, module), False) for each in seen)
        return False

    def says(self, path: str, word: str) -> bool:
        """Return whether a file's text contains a word."""
        return word in (self._text(path) or "")

    def names(self, path: str, other: str) -> bool:
        """Return whether a word of an import of the file at `path` may mean the `other` file."""
        return _module_of(other) in self._imported_words(path)

    def python_path(self, directory: str) -> list[str]:
        """The directories in the PYTHONPATH of the `.env` in or above `directory`, in the same project."""
        for _ in range(_MOST_LEVELS):
            if self.has_file(settings := posixpath.join(directory, ".env")):
                self.note((settings,))
                text = self._text(settings) or ""
                given = ":".join(each.strip("'\"") for each in _PYTHONPATH.findall(text))
                parts = given.replace("${workspaceFolder}", directory).split(":")
                known = [part for part in parts if part and "$" not in part]
                return [posixpath.normpath(posixpath.join(directory, part)) for part in known]
            if self.is_root(directory):
                break
            directory = posixpath.dirname(directory)
        return []

    def _telling(self, directory: str) -> list[str]:
        """The names in a directory that decide which modules exist, and where a project begins."""
        names = self._entries(directory)
        return sorted(name for name in names if name.endswith(".py") or name in _ROOT_MARKS or name == ".env")

    def _around(self, directory: str) -> _Around:
        """The files of a directory's project; without a project, the nearest files."""
        root, most = directory, _MOST_SEARCHED
        for _ in range(_MOST_LEVELS):
            if self._is_root(root):
                break
            root = posixpath.dirname(root)
        else:
            root, most = directory, _MOST_NEAR
            for _ in range(_MOST_ABOVE):
                above = posixpath.dirname(root)
                root = above if self._has_modules(above) else root
        if root not in self._listed:
            self._listed[root] = self._files_in(root, most)
        return self._listed[root]

    def _surveying(self, directory: str) -> Iterator[None]:
        """Read the imports of unread files around a directory, one per step."""
        around = self._around(directory)
        for path in self._changed.copy():
            self._imported_words(path)
            yield
        self._changed.clear()
        if around.root not in self._surveyed:
            for path in around.paths:
                self._imported_words(path)
                yield
            self._surveyed.add(around.root)

    def _imported_words(self, path: str) -> frozenset[str]:
        """The words of a file's imports."""
        if path not in self._words:
            imports = _IMPORT.findall(self._text(path) or "")
            self._words[path] = frozenset(re.findall(r"\w+", " ".join(imports)))
            self._naming.clear()
            self._used.clear()
            for word in self._words[path]:
                self._by_word.setdefault(word, set()).add(path)
        return self._words[path]

    def _files_in(self, root: str, most: int) -> _Around:
        """The Python files in or below `root`; if there are too many, the nearest ones."""
        found: list[str] = []
        waiting = [root]
        has_notebooks = False
        for directory in waiting:
            if len(found) + len(waiting) > most:
                return _Around(root, dict.fromkeys(found), False, has_notebooks)
            for name in sorted(self._entries(directory)):
                path = posixpath.join(directory, name)
                if name.endswith(".py"):
                    found.append(path)
                elif "." not in name and name not in _FOREIGN:
                    waiting.append(path)
                has_notebooks |= name.endswith(".ipynb")
        return _Around(root, dict.fromkeys(found), True, has_notebooks)

    def is_root(self, directory: str) -> bool:
        """Return whether a project begins here, so that modules are not searched above."""
        self._note(Observation("folder", directory))
        return self._is_root(directory)

    def _is_root(self, directory: str) -> bool:
        return not _ROOT_MARKS.isdisjoint(self._entries(directory))


def is_test(path: str) -> bool:
    """Return whether a file contains tests, by its name."""
    name = posixpath.basename(path)
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _size_of(code: Code | None) -> int:
    return len(code.source.text) if code is not None else 0


def _module_of(path: str) -> str:
    """The last part of a file's module name."""
    directory, name = posixpath.split(path)
    return posixpath.basename(directory) if name == "__init__.py" else name.removesuffix(".py")


_OBSERVED: dict[str, Callable[[ParsedFiles, Observation], str]] = {
    TEXT: lambda files, asked: files.digest(asked.path),
    "folder": lambda files, asked: digest_of_names(files._telling(asked.path)),
    "naming": lambda files, asked: digest_of_names(files._named(asked.path)),
    "may be imported": lambda files, asked: str(files._may_be_imported(asked.path)),
    "searches all": lambda files, asked: str(files._searches_all(asked.path)),
    "has notebooks": lambda files, asked: str(files._has_notebooks(asked.path)),
    "used beside": lambda files, asked: str(files._is_used_beside(asked.path, asked.name)),
}


def files_in_memory(texts: Mapping[str, str]) -> ParsedFiles:
    """Files in memory: their texts by absolute path."""
    directories: dict[str, set[str]] = {"/": set(_ROOT_MARKS)}
    for path in texts:
        below = path
        while below != "/":
            above, name = posixpath.split(below)
            directories.setdefault(above, set()).add(name)
            below = above
    known = {path: frozenset(names) for path, names in directories.items()}
    return ParsedFiles(texts.get, lambda path: known.get(path, frozenset()))


def read_linked(
    text: str, path: str, files: ParsedFiles | None, most: int = MOST_FILES
) -> Script | ParseFailure:
    """Read the script at the absolute `path`; `text` is its current content without byte order mark."""
    known = files.parsed(path, text) if files is not None else None
    if known is not None:
        return linked(known, path, files, most)
    chunks = parse(text, is_kept=False)
    return (
        chunks if isinstance(chunks, ParseFailure) else linked(Code(Source(text), chunks), path, files, most)
    )


def linked(code: Code, path: str, files: ParsedFiles | None, most: int = MOST_FILES) -> Script:
    """The script for some code at the absolute `path`, linked to its imports if there are `files`.

    At `most` this many are read.
    """
    return Script(code) if files is None else Workspace(files, path, code, most).root
