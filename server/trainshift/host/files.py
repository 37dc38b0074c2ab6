"""Files: bytes to text and back without loss."""

from __future__ import annotations

import codecs
import os
import re
import stat
import tokenize
from typing import BinaryIO

from msgspec import Struct

MAX_BYTES = 64 * 1024 * 1024
"""Larger inputs are not read: no training script is that long, and an endless device would never end."""

_NOTEBOOK = ".ipynb"

_FIRST_TWO_LINES = re.compile(rb"(?:[^\r\n]*(?:\r\n|\n|\r|\Z)){1,2}")
_BYTE_NEWLINE = re.compile(rb"\r\n|\n|\r")
_FOREIGN_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileProblem(Exception):
    """An error in reading or writing a file: a phrase that continues "FILE: error: ...".

    `position` is its 1-based (line, column), if any.  `path` is the file, if several are processed.
    """

    def __init__(self, message: str, position: tuple[int, int] | None = None, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.path = path


class SourceFile(Struct, frozen=True):
    """The content of a script.

    `path` is the name as given.  `data` are the bytes, `text` their decoded text without the byte order mark
    (`bom`), with unchanged newlines.  `info` is the file's status (mode, owner, inode, mtime), or None for
    standard input.
    """

    path: str
    data: bytes
    text: str
    encoding: str
    bom: bool
    info: os.stat_result | None

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file; raises FileProblem where its encoding lacks a character."""
        try:
            body = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            lacking = text[error.start]
            raise FileProblem(
                f"the new text holds {lacking!r} (U+{ord(lacking):04X}), which the file's encoding "
                f"{self.encoding} lacks; nothing was written"
            ) from error
        return (codecs.BOM_UTF8 if self.bom else b"") + body


def shown_path(path: str) -> str:
    """An absolute `path` in messages: relative if it is below the current directory."""
    below = os.path.join(os.getcwd(), "")
    return path[len(below) :] if path.startswith(below) else path


def is_notebook(name: str) -> bool:
    """Return whether a file is a notebook by its name."""
    return name.lower().endswith(_NOTEBOOK)


def read(path: str) -> SourceFile:
    """The script at `path`; raises FileProblem when it cannot be read, or changes meanwhile."""
    try:
        with open(path, "rb") as stream:
            before = os.fstat(stream.fileno())
            data = stream.read(MAX_BYTES + 1)
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise FileProblem(f"cannot be read: {describe(error)}") from error
    if stat.S_ISREG(before.st_mode) and (
        _fingerprint(before) != _fingerprint(after) or len(data) != min(after.st_size, MAX_BYTES + 1)
    ):
        raise FileProblem("changed while it was read; it was left alone, run the command again")
    return decode(path, data, before)


def read_stream(name: str, stream: BinaryIO) -> SourceFile:
    """The script in `stream` (standard input), with the name `name`; raises FileProblem."""
    try:
        data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileProblem(f"cannot be read: {describe(error)}") from error
    return decode(name, data, None)


def decode(path: str, data: bytes, info: os.stat_result | None) -> SourceFile:
    """Decode `data` like Python decodes a source file: byte order mark, PEP 263 declaration, else UTF-8.

    A notebook is JSON, and that is UTF-8.  Raises FileProblem when the bytes are not text in that
    encoding, or when the text would not give the same bytes again.
    """
    is_json = is_notebook(path)
    if len(data) > MAX_BYTES:
        hint = "; clear its outputs" if is_json else "; a training script is smaller"
        raise FileProblem(f"is larger than {MAX_BYTES // 1024 // 1024} MiB{hint}")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    encoding = "utf-8" if is_json else _declared_encoding(data, bom)
    try:
        text = body.decode(encoding)
        exact = text.encode(encoding) == body
    except UnicodeDecodeError as error:
        raise _undecodable(body, encoding, error.start, is_json) from error
    except (LookupError, ValueError) as error:
        raise FileProblem(f"declares the encoding {encoding}, which Python does not support") from error
    if not exact:
        raise FileProblem(
            f"cannot be kept byte for byte in its declared encoding {encoding}; convert it to UTF-8"
        )
    return SourceFile(path, data, text, encoding, bom, info)


def describe(error: OSError) -> str:
    """The system's reason in lower case, without errno and file name: "permission denied"."""
    reason = error.strerror or str(error) or type(error).__name__
    return reason[:1].lower() + reason[1:]


def _declared_encoding(data: bytes, bom: bool) -> str:
    if data.startswith(_FOREIGN_MARKS):
        raise FileProblem("is UTF-16 or UTF-32 text; save it as UTF-8")
    head = _FIRST_TWO_LINES.match(data)
    lines = iter(head.group().splitlines(keepends=True) if head else [])
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError as error:
        reason = str(error.msg)
        if reason.startswith("unknown encoding"):
            raise FileProblem(f"declares an {reason}") from error
        if bom:
            raise FileProblem("starts with a UTF-8 byte order mark but declares another encoding") from error
        return "utf-8"  # Undeclared: decoding says which byte is wrong.
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _undecodable(body: bytes, encoding: str, offset: int, is_json: bool) -> FileProblem:
    line_ends = [match.end() for match in _BYTE_NEWLINE.finditer(body, 0, offset)]
    line_start = line_ends[-1] if line_ends else 0
    column = len(body[line_start:offset].decode(encoding, "replace")) + 1
    if is_json:
        hint = "; a notebook must be, so save it again in Jupyter"
    elif encoding == "utf-8":
        hint = "; if the file is in another encoding, declare it in the first line: # -*- coding: latin-1 -*-"
    else:
        hint = ", the encoding that the file declares"
    byte = f"0x{body[offset]:02x}" if offset < len(body) else "at the end"
    return FileProblem(f"byte {byte} is not {encoding.upper()}{hint}", (len(line_ends) + 1, column))


def _fingerprint(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns
