"""Every converted program of fixtures/programs is true: spec.md 6.7, on two real processes of Horovod.

Unconverted scripts that share modules with the program behave on one process as before.
"""

from __future__ import annotations

import pytest

from proof.code import Code
from proof.harness import Run, run_original
from proof.proven import Conversion, in_turns
from support.fixtures import PROGRAMS, ProgramFolder

pytestmark = pytest.mark.proof

TRAIN = [
    Conversion(
        f"{program.name}: {' '.join(command)}",
        Code(program.before, command),
        Code(program.converted, command),
    )
    for program in PROGRAMS
    for command in program.train
]
BESIDE = [(program, command) for program in PROGRAMS for command in program.beside]


def said(one: ProgramFolder | tuple[str, ...]) -> str:
    """The name of a case in pytest."""
    return one.name if isinstance(one, ProgramFolder) else " ".join(one)


@in_turns(TRAIN)
def test_conversion_of_a_program_is_true(conversion: Conversion, pytestconfig: pytest.Config) -> None:
    conversion.assert_proven(pytestconfig)


@pytest.mark.parametrize(("program", "command"), BESIDE, ids=said)
def test_what_is_not_converted_keeps_working(program: ProgramFolder, command: tuple[str, ...]) -> None:
    before, after = (run_original(Code(files, command)) for files in (program.before, program.converted))
    assert before.exit_code == 0, before.record
    assert seen(after) == seen(before)


def seen(run: Run) -> tuple[object, ...]:
    """The visible results of a run."""
    return run.exit_code, run.stdout, run.stderr, run.native, run.files
