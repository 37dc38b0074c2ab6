"""Every fixture is a test: the conversion of a script or a program, statement by statement and as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fixtures import PROGRAMS, SCRIPTS, TRANSFORM_CASES, Case, ProgramFolder, rewrite, rewrite_after
from support.programs import changed, converted, encoded, texts
from trainshift.engine.conversion import Conversion, Note, Status, convert


@pytest.mark.parametrize("case", TRANSFORM_CASES, ids=lambda case: case.name)
def test_case_becomes_what_it_says(case: Case, update_fixtures: bool) -> None:
    blocks = _blocks(convert(case.text, line=case.line, choices=case.choices))
    if update_fixtures:
        rewrite(case, blocks)
    else:
        assert blocks == case.expected


@pytest.mark.parametrize("folder", SCRIPTS, ids=lambda folder: folder.name)
def test_script_becomes_its_after(folder: Path, update_fixtures: bool) -> None:
    conversion = convert((folder / "before.py").read_bytes().decode())
    assert conversion.status in (Status.CONVERTED, Status.ALREADY_DISTRIBUTED)
    assert conversion.withheld == ()
    after = folder / "after.py"
    if update_fixtures:
        after.write_bytes(conversion.text.encode())
    else:
        assert conversion.text == after.read_bytes().decode()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_becomes_its_after(program: ProgramFolder, update_fixtures: bool) -> None:
    before = current = texts(program.before)
    for start in program.starts:
        conversion = converted(current, start)
        assert conversion.status is Status.CONVERTED, conversion.reason
        assert conversion.withheld == conversion.unresolved == ()
        current = current | changed(conversion)
    after = {
        path: encoded(text, program.before[path]) for path, text in current.items() if text != before[path]
    }
    if update_fixtures:
        rewrite_after(program, after)
    else:
        assert after == program.after


def _blocks(conversion: Conversion) -> dict[str, str]:
    """The result of a conversion, as the blocks of a fixture."""
    blocks = {}
    if conversion.status is Status.CONVERTED:
        blocks["python after"] = conversion.text
    elif conversion.status is Status.REFUSED:
        line, column = conversion.position or (0, 0)
        blocks["refused"] = f"{line}:{column} {conversion.reason}\n"
    if conversion.status is not Status.REFUSED:
        blocks["withheld"] = _lines(conversion.withheld)
    blocks["decisions"] = _lines(conversion.decisions)
    blocks["doubts"] = _lines(conversion.doubts)
    return {kind: body for kind, body in blocks.items() if body}


def _lines(notes: tuple[Note, ...]) -> str:
    return "".join(f"{note.line}:{note.column} {note.rule} {note.text}\n" for note in notes)
