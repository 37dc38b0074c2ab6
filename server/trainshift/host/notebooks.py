"""Notebooks: the Python cells of an ipynb file, and the file with other cells, the rest byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.cells import Cells
from trainshift.host.files import FileProblem, SourceFile
from trainshift.python.lazy import cached_property

_PYTHON = frozenset({"python", "python3", "ipython"})
_SPACE = re.compile(r"[ \t\r\n]*")
_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.S)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_RAW_LINES = re.compile(r"(?:[^\\]|\\[^n])*\\n|(?:[^\\]|\\[^n])+")
_ESCAPED = re.compile(r"\\u(?!00[0-7])")
_UNPAIRED = re.compile("[\ud800-\udfff]")
_decode = json.JSONDecoder().raw_decode


def looks_like_notebook(text: str) -> bool:
    """Return whether a text without a name is a notebook: a JSON object with a notebook's keys."""
    return text.lstrip().startswith("{") and '"nbformat"' in text and '"cells"' in text


class Token(Struct, frozen=True, dict=True):
    """A string in the JSON: its raw content, and its offset after the quote.

    `line` and `column` are 1-based.
    """

    start: int
    raw: str
    line: int = 1
    column: int = 1

    @cached_property
    def text(self) -> str:
        """The text of the token."""
        return str(json.loads(f'"{self.raw}"'))

    def place(self, at: int) -> tuple[int, int]:
        """The line and column in the file of the character at `at` in the text."""
        columns = [0, *(match.end() for match in _CHARACTER.finditer(self.raw))]
        return self.line, self.column + columns[min(at, len(columns) - 1)]


class Written(Struct, frozen=True):
    """The source of a cell as the JSON has it: a string, or a list of strings that follow each other."""

    start: int
    raw: str
    tokens: tuple[Token, ...]

    @property
    def is_list(self) -> bool:
        """Return whether it is a list."""
        return self.raw.startswith("[")

    def place(self, at: int) -> tuple[int, int]:
        """The line and column in the file of the character at an offset of the source."""
        for token in self.tokens[:-1]:
            if at < len(token.text):
                return token.place(at)
            at -= len(token.text)
        return self.tokens[-1].place(at) if self.tokens else (1, 1)

    def rewritten(self, text: str, *, escapes: bool) -> str:
        """The JSON of another text, in the same style; unchanged lines keep their notation."""
        known = {
            str(json.loads(f'"{raw}"')): raw for token in self.tokens for raw in _RAW_LINES.findall(token.raw)
        }

        def quoted(line: str) -> str:
            return f'"{"".join(known.get(each) or _dumped(each, escapes) for each in _LINES.findall(line))}"'

        if not self.is_list:
            return quoted(text)
        lines = [quoted(line) for line in self._cut(text)]
        if not self.tokens or not lines:
            return f"[{', '.join(lines)}]"
        first, last = self.tokens[0], self.tokens[-1]
        head = self.raw[: first.start - 1 - self.start]
        tail = self.raw[last.start + len(last.raw) + 1 - self.start :]
        between = [
            self.raw[one.start + len(one.raw) + 1 - self.start : other.start - 1 - self.start]
            for one, other in pairwise(self.tokens)
        ]
        # A cell of one line does not show the separator of lines; in a list of lines it is the text before
        # it.
        between = between or [f",{head[1:]}" if head[1:] else ", "]
        later = (f"{between[min(at, len(between) - 1)]}{line}" for at, line in enumerate(lines[1:]))
        return f"{head}{lines[0]}{''.join(later)}{tail}"

    def _cut(self, text: str) -> list[str]:
        """A text cut into pieces like this one: Jupyter cuts at any line boundary, others at line feeds."""
        now = [token.text for token in self.tokens]
        whole = "".join(now)
        ways: tuple[Callable[[str], list[str]], ...] = (
            _LINES.findall,
            lambda text: text.splitlines(keepends=True),
            lambda text: [text],
        )
        return next((way for way in ways if way(whole) == now), ways[0])(text)


class Notebook(Struct, frozen=True, dict=True):
    """A notebook file: its JSON, its Python cells, and `languages`, the languages of its code cells.

    `at` are the indices of the Python cells among all cells.
    """

    file: SourceFile
    cells: Cells
    languages: frozenset[str]

    @property
    def is_foreign(self) -> bool:
        """Return whether it contains code, but no Python."""
        return bool(self.languages) and not self.cells.texts

    @cached_property
    def written(self) -> tuple[Written, ...]:
        """The sources of the Python cells, in the notation of the JSON."""
        found = _sources(self.file.text)
        return tuple(found[number - 1] for number in self.cells.numbers)

    def after(self, cells: Cells) -> Notebook:
        """The notebook with other texts in its Python cells."""
        text = self.file.text
        escapes = text.isascii() and _ESCAPED.search(text) is not None
        pieces: list[str] = []
        at = 0
        for old, new, written in zip(self.cells.texts, cells.texts, self.written, strict=True):
            if old != new:
                pieces += (text[at : written.start], written.rewritten(new, escapes=escapes))
                at = written.start + len(written.raw)
        result = replace(self, file=replace(self.file, text="".join([*pieces, text[at:]])), cells=cells)
        if read_notebook(result.file).cells != cells:
            raise FileProblem("cannot be written: an internal error, please report it with the notebook")
        return result


