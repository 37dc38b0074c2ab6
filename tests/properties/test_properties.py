"""Invariants (spec.md 6): on every fixture, and on mutations of every fixture."""

from __future__ import annotations

import ast
import random
import tokenize
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fixtures import SCRIPTS, TRANSFORM_CASES
from support.lossless import assert_lossless
from support.mutations import MUTATIONS, PAIRS
from support.turns import Turns
from trainshift.core.choices import Choices
from trainshift.engine.analysis import analyze
from trainshift.engine.conversion import Conversion, Status, convert, finished_plan
from trainshift.python.source.edit import apply, merge
from trainshift.python.source.source import BOM
from trainshift.python.syntax.chunks import ParseFailure

TEXTS = {folder.name: (folder / "before.py").read_bytes().decode() for folder in SCRIPTS}
SHORT = [case.name for case in TRANSFORM_CASES]
LONG = list(TEXTS)
TEXTS |= {case.name: case.text for case in TRANSFORM_CASES}
USUAL = Choices()
CHOICES = dict.fromkeys(TEXTS, USUAL) | {case.name: case.choices for case in TRANSFORM_CASES}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.sampled
@pytest.mark.in_turns(6)
def test_the_properties_hold_on_every_mutation(name: str, quick: bool, turns: Turns) -> None:
    choices = CHOICES[name]
    original = convert(TEXTS[name], choices=choices)
    _check(TEXTS[name], original, name, choices)
    # Some mutations leave a short text unchanged, or have the same result as others.
    pairs = () if quick else turns.of(PAIRS, 4)
    mutated = {_mutated(name, mutate): f"{name} {mutate.__name__}" for mutate in pairs}
    mutated.pop(TEXTS[name], None)
    for text, where in mutated.items():
        conversion = convert(text, choices=choices)
        assert conversion.status is original.status, (where, conversion.reason)
        assert len(conversion.applied) == len(original.applied), where
        _check(text, conversion, where, choices)


@pytest.mark.parametrize("name", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
@pytest.mark.sampled
@pytest.mark.in_turns(6)
def test_statement_by_statement_in_any_order_is_the_whole_file(name: str) -> None:
    text = TEXTS[name].removeprefix(BOM)
    choices = CHOICES[name]
    conversion = convert(text, choices=choices)
    if conversion.status is Status.REFUSED and conversion.reason.startswith("the result would be wrong"):
        return  # The audit refuses the whole result, which no single change shows.
    order = random.Random(name)
    rounds = 2 if len(text) < 2000 else 1
    for _ in range(rounds):
        current = text
        for change in islice(_changes(current, order, choices), 1000):
            current = change
        assert current == conversion.text


@pytest.mark.slow
@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_the_properties_hold_on_mixtures_of_scripts(data: st.DataObject) -> None:
    """Two fixtures in one file, mutated more than once."""
    names = data.draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=2, unique=True))
    mutations = data.draw(st.lists(st.sampled_from(MUTATIONS), max_size=3, unique=True))
    parts = [TEXTS[name].removeprefix(BOM).rstrip("\r\n") for name in names]
    text = "\n".join(parts) + "\n"
    try:
        ast.parse(text)
        for mutate in mutations:
            text = mutate(text)
    except (SyntaxError, tokenize.TokenError):
        return
    _check(text, convert(text), f"{names} {[mutate.__name__ for mutate in mutations]}")


@settings(derandomize=True)
@given(st.data())
def test_a_broken_script_is_refused_and_left_alone(data: st.DataObject) -> None:
    """A piece of a script is cut out, or junk inserted; any result is handled."""
    text = TEXTS[data.draw(st.sampled_from(sorted(TEXTS)))]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    junk = data.draw(
        st.sampled_from(["", "(", ")", "'", '"""', "\\", "\0", "\t", "\f", "🚂", ":", "\n    x", "def"])
    )
    broken = text[:start] + junk + text[end:]
    conversion = convert(broken)
    if conversion.status is Status.CONVERTED:
        _check(broken, conversion, repr((start, end, junk)))
    else:
        assert conversion.text == broken
        assert conversion.reason


def _check(text: str, conversion: Conversion, where: str, choices: Choices = USUAL) -> None:
    """Check that results parse, are lossless and idempotent with any options the second time; no internal
    error.
    """
    assert "internal error" not in conversion.reason, (where, conversion.reason)
    if conversion.status is not Status.CONVERTED:
        assert conversion.text == text, where
        return
    ast.parse(conversion.text.removeprefix(BOM))
    assert conversion.text.startswith(BOM) == text.startswith(BOM), where
    body = text.removeprefix(BOM)
    plan = conversion.plan
    assert plan is not None
    assert not plan.dropped
    assert_lossless(body, plan.edits, conversion.text.removeprefix(BOM), where)
    # Data that were left whole by choice are divided once that choice is undone.
    later = USUAL if choices.divide_data else choices
    for chosen in dict.fromkeys((choices, later)):
        again = convert(conversion.text, choices=chosen)
        assert again.text == conversion.text, where
        assert again.status is Status.ALREADY_DISTRIBUTED, (where, again.status)


def _changes(text: str, order: random.Random, choices: Choices):  # type: ignore[no-untyped-def]
    """The texts after the changes of one random statement after another, each analysed anew."""
    while True:
        analysis = analyze(text, choices=choices)
        assert not isinstance(analysis, ParseFailure)
        if not analysis.changes or any(each.essential for each in analysis.withheld):
            return
        statement = order.choice(analysis.changes).target
        changes = [each for each in analysis.changes if each.target == statement]
        plan = finished_plan(analysis, merge(changes))
        text = apply(text, plan.edits)
        yield text


def _mutated(name: str, mutate) -> str:  # type: ignore[no-untyped-def]
    text = TEXTS[name]
    bom = BOM if text.startswith(BOM) else ""
    mutated: str = bom + mutate(text.removeprefix(BOM))
    return mutated
