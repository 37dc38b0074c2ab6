"""Live checking: the immediate reports after random edits, compared with those of `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from zlib import crc32

import pytest

from support.finding_fixtures import FINDING_CASES
from support.fixtures import SCRIPTS, TRANSFORM_CASES
from support.typist import Typist
from trainshift.engine.checking import CheckReport, Diagnostic, check
from trainshift.engine.incremental import Live, Shift
from trainshift.engine.own_codes import SYNTAX_ERROR
from trainshift.engine.settings import LETTER, Settings, read_settings
from trainshift.engine.workspace import files_in_memory
from trainshift.python.source.source import BOM, Source, Span

# The effects of findings are passed to a `Live`; here the strict setting decides.
SETTINGS = Settings(restrictions=LETTER)
# Hazards are not reported at once: they concern the whole program.
AT_ONCE = SETTINGS.without_hazards
WHOLE = {folder.name: (folder / "before.py").read_text(encoding="utf-8") for folder in SCRIPTS}
CASES = {case.name: case.text for case in TRANSFORM_CASES} | {
    case.name: case.script for case in FINDING_CASES
}
TEXTS = {name: text.removeprefix(BOM) for name, text in (WHOLE | CASES).items()}
# At least this share of the versions of long texts have immediate findings equal to those of `check`.
LEAST_EXACT = 0.92
# Makes any text long: a short one is read as a whole.
MUCH_ELSE = f"\n{'x' * 6_000!r}\n"


def some(seed: int, number: int, names: Iterable[str] = TEXTS) -> list[str]:
    """The names of some texts; adding or removing a text changes at most one of them."""
    return sorted(names, key=lambda name: crc32(f"{seed} {name}".encode()))[:number]


def said(report: CheckReport) -> list[tuple[object, ...]]:
    """The contents of a report, without fixes, which only a full check has."""
    return [_said(each) for each in report.diagnostics]


def _said(each: Diagnostic) -> tuple[object, ...]:
    return each.code, each.severity, each.verdict, each.region, each.span, each.message, each.related


def assert_in_order(report: CheckReport, text: str, full: CheckReport, note: str) -> None:
    """Check that every position is in the text, and that nothing is repeated."""
    lines = Source(text).line_starts
    for each in report.diagnostics:
        for region in (each.region, *(related.region for related in each.related)):
            assert 1 <= region.line <= region.end_line <= len(lines), f"{note}: {each}"
            assert (region.line, region.column) <= (region.end_line, region.end_column), f"{note}: {each}"
        if each.span is not None:
            assert 0 <= each.span.start <= each.span.end <= len(text), f"{note}: {each}"
    allowed = Counter((each.code, each.region, each.message) for each in full.diagnostics)
    for key, count in Counter((each.code, each.region, each.message) for each in report.diagnostics).items():
        assert count <= max(allowed[key], 1), f"{note}: {count} times {key}"


class Tally:
    """The number of immediate reports that equal those of `check`."""

    def __init__(self) -> None:
        self.exact = 0
        self.asked = 0
        self.unknown = 0
        self.wrong: list[str] = []

    def follow(self, name: str, versions: int, every: int, below: str) -> None:
        """Edit one text, below another, at random; every `every` versions there is time for a full check."""
        live = Live()
        live.in_full(Source(TEXTS[name] + below), AT_ONCE)
        seed = crc32(name.encode())
        for number, text in enumerate(Typist(TEXTS[name], seed).versions(versions)):
            text += below
            note = f"{name!r}, seed {seed}, version {number}, full check each {every}"
            full = check(text, AT_ONCE)
            report = live.at_once(Source(text), AT_ONCE)
            if report is None:
                self.unknown += 1
            else:
                self.asked += 1
                assert_in_order(report, text, full, note)
                if said(report) == said(full):
                    self.exact += 1
                else:
                    self.wrong.append(note)
                    codes = {each.code for each in (*report.diagnostics, *full.diagnostics)}
                    assert SYNTAX_ERROR.code not in codes, f"{note}: broken, {report} is not {full}"
            if number % every == every - 1:
                assert live.in_full(Source(text), AT_ONCE) == full, note


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 5, 20])
def test_what_is_said_at_once_is_nearly_always_what_check_says(every: int, quick: bool) -> None:
    tally = Tally()
    for name in [*some(every, 1 if quick else 8, WHOLE), *some(every, 15 if quick else 40, CASES)]:
        tally.follow(name, 25, every, MUCH_ELSE)
    assert tally.asked > 10 * tally.unknown
    share = tally.exact / tally.asked
    assert share >= LEAST_EXACT, f"{share:.1%} of {tally.asked} exact; wrong: {tally.wrong[:20]}"


def test_what_is_said_of_a_short_text_at_once_is_what_check_says(quick: bool) -> None:
    tally = Tally()
    for name in some(3, 15 if quick else 60, CASES):
        tally.follow(name, 25, 20, "")
    assert not tally.wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_long_histories(seed: int) -> None:
    tally = Tally()
    for name in some(seed, 20):
        tally.follow(name, 100, 4, MUCH_ELSE)
    share = tally.exact / tally.asked
    assert share >= LEAST_EXACT, f"{share:.1%} of {tally.asked} exact; wrong: {tally.wrong[:20]}"


def test_a_text_that_is_back_says_what_was_said_of_it(quick: bool) -> None:
    for seed, name in enumerate(some(7, 8 if quick else 25)):
        text = TEXTS[name]
        live = Live()
        base = live.in_full(Source(text), SETTINGS)
        for number, version in enumerate(Typist(text, seed).versions(12)):
            live.at_once(Source(version), SETTINGS)
            back = live.at_once(Source(text), SETTINGS)
            assert back is not None, f"{name!r}, seed {seed}, version {number}"
            assert said(back) == said(base), f"{name!r}, seed {seed}, version {number}"


def test_a_full_check_says_what_check_says_after_any_history(quick: bool) -> None:
    for seed, name in enumerate(some(8, 8 if quick else 25)):
        random = Random(seed)
        live = Live()
        for number, text in enumerate(Typist(TEXTS[name], seed).versions(40)):
            deed = random.randrange(8)
            if deed:
                live.at_once(Source(text), SETTINGS)
            else:
                note = f"{name!r}, seed {seed}, version {number}"
                assert live.in_full(Source(text), SETTINGS) == check(text, SETTINGS), note


@pytest.mark.slow
def test_a_check_that_was_given_up_leaves_no_trace() -> None:
    class GivenUp(BaseException):
        pass

    name = some(9, 1, WHOLE)[0]
    live = Live()
    random = Random(9)

    def pause() -> None:
        if random.random() < 0.01:
            raise GivenUp

    for text in Typist(TEXTS[name], 9).versions(60):
        report = None
        while report is None:
            live.at_once(Source(text), SETTINGS)
            try:
                report = live.in_full(Source(text), SETTINGS, pause)
            except GivenUp:
                continue
        assert report == check(text, SETTINGS)


def test_a_check_of_a_part_of_a_program_may_be_given_up_at_any_moment() -> None:
    class GivenUp(BaseException):
        pass

    text = (
        "import tensorflow as tf\nimport horovod.tensorflow.keras as hvd\nfrom data import x, y\n\n"
        "hvd.init()\nnet = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "net.compile(tf.keras.optimizers.SGD(0.1), 'mse')\nnet.fit(x, y)\n"
    )
    files = files_in_memory(
        {"/w/main.py": text, "/w/data.py": "import numpy as np\nx = y = np.ones([8, 1])\n"}
    )
    wanted = check(text, Settings(), "/w/main.py", files)
    assert any(each.fix for each in wanted.diagnostics if each.code.startswith("HZ"))
    live = Live("/w/main.py", files)
    calls = moments = 0

    def pause() -> None:
        nonlocal calls
        calls += 1
        if calls == moments:
            raise GivenUp

    report = None
    while report is None:
        calls, moments = 0, moments + 1
        try:
            report = live.in_full(Source(text), Settings(), pause)
        except GivenUp:
            continue
    assert moments > 20
    assert report == wanted


def test_nothing_is_known_at_once_before_a_full_check_or_under_other_settings() -> None:
    text = "import tensorflow as tf\nadam = tf.keras.optimizers.Adam\n"
    live = Live()
    assert live.at_once(Source(text), SETTINGS) is None
    live.in_full(Source(text), SETTINGS)
    assert live.at_once(Source(text), SETTINGS) is not None
    others = read_settings({"ignore": ["TF03"]}, "test")
    assert live.at_once(Source(text), others) is None


def test_a_text_that_is_no_python_is_said_to_be_at_once() -> None:
    text = "import tensorflow as tf\n\nadam = tf.keras.optimizers.Adam\n\nx = 1\n"
    live = Live()
    live.in_full(Source(text), SETTINGS)
    for broken in (text + "x = (\n", text.replace("= 1", "="), text + "\0", "(" * 5000, text + "  y\n"):
        at_once = live.at_once(Source(broken), SETTINGS)
        assert at_once == check(broken, SETTINGS)
        assert [each.code for each in at_once.diagnostics] == [SYNTAX_ERROR.code]


def test_findings_elsewhere_move_with_the_text() -> None:
    text = "import tensorflow as tf\n\nx = 1\n\nadam = tf.keras.optimizers.Adam\nopt = adam(0.1)\n"
    live = Live()
    (found,) = live.in_full(Source(text), SETTINGS).diagnostics
    for number in range(1, 20):
        longer = text.replace("x = 1\n", "x = 1\n" + "y = 2\n" * number)
        report = live.at_once(Source(longer), SETTINGS)
        assert report is not None
        (moved,) = report.diagnostics
        assert moved.region.line == found.region.line + number
        assert moved.region.column == found.region.column
        assert said(report) == said(check(longer, SETTINGS))


def test_edits_at_two_places_leave_what_is_between_them() -> None:
    text = (
        "import tensorflow as tf\n\nx = 1\n\n\ndef step(opt, data):\n    opt.minimize(data)\n\n\n"
        "y = 1\nopt = tf.keras.optimizers.Adam(0.1)\nstep(opt, 1)\nz = 1\n"
    )
    live = Live()
    base = live.in_full(Source(text), SETTINGS)
    assert any(each.related for each in base.diagnostics)
    edited = text.replace("x = 1", "x = 100").replace("y = 1", "y = 1000")
    report = live.at_once(Source(edited), SETTINGS)
    assert report is not None
    assert said(report) == said(check(edited, SETTINGS))


def test_imports_are_followed_in_a_full_check_only() -> None:
    files = files_in_memory(
        {"/w/main.py": "", "/w/helper.py": "import tensorflow as tf\nopt = tf.Variable(1)\n"}
    )
    text = "import tensorflow as tf\nfrom helper import opt\nadam = tf.keras.optimizers.Adam\n"
    live = Live("/w/main.py", files)
    assert live.in_full(Source(text), SETTINGS) == check(text, SETTINGS, "/w/main.py", files)
    assert live.linked == {"/w/helper.py"}
    assert live.at_once(Source(text + "x = 1\n"), SETTINGS) is not None


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.sampled
def test_a_shift_leads_from_one_text_to_the_other(seed: int) -> None:
    random = Random(seed)
    old = "".join(random.choices("ab\n", k=random.randrange(30)))
    start = random.randint(0, len(old))
    end = random.randint(start, len(old))
    new = old[:start] + "".join(random.choices("ab\n", k=random.randrange(6))) + old[end:]
    shift = Shift.between(old, new)
    assert new[: shift.start] + new[shift.start : shift.end + shift.distance] + old[shift.end :] == new
    assert old[: shift.start] == new[: shift.start]
    assert shift.start <= shift.end <= len(old)
    for _ in range(20):
        first = random.randint(0, len(old))
        span = Span(first, random.randint(first, len(old)))
        there = shift.span(span)
        if span.end <= shift.start or span.start >= shift.end:
            if span.start != span.end:
                assert there is not None, (old, new, span)
                assert new[there.start : there.end] == old[span.start : span.end], (old, new, span)
        if there is not None:
            assert 0 <= there.start <= there.end <= len(new), (old, new, span)


def test_a_shift_of_equal_texts_moves_nothing() -> None:
    shift = Shift.between("abc", "abc")
    assert shift.distance == 0
    assert [shift.span(Span(at, 3)) for at in range(4)] == [Span(at, 3) for at in range(4)]


def test_a_stretch_grows_with_what_is_typed_in_it_and_goes_when_it_is_cut() -> None:
    shift = Shift.between("ab(c)d", "ab(cxx)d")
    assert shift.span(Span(2, 5)) == Span(2, 7)
    assert shift.span(Span(0, 2)) == Span(0, 2)
    assert shift.span(Span(5, 6)) == Span(7, 8)
    cut = Shift.between("ab(c)d", "abd")
    assert cut.span(Span(3, 4)) is None


def test_an_open_document_is_read_once() -> None:
    texts = {"/p/train.py": "import tensorflow as tf\n\n\ndef f():\n    pass\n\n\nx = 1\n"}
    files = files_in_memory(texts)
    live = Live("/p/train.py", files, is_open=True)
    live.in_full(Source(texts["/p/train.py"]), Settings())
    first = files.read("/p/train.py")
    assert first is not None
    assert {id(chunk.facts) for chunk in live._cache.chunks} == {id(facts) for facts in first.facts}
    texts["/p/train.py"] += "y = 2\n"
    files.forget("/p/train.py", is_edit=True)
    second = files.read("/p/train.py")
    assert second is not None
    assert second.facts[:2] == first.facts[:2]
    assert len(second.facts) == 4
    # An outdated text is ignored.
    live.in_full(Source("z = 3\n"), Settings())
    assert files.read("/p/train.py") is second
