"""Invariants of findings and expansions: on every fixture, mutated and ruined."""

from __future__ import annotations

import ast
from collections import Counter
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.expansion_fixtures import EXPANSION_CASES
from support.finding_fixtures import STATIC_CASES, FindingCase, program_of
from support.lossless import assert_lossless, comments
from support.mutations import MUTATIONS
from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.engine.findings import find
from trainshift.engine.fixing import fix
from trainshift.engine.settings import Settings, Severity
from trainshift.python.names.script import Script, read_script
from trainshift.python.source.source import BOM
from trainshift.static_graphs.expanding.door import Expansion, expand
from trainshift.static_graphs.expanding.piecewise import expand_at

SCRIPTS: dict[str, tuple[str, dict[str, str]]] = {case.name: (case.script, {}) for case in EXPANSION_CASES}
EXPANDED = [case.name for case in EXPANSION_CASES if case.is_expanded]
SCRIPTS |= {case.name: (case.script, case.others) for case in STATIC_CASES}
HEADERS = (ast.If, ast.For, ast.While)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.sampled
def test_layout_changes_nothing_of_an_expansion(name: str, quick: bool) -> None:
    text, others = SCRIPTS[name]
    expected = _told(_checked(text, others, name))
    at = len(text) % len(MUTATIONS)
    turned = MUTATIONS[at:] + MUTATIONS[:at]
    for mutate in turned[::3] if name in EXPANDED and not quick else turned[:1]:
        mutated = mutate(text)
        if mutated != text:
            where = f"{name} {mutate.__name__}"
            assert _told(_checked(mutated, others, where)) == expected, where


@pytest.mark.parametrize("case", STATIC_CASES, ids=lambda case: case.name)
@pytest.mark.sampled
def test_layout_changes_nothing_of_a_finding(case: FindingCase) -> None:
    mutate = MUTATIONS[len(case.name) % len(MUTATIONS)]
    text = mutate(case.script)
    assert _judged(text, case) == _judged(case.script, case)
    fixed = fix(text, Settings(select=(case.code,)), least=Severity.HINT)
    assert not any(each.is_error_of_ours for each in fixed.report.diagnostics)
    assert comments(text) <= comments(fixed.text)
    compile(fixed.text, "<fixed>", "exec", dont_inherit=True)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name in EXPANDED or name.startswith("PD27")])
@pytest.mark.sampled
def test_an_inner_statement_and_then_the_outer_one_is_the_outer_one(name: str) -> None:
    """Unless the inner one is refused."""
    text, others = SCRIPTS[name]
    headers = [each for each in ast.walk(ast.parse(text)) if isinstance(each, HEADERS)]
    alone = {each.lineno: _of_line(text, others, each.lineno) for each in headers}
    for outer in headers:
        for inner in ast.walk(outer):
            if inner is outer or not isinstance(inner, HEADERS):
                continue
            first, whole = alone[inner.lineno], alone[outer.lineno]
            if not first.edits:
                continue
            shift = _lines_above(first, text, outer.lineno)
            then = _of_line(first.result, others, outer.lineno + shift)
            assert then.result == (whole.result if whole.edits else first.result), inner.lineno


def test_an_inner_statement_is_refused_where_the_outer_one_needs_it() -> None:
    text = """\
    import paddle

    @paddle.jit.to_static
    def f(x):
        x = paddle.exp(x)
        n = 0
        while x.sum() < 30:
            if x.max() > 3:
                n = n + 2
            x = x + n
        return x
    """
    found = _of_line(dedent(text), {}, 8)
    assert not found.edits
    assert "expand that one" in found.refused[0].reason
    assert "line 7" in found.refused[0].reason


def test_an_inner_statement_can_be_expanded_alone() -> None:
    text = dedent("""\
    import paddle

    @paddle.jit.to_static
    def f(x):
        x = paddle.exp(x)
        while x.sum() < 30:
            if x.max() > 3:
                x = x + 2
            else:
                x = x * 2
        return x
    """)
    inner = _of_line(text, {}, 7)
    assert inner.edits
    outer = _of_line(inner.result, {}, 6)
    assert outer.result == _of_line(text, {}, 6).result == expand(program_of(text, {})).result


@settings(max_examples=100, derandomize=True)
@given(st.data())
def test_a_broken_script_is_expanded_right_or_left_alone(data: st.DataObject) -> None:
    """A piece of a script is cut out, or junk inserted; any result is handled."""
    text = SCRIPTS[data.draw(st.sampled_from(EXPANDED))][0]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    junk = data.draw(
        st.sampled_from(["", "(", ")", "'", '"""', "\\", "\t", "\f", "🚂", ":", "\n    x", "def"])
    )
    broken = text[:start] + junk + text[end:]
    if isinstance(read_script(broken), Script):
        _checked(broken, {}, repr((start, end, junk)))


def _checked(text: str, others: dict[str, str], where: str) -> Expansion:
    """The expansion of a script: lossless, valid Python, done in one go, each comment once."""
    found = expand(program_of(text.removeprefix(BOM), others))
    assert_lossless(text.removeprefix(BOM), found.edits, found.result, where)
    assert comments(found.result) == comments(text), where
    compile(found.result, "<expanded>", "exec", dont_inherit=True)
    assert not found.edits or not expand(program_of(found.result, others)).edits, where
    return found


def _told(found: Expansion) -> tuple[object, ...]:
    """The report of an expansion, without places."""
    return (
        sorted((each.code, each.function) for each in found.applied),
        sorted((each.code, each.function) for each in found.refused),
    )


def _judged(text: str, case: FindingCase) -> Counter[Verdict]:
    found = find(program_of(text, case.others), {case.code})
    assert found.defects == ()
    return Counter(each.verdict for each in found.found)


def _of_line(text: str, others: dict[str, str], line: int) -> Expansion:
    def read(changed: str) -> Program:
        return program_of(changed, others)

    return expand_at(read(text), "", line, read)


def _lines_above(found: Expansion, text: str, line: int) -> int:
    """The number of lines that an expansion adds above a line of a script that stays."""
    header = text.splitlines()[line - 1]
    before = text.splitlines()[:line].count(header)
    after = [number for number, each in enumerate(found.result.splitlines(), 1) if each == header]
    return after[before - 1] - line