def read_notebook(file: SourceFile) -> Notebook:
    """The notebook in a file; raises FileProblem if it is not one, or has a format before 4."""
    document = _parsed(file.text)
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        if isinstance(document, dict) and isinstance(document.get("worksheets"), list):
            raise FileProblem(
                "is a notebook of format 3; convert it first: "
                f"jupyter nbconvert --to notebook --nbformat 4 --inplace {file.path}"
            )
        raise FileProblem("is not a notebook: its JSON has no list of `cells`; save it again in Jupyter")
    language = _language(document.get("metadata"))
    texts: list[str] = []
    numbers: list[int] = []
    languages: set[str] = set()
    for number, cell in enumerate(document["cells"], 1):
        if not isinstance(cell, dict):
            raise FileProblem(
                f"is not a notebook: its cell {number} is not a JSON object; save it again in Jupyter"
            )
        if cell.get("cell_type") != "code":
            continue
        text = _text(cell.get("source"), number)
        own = _own_language(cell.get("metadata")) or language
        languages.add(own)
        if own in _PYTHON:
            texts.append(text)
            numbers.append(number)
    return Notebook(file, Cells(tuple(texts), tuple(numbers)), frozenset(languages))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        hint = "; save it again in Jupyter, or restore it from version control"
        reason = "is empty" if not text.strip() else f"is broken: {error.msg[:1].lower()}{error.msg[1:]}"
        raise FileProblem(f"the notebook's JSON {reason}{hint}", (error.lineno, error.colno)) from error
    except (RecursionError, ValueError) as error:
        raise FileProblem("the notebook's JSON is nested too deeply, or holds too long a number") from error


def _text(source: object, number: int) -> str:
    if isinstance(source, str):
        return source
    if isinstance(source, list) and all(isinstance(each, str) for each in source):
        return "".join(source)
    raise FileProblem(
        f"is not a notebook: the `source` of its cell {number} is neither text nor a list of lines; "
        "save it again in Jupyter"
    )


def _language(metadata: object) -> str:
    """The language of a notebook's kernel; Python if it is not stated."""
    for key, inside in (("kernelspec", "language"), ("language_info", "name")):
        told = metadata.get(key) if isinstance(metadata, dict) else None
        language = told.get(inside) if isinstance(told, dict) else None
        if isinstance(language, str) and language:
            return language.lower()
    return "python"


def _own_language(metadata: object) -> str:
    """The language that an editor has set for one cell."""
    told = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = told.get("languageId") if isinstance(told, dict) else None
    return language.lower() if isinstance(language, str) else ""


def _dumped(line: str, escapes: bool) -> str:
    """The content of a JSON string; half a surrogate pair is always escaped."""
    raw = json.dumps(line, ensure_ascii=escapes)[1:-1]
    return _UNPAIRED.sub(lambda match: f"\\u{ord(match[0]):04x}", raw)


# Where the sources are in the JSON, which is known to be well-formed


def _sources(text: str) -> dict[int, Written]:
    """The sources of all cells by the index of the cell; of two keys with one name, JSON uses the last."""
    found: dict[int, Written] = {}
    # The current line, and its start.
    line, start = 1, 0

    def located(token: Token) -> Token:
        nonlocal line, start
        line += text.count("\n", start, token.start)
        start = text.rfind("\n", start, token.start) + 1 or start
        return replace(token, line=line, column=token.start - start + 1)

    def value(at: int, path: tuple[str | int, ...]) -> int:
        """Scan the value at an offset; returns the offset of its end."""
        if path and path[0] == "cells" and len(path) == 3 and path[2] == "source":
            tokens: list[Token] = []
            end = _tokens(text, at, tokens)
            found[int(path[1])] = Written(at, text[at:end], tuple(map(located, tokens)))
            return end
        is_way = not path or (path[0] == "cells" and len(path) < 3)
        if not is_way or text[at] not in "{[":
            return int(_decode(text, at)[1])
        return _members(text, at, lambda key, start: value(start, (*path, key)))

    value(_skip(text, 0), ())
    return found


def _members(text: str, at: int, value: Callable[[str | int, int], int]) -> int:
    """Scan the members of an object or a list, each with its key or index; returns the offset of the end."""
    is_object, index = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        key: str | int = index
        if is_object:
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        at = _skip(text, value(key, at))
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    return at + 1


def _tokens(text: str, at: int, tokens: list[Token]) -> int:
    """Collect the strings of a source; returns the offset of its end."""
    if text[at] == "[":
        return _members(text, at, lambda _, start: _tokens(text, start, tokens))
    end = int(_decode(text, at)[1])
    if text[at] == '"':
        tokens.append(Token(at + 1, text[at + 1 : end - 1]))
    return end


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
