"""A program after edits."""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.python.names.linked_program import joined
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Edit, apply
from trainshift.python.source.offset_map import OffsetMap
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunks import ChunkCache, ParseFailure, parse
from trainshift.python.syntax.code import Code


def edited(program: Program, edits: tuple[Edit, ...]) -> Program:
    """The program after edits in text order; raises ValueError if it is not Python."""
    codes = {script.path: _edited(script, own) for script, own in program.script.parts(edits)}
    workspace = program.script.scripts[0].workspace
    origin = program, OffsetMap(edits)
    if workspace is None:
        return Program(Script(next(iter(codes.values()))), choices=program.choices, origin=origin)
    after = workspace.rewritten(codes)
    files = [each for path in codes if (each := after.script(path)) is not None]
    return Program(joined(files), choices=program.choices, origin=origin)


def forget_edited(program: Program) -> None:
    """Free at once a program that `edited` returned, and everything parsed for it.

    It also contains reference cycles, and a long file's program would outlive many conversions.
    """
    assert program.origin is not None
    before = program.origin[0].script
    known = {id(facts) for facts in before.facts}
    paths = {script.path for script in before.scripts}
    files = [script for script in program.script.scripts if script.path in paths]
    read = [facts for script in files for facts in script.facts if id(facts) not in known]
    program.forget()
    for facts in read:
        facts.dissolve()


def _edited(script: Script, edits: tuple[Edit, ...]) -> Code:
    """A file after its edits; only the edited parts are parsed again."""
    text = apply(script.source.text, edits)
    chunks = parse(text, ChunkCache(script.code.pieces))
    if isinstance(chunks, ParseFailure):
        raise ValueError(chunks.message)
    return Code(Source(text), chunks)
