"""The entry point of the checker: diagnostics, broken input, failing restrictions, and fixes."""

from __future__ import annotations

import ast
import gc

import pytest

from e2e.cli.fake_restrictions import RULES
from perf.script import script
from trainshift.core.finding import Verdict
from trainshift.engine import checking, findings
from trainshift.engine.checking import Region, check
from trainshift.engine.effects import asking
from trainshift.engine.fixing import fix
from trainshift.engine.settings import LETTER, Settings, Severity
from trainshift.engine.workspace import files_in_memory

HEAD = "import tensorflow as tf\n"
BY_LETTER = Settings(restrictions=LETTER)


def test_a_check_leaves_next_to_nothing_to_be_searched_for() -> None:
    """Collecting a script's facts takes longer than half its check, so they are freed at once."""
    text = script(300)
    parts = sum(1 for _ in ast.walk(ast.parse(text)))
    assert asking  # so that loading it leaves nothing behind
    check(text)
    gc.collect()
    gc.disable()
    try:
        assert check(text, path="/train.py", files=files_in_memory({"/train.py": text})).diagnostics
        assert gc.collect() < parts / 3
    finally:
        gc.enable()


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "RESTRICTIONS", RULES)


@pytest.mark.usefixtures("rules")
class TestDiagnostics:
    def test_places_are_one_based_code_points(self) -> None:
        (found,) = check(f"{HEAD}é = '😀', bad(x)\n", BY_LETTER, path="/a.py").diagnostics
        assert found.region == Region(2, 10, 2, 16)
        assert (found.code, found.name) == ("TF03", "tensorflow-member-alias")
        assert (found.severity, found.verdict) == (Severity.WARNING, Verdict.VIOLATED)
        (other,) = found.related
        assert (other.path, other.region, other.message) == ("/a.py", Region(2, 14, 2, 15), "this is it")

    def test_settings_decide_what_is_reported(self) -> None:
        text = HEAD + "bad()\nfine()\nmaybe()\n"
        assert [each.severity.label for each in check(text, BY_LETTER).diagnostics] == [
            "warning",
            "information",
            "information",
        ]
        assert check(text, Settings(ignore=("TF03",))).diagnostics == ()
        assert check(text, Settings(select=("TL",))).diagnostics == ()

    def test_a_byte_order_mark_takes_no_column(self) -> None:
        (found,) = check("\ufeffbad(); tensorflow\n").diagnostics
        assert found.region == Region(1, 1, 1, 6)

    def test_a_file_that_has_to_do_with_no_tensorflow_is_not_judged(self) -> None:
        assert check("bad()\n").diagnostics == ()

    def test_a_restriction_that_fails_is_one_error_and_the_others_go_on(self) -> None:
        found = check(HEAD + "bad()\ncrash()\n").diagnostics
        assert [each.code for each in found] == ["TS03", "TF03"]
        assert found[0].message == (
            "TF04 failed on this script (KeyError: 'crash'); please report this with the script"
        )
        assert found[0].severity is Severity.ERROR
        assert found[0].is_error_of_ours


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("x = (\n", Region(1, 5, 1, 5)),
        ("x = 1\nif x:\n\ty = 'é世' (\n", Region(3, 11, 3, 11)),
        ("x = 1\0\n", Region(1, 6, 1, 6)),
        ("x = " + "(" * 5000 + ")" * 5000, None),
        ("x = " + "-" * 50_000 + "1", None),
        ("x = " + "a." * 50_000 + "b", None),
        ("  x = 1\n y = 2\n", None),
        ("def", None),
        ("\ud800", None),
    ],
)
def test_what_is_not_python_is_one_error_with_its_place(text: str, region: Region | None) -> None:
    (found,) = check(text).diagnostics
    assert (found.code, found.severity) == ("TS00", Severity.ERROR)
    assert region in (None, found.region)


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "# only\n", "x = 1", "\f\r\r\n"])
def test_nothing_is_said_of_an_empty_script(text: str) -> None:
    assert check(text).diagnostics == ()
    assert fix(text).text == text


def test_a_failure_outside_of_the_restrictions_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(checking, "program_of", fail)
    (found,) = check(HEAD).diagnostics
    assert (found.code, found.message) == ("TS03", "MemoryError; please report this with the script")


def test_imports_are_followed_into_other_files() -> None:
    helper = "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit([1])\n"
    script = "import tensorflow as tf\nimport helper\nmodel = tf.keras.Sequential()\nmodel.fit([1])\n"
    files = files_in_memory({"/p/train.py": script, "/p/helper.py": helper})
    (found,) = check(script, Settings(select=("TL01",)), "/p/train.py", files).diagnostics
    assert [other.path for other in found.related] == ["/p/helper.py"]
    assert check(script, Settings(select=("TL01",)), "/p/train.py").diagnostics == ()


@pytest.mark.usefixtures("rules")
class TestFix:
    def test_makes_every_fix_and_says_what_is_left(self) -> None:
        fixed = fix("\ufeff" + HEAD + "mend(mend(1))  # é\r\nbad()\r\n")
        assert fixed.text == "\ufeff" + HEAD + "mended(mended(1))  # é\r\nbad()\r\n"
        assert fixed.applied == {"TF03": 2}
        assert [each.region.line for each in fixed.report.diagnostics] == [3]

    def test_leaves_what_is_silenced_or_off(self) -> None:
        text = HEAD + "mend()  # trainshift: ignore[TF03]\n"
        assert fix(text).text == text
        assert fix(HEAD + "mend()\n", Settings(ignore=("TF03",))).text == HEAD + "mend()\n"

    def test_writes_nothing_when_a_fix_breaks_the_script(self) -> None:
        text = HEAD + "mend()\nx = breaks() + breaks(y=2)\n"
        fixed = fix(text)
        assert (fixed.text, fixed.applied) == (text, {})
        first, *rest = fixed.report.diagnostics
        assert first.code == "TS03"
        assert first.message.startswith("the fixes of TF03 break the script; please report")
        assert len(rest) == 3

    def test_comes_to_an_end(self) -> None:
        assert fix(HEAD + "x = " + "mend(" * 40 + ")" * 40 + "\n").text.count("mended") == 40


def test_of_several_definitions_the_first_is_shown() -> None:
    definitions = "".join(f"if n == {n}:\n    def step(x):\n        return x + {n}\n\n" for n in range(9))
    use = "call = tf.function(step)\nmodel = tf.keras.Sequential()\nmodel.fit(data)\n"
    text = f"{HEAD}n = 3\n{definitions}{use}"
    (found,) = [each for each in check(text).diagnostics if each.code == "TL04"]
    assert [other.region.line for other in found.related] == [4]


def test_lists_that_functions_add_their_own_results_to_are_read() -> None:
    both = "".join(
        f"    rows.extend(rows_of(each.part{number}))\n    rows.extend(all_of(each))\n" for number in range(3)
    )
    text = (
        "import tensorflow as tf\n\n\ndef rows_of(each):\n    rows = [each]\n"
        f"{both}    return rows\n\n\ndef all_of(each):\n    rows = []\n{both}    return rows\n\n\n"
        "for row in rows_of(tf.keras.Sequential()):\n    row.fit()\n"
    )
    assert "TS00" not in {each.code for each in check(text).diagnostics}
