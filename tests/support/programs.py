"""Programs of several files in memory: their conversion, and their contents before and after."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

from support.fixtures import ProgramFolder
from trainshift.core.choices import Choices
from trainshift.engine.analysis import Analysis
from trainshift.engine.claims import KeptClaims, analyze_program
from trainshift.engine.conversion import Conversion, convert_program, finished_plan
from trainshift.engine.workspace import ParsedFiles, files_in_memory, read_linked
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Change, apply, merge

ROOT = "/project/"

Texts = dict[str, str]
"""The texts of the Python files of a program, by their paths in it, without byte order marks."""


def texts(files: Mapping[str, bytes]) -> Texts:
    """The texts of a program's Python files."""
    return {path: data.decode("utf-8-sig") for path, data in files.items() if path.endswith(".py")}


def encoded(text: str, like: bytes) -> bytes:
    """A new text for a file with the content `like`."""
    return (codecs.BOM_UTF8 if like.startswith(codecs.BOM_UTF8) else b"") + text.encode()


def in_memory(program: Texts) -> ParsedFiles:
    """The files as a workspace of the engine."""
    return files_in_memory({ROOT + path: text for path, text in program.items()})


def converted(program: Texts, start: str, only: str = "", choices: Choices | None = None) -> Conversion:
    """The conversion of the program that a file starts, or of its part in one file."""
    part = ROOT + only if only else ""
    return convert_program(program[start], ROOT + start, in_memory(program), only=part, choices=choices)


def changed(conversion: Conversion) -> Texts:
    """The new texts of the files that a conversion changes."""
    return {each.path.removeprefix(ROOT): each.text for each in conversion.files if each.text != each.before}


def analyzed(program: Texts, start: str) -> Analysis:
    """All changes of the program that a file starts."""
    files = in_memory(program)
    script = read_linked(program[start], ROOT + start, files)
    assert isinstance(script, Script), script
    return analyze_program(script, files, claims=KeptClaims(files).of)


def with_change(program: Texts, analysis: Analysis, change: Change) -> Texts:
    """The texts after an analysis's changes to the statement of one of its changes."""
    result = dict(program)
    changes = [each for each in analysis.changes if each.target == change.target]
    for script, edits in analysis.edits_by_file(finished_plan(analysis, merge(changes)).edits):
        result[script.path.removeprefix(ROOT)] = apply(script.source.text, edits)
    return result


def fully_converted(program: Texts, folder: ProgramFolder) -> Texts:
    """The texts after the conversion from all start files, one after the other."""
    for start in folder.starts:
        program = program | changed(converted(program, start))
    return program
