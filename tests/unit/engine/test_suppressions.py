"""Suppressions: the findings that a comment silences, and the findings about comments."""

from __future__ import annotations

import pytest

from e2e.cli.fake_restrictions import RULES
from trainshift.engine import findings
from trainshift.engine.checking import check
from trainshift.engine.fixing import fix
from trainshift.engine.settings import Settings, read_settings

HEAD = "import tensorflow as tf\n"


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "RESTRICTIONS", RULES)


def codes(text: str, settings: Settings | None = None) -> list[str]:
    return [each.code for each in check(HEAD + text, settings).diagnostics]


def fixed(text: str) -> str:
    return fix(HEAD + text).text.removeprefix(HEAD)


@pytest.mark.parametrize(
    "text",
    [
        "bad()  # trainshift: ignore[TF03]\n",
        "bad()  # trainshift: ignore\n",
        "bad()  # trainshift:ignore[tf03, TF03]\n",
        "bad()  # TRAINSHIFT: Ignore [ TF03 ] since it is wanted\n",
        "bad()  # noqa: E501  # trainshift: ignore[TF03]  # pylint: disable=x\n",
        "bad()  # trainshift: ignore[TF03]",
        "bad()\t# trainshift: ignore[TF03]\r\nx = 1\r\n",
        "x = 1\rbad()  # trainshift: ignore[TF03]\ry = 2\r",
        "\fbad()  # trainshift: ignore[TF03]\n",
        "é = '😀'; bad()  # trainshift: ignore[TF03]\n",
        "x = (  # trainshift: ignore[TF03]\n    1,\n    bad(),\n    2,\n)\n",
        "x = (\n    1,\n    bad(),  # trainshift: ignore[TF03]\n    2,\n)\n",
        "x = (\n    1,\n    bad(),\n    2,\n)  # trainshift: ignore[TF03]\n",
        "x = bad(\n    1,\n)  # trainshift: ignore[TF03]\n",
        'x = bad(), """\n# trainshift: ignore\n"""  # trainshift: ignore[TF03]\n',
        "if (\n    bad()\n    and x\n):  # trainshift: ignore[TF03]\n    # more\n\n    pass\n",
        "for x in bad():  # trainshift: ignore[TF03]\n    pass\n",
        "if bad(): pass  # trainshift: ignore[TF03]\n",
        "match bad():  # trainshift: ignore[TF03]\n    case 1:\n        pass\n",
        "@bad()  # trainshift: ignore[TF03]\ndef f():\n    pass\n",
        "@bad()\n@other\ndef f():  # trainshift: ignore[TF03]\n    pass\n",
        "def f():\n    return bad()  # trainshift: ignore[TF03]\n",
        "x = 1\n# trainshift: ignore-file[TF03]\nbad()\nbad()\n",
        "# trainshift: ignore-file\nbad()\n",
    ],
)
def test_silences(text: str) -> None:
    report = check(HEAD + text)
    assert report.diagnostics == ()
    assert report.suppressed >= 1


@pytest.mark.parametrize(
    "text",
    [
        "'# trainshift: ignore[TF03]'; bad()\n",
        '"""\n# trainshift: ignore-file[TF03]\n"""\nbad()\n',
        "# trains hift: ignore[TF03]\nbad()\n",
        "bad()  # trainshift explains this\n",
        "bad()  # trainshift: see the page\n",
    ],
)
def test_is_no_suppression(text: str) -> None:
    assert codes(text) == ["TF03"]


@pytest.mark.parametrize(
    "text",
    [
        "# trainshift: ignore[TF03]\nbad()\n",
        "bad()\n# trainshift: ignore[TF03]\n",
        "bad()  # trainshift: ignore[TF04]\n",
        "for x in y:  # trainshift: ignore[TF03]\n    bad()\n",
        "for x in y:\n    bad()\nelse:\n    x = 2  # trainshift: ignore[TF03]\n",
    ],
)
def test_elsewhere_or_of_another_code_is_unused(text: str) -> None:
    assert sorted(codes(text)) == ["TF03", "TS01"]


