"""Invariants (spec.md 6 and 7): on every program of several files, and on mutations of them."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fixtures import PROGRAMS, ProgramFolder
from support.lossless import assert_lossless
from support.mutations import both, commented, crlf, respelled, shifted, spread, tabbed, unended, unparsed
from support.programs import (
    ROOT,
    Texts,
    analyzed,
    changed,
    converted,
    fully_converted,
    in_memory,
    texts,
    with_change,
)
from support.turns import Turns
from trainshift.cli.main import cli
from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.engine.conversion import Conversion, Status
from trainshift.engine.findings import find
from trainshift.engine.settings import HAZARD_CODES, RESTRICTION_CODES
from trainshift.engine.workspace import read_linked
from trainshift.python.names.script import Script

# Mutations that keep the names that other files import.
MUTATIONS = (both(respelled, shifted), both(unparsed, commented), both(spread, unended), both(tabbed, crlf))
BY_NAME = {program.name: program for program in PROGRAMS}

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


@each_program
@pytest.mark.sampled
def test_the_properties_hold_on_every_mutation(program: ProgramFolder, quick: bool, turns: Turns) -> None:
    before = texts(program.before)
    for start in program.starts:
        original = converted(before, start)
        for mutate in (None, *(() if quick else turns.of(MUTATIONS, 4))):
            mutated = (
                before if mutate is None else {path: _mutated(text, mutate) for path, text in before.items()}
            )
            conversion = converted(mutated, start)
            where = f"{program.name} {start} {mutate.__name__ if mutate else ''}"
            assert conversion.status is Status.CONVERTED, (where, conversion.reason)
            assert len(conversion.applied) == len(original.applied), where
            _check(mutated, start, conversion, where)


@each_program
@pytest.mark.sampled
def test_file_by_file_in_any_order_from_any_start_is_the_whole_program(program: ProgramFolder) -> None:
    before = texts(program.before)
    whole = fully_converted(before, program)
    for starts in permutations(program.starts):
        current = before
        for start in starts:
            current = current | changed(converted(current, start))
        assert current == whole, starts
    parts = [*product(program.starts, before)]
    random.Random(program.name).shuffle(parts)
    current = before
    for start, path in parts:
        new = changed(converted(current, start, only=path))
        assert new.keys() <= {path}
        current = current | new
    assert current == whole


@each_program
@pytest.mark.sampled
@pytest.mark.slow
def test_statement_by_statement_in_any_order_is_the_whole_program(program: ProgramFolder) -> None:
    current = texts(program.before)
    whole = fully_converted(current, program)
    order = random.Random(program.name)
    waiting = list(program.starts)
    while waiting:
        start = order.choice(waiting)
        analysis = analyzed(current, start)
        assert not any(each.essential for each in analysis.withheld)
        if analysis.changes:
            current = with_change(current, analysis, order.choice(analysis.changes))
        else:
            waiting.remove(start)
    assert current == whole


@each_program
@pytest.mark.sampled
def test_a_file_that_keeps_to_a_restriction_does_so_when_converted(program: ProgramFolder) -> None:
    before = texts(program.before)
    after = fully_converted(before, program)
    for path in before:
        assert _violated(after, path) <= _violated(before, path), path


@each_program
def test_files_that_no_training_reaches_are_left_alone(program: ProgramFolder) -> None:
    before = texts(program.before)
    reached = {
        each.path.removeprefix(ROOT) for start in program.starts for each in converted(before, start).files
    }
    after = fully_converted(before, program)
    for path in before.keys() - reached:
        assert after[path] == before[path]
    for command in program.beside:
        assert after.get(command[0]) == before.get(command[0])


@each_program
@pytest.mark.sampled
def test_the_command_line_writes_the_same(
    program: ProgramFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    for path, content in program.before.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["convert", "--write", "."])
    assert result.exit_code == 0, result.stderr
    assert {path: (tmp_path / path).read_bytes() for path in program.before} == program.converted


@settings(derandomize=True, max_examples=100)
@given(st.data())
@pytest.mark.slow
def test_a_broken_program_is_refused_and_left_alone(data: st.DataObject) -> None:
    """A piece of a file is cut out, junk inserted, or the file removed; any result is handled."""
    program = BY_NAME[data.draw(st.sampled_from(sorted(BY_NAME)))]
    start = data.draw(st.sampled_from(program.starts))
    current = texts(program.before)
    path = data.draw(st.sampled_from(sorted(current)))
    text = current[path]
    if path != start and data.draw(st.booleans()):
        del current[path]
    else:
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 40)))
        junk = data.draw(st.sampled_from(["", "(", "'", '"""', "\\", "\0", "\f", "🚂", "\n    x", "def"]))
        current[path] = text[:at] + junk + text[end:]
    conversion = converted(current, start)
    if conversion.status is Status.CONVERTED:
        _check(current, start, conversion, path)
    else:
        assert changed(conversion) == {}
        assert conversion.text == current[start]
        assert conversion.reason or conversion.status is Status.ALREADY_DISTRIBUTED


def _check(before: Texts, start: str, conversion: Conversion, where: str) -> None:
    """Check that results parse, are lossless and idempotent; no internal errors; changed files are
    reported.
    """
    assert "internal error" not in conversion.reason, (where, conversion.reason)
    assert conversion.text == (before | changed(conversion))[start]
    for each in conversion.files:
        assert each.before == before[each.path.removeprefix(ROOT)], where
        assert_lossless(each.before, each.edits, each.text, f"{where} {each.path}")
        if each.edits:
            ast.parse(each.text)
    again = converted(before | changed(conversion), start)
    assert changed(again) == {}, where
    assert again.status is Status.ALREADY_DISTRIBUTED, (where, again.status, again.reason)


def _violated(program: Texts, path: str) -> set[str]:
    script = read_linked(program[path], ROOT + path, in_memory(program))
    assert isinstance(script, Script)
    found = find(Program(script), frozenset(RESTRICTION_CODES).difference(HAZARD_CODES)).found
    return {each.code for each in found if each.verdict is Verdict.VIOLATED}


def _mutated(text: str, mutate: Callable[[str], str]) -> str:
    return mutate(text) if text else text