class TestUnused:
    def test_says_what_and_removes_the_comment(self) -> None:
        text = "x = 1  # trainshift: ignore[TF03, TF04]\n"
        (found,) = check(HEAD + text).diagnostics
        assert (
            found.message == "No finding of TF03 and TF04 at this line, so this comment suppresses nothing."
        )
        assert (found.region.line, found.region.column, found.region.end_column) == (2, 8, 40)
        assert fixed(text) == "x = 1\n"

    @pytest.mark.parametrize(
        ("text", "after"),
        [
            ("x = 1  # trainshift: ignore\n", "x = 1\n"),
            ("x = 1  # trainshift: ignore[TF03]", "x = 1"),
            ("x = 1\t# trainshift: ignore[TF03] as said\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
            ("    \n# trainshift: ignore-file\nx = 1\n", "    \nx = 1\n"),
            ("if x:\n    # trainshift: ignore\n    pass\n", "if x:\n    pass\n"),
            ("x = 1  # noqa  # trainshift: ignore\n", "x = 1  # noqa\n"),
            ("x = 1  # trainshift: ignore # noqa\n", "x = 1  # noqa\n"),
            ("bad()  # trainshift: ignore[TF04, TF03]\n", "bad()  # trainshift: ignore[TF03]\n"),
            ("x = (1,  # trainshift: ignore\n     2)\n", "x = (1,\n     2)\n"),
        ],
    )
    def test_fix_takes_away_the_comment_only(self, text: str, after: str) -> None:
        assert fixed(text) == after
        assert fixed(after) == after

    def test_is_not_said_of_a_code_that_is_off(self) -> None:
        text = "x = 1  # trainshift: ignore[TF03]\n"
        assert codes(text, Settings(ignore=("TF03",))) == []
        assert codes(text, Settings(ignore=("TF04",))) == ["TS01"]
        assert codes("x = 1  # trainshift: ignore\n", Settings(ignore=("TF04",))) == []

    def test_is_not_said_of_a_code_that_failed(self) -> None:
        assert codes("crash()  # trainshift: ignore[TF04]\n") == ["TS03"]

    def test_can_be_switched_off_and_made_louder(self) -> None:
        text = "x = 1  # trainshift: ignore[TF03]\n"
        assert codes(text, Settings(ignore=("TS",))) == []
        settings = read_settings({"severity": {"TS01": "error"}}, "x")
        assert [each.severity.label for each in check(HEAD + text, settings).diagnostics] == ["error"]

    def test_is_said_in_a_file_without_tensorflow(self) -> None:
        assert [each.code for each in check("x = 1  # trainshift: ignore\n").diagnostics] == ["TS01"]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("ignore[TF33]", "TF33 is not a code that can be ignored; did you mean TF03?"),
        ("ignore[HV01]", "HV01 is not a code that can be ignored; did you mean HZ01?"),
        ("ignore[]", "the list of codes is empty"),
        ("ignore[TF03", "the list of codes has no closing ]."),
        ("ignored[TF03]", "`ignored` is not understood; did you mean ignore?"),
        ("ignorefile", "`ignorefile` is not understood; did you mean ignore-file?"),
    ],
)
def test_what_cannot_be_understood_is_reported(comment: str, message: str) -> None:
    found = [
        each for each in check(f"{HEAD}x = 1  # trainshift: {comment}\n").diagnostics if each.code == "TS02"
    ]
    assert [each.message for each in found] == [found[0].message]
    assert found[0].message.startswith(f"This comment suppresses nothing: {message}")
    assert found[0].fix is None


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n\ty = 1  # trainshift: ignore\n        \n",
        "x = f'{1:#x}'  # trainshift: ignore\n",
        "x = 1 \\\n  + 2  # trainshift: ignore\n",
        "x = 1;  # trainshift: ignore\n",
        "# trainshift: ignore[" + "TF03," * 5000 + "]\n",
        "x = 1 # trainshift: ignore # trainshift: ignore # trainshift: ignore\n",
    ],
)
def test_odd_text_is_read(text: str) -> None:
    found = codes(text)
    assert found
    assert set(found) <= {"TS01"}
    assert "trainshift" not in fixed(text)


def test_codes_without_brackets_are_told_and_silence_nothing() -> None:
    report = check(HEAD + "bad()  # trainshift: ignore TF03\n")
    assert [each.code for each in report.diagnostics] == ["TF03", "TS02"]
    assert "ignore[TF03]" in report.diagnostics[1].message
