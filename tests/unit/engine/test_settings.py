"""Settings: codes, severities, and the messages about invalid ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from trainshift.core.choices import Choices
from trainshift.core.finding import Effect, Verdict
from trainshift.dev.settings_schema import settings_schema
from trainshift.engine.settings import LETTER, Settings, SettingsError, Severity, read_codes, read_settings

CHECKING = Path(__file__).parents[3] / "server" / "docs" / "checking.md"
VIOLATED, HARMLESS, UNKNOWN = Verdict.VIOLATED, Verdict.HARMLESS, Verdict.UNKNOWN


def severities(settings: Settings, code: str = "TF03") -> tuple[Severity, ...]:
    return tuple(settings.severity_of(code, verdict) for verdict in (VIOLATED, HARMLESS, UNKNOWN))


def test_the_defaults_are_those_of_the_specification() -> None:
    information, hint = Severity.INFORMATION, Severity.HINT
    assert severities(Settings()) == (information, hint, hint)
    assert severities(Settings(restrictions=LETTER)) == (Severity.WARNING, information, information)
    loud = [
        Settings().severity_of("TF03", verdict, Effect.DOUBTS) for verdict in (VIOLATED, HARMLESS, UNKNOWN)
    ]
    assert loud == [Severity.WARNING, hint, Severity.WARNING]
    assert severities(read_settings({}, "x")) == severities(Settings())
    assert Settings().severity_of("TS01", VIOLATED) is Severity.WARNING


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("error", (Severity.ERROR, Severity.INFORMATION, Severity.INFORMATION)),
        ("hint", (Severity.HINT, Severity.HINT, Severity.HINT)),
        ("off", (Severity.OFF, Severity.OFF, Severity.OFF)),
        (
            {"unknown": "error", "harmless": "off"},
            (Severity.INFORMATION, Severity.OFF, Severity.ERROR),
        ),
    ],
)
def test_a_severity_never_makes_what_is_harmless_or_unknown_louder_unless_said(
    severity: object, expected: tuple[Severity, ...]
) -> None:
    assert severities(read_settings({"severity": {"tf03": severity}}, "x")) == expected


def test_the_longest_prefix_decides() -> None:
    settings = read_settings({"severity": {"TF": "error", "TF03": "hint", "T": "off"}}, "x")
    assert settings.severity_of("TF03", VIOLATED) is Severity.HINT
    assert settings.severity_of("TF04", VIOLATED) is Severity.ERROR
    assert settings.severity_of("TL04", VIOLATED) is Severity.OFF


def test_select_and_ignore_take_codes_and_prefixes_in_any_case() -> None:
    settings = read_settings({"select": ["tf", "TL02"], "ignore": ["tf01"]}, "x")
    assert [code for code in ("TF01", "TF02", "TL01", "TL02", "TS01") if settings.is_on(code)] == [
        "TF02",
        "TL02",
    ]
    assert not read_settings({"select": []}, "x").is_on("TF01")


def test_the_command_line_overrides() -> None:
    settings = read_settings({"select": ["TL"], "ignore": ["TF03"]}, "x")
    assert settings.overridden(["TF03"], []).is_on("TF03")
    assert not settings.overridden(["TF"], ["TF03"]).is_on("TF03")
    assert not settings.overridden(None, ["TL01"]).is_on("TL01")
    assert not settings.overridden(None, ["TL01"]).is_on("TF03")


@pytest.mark.parametrize(
    ("table", "severity"),
    [
        ({}, Severity.ERROR),
        ({"select": ["TF03"]}, Severity.ERROR),
        ({"severity": {"TS": "hint"}}, Severity.HINT),
        ({"severity": {"TS": "off"}}, Severity.OFF),
        ({"severity": {"TS00": "off"}}, Severity.OFF),
        ({"severity": {"TS": "off", "TS00": "warning"}}, Severity.WARNING),
        ({"ignore": ["TS00"]}, Severity.OFF),
        ({"ignore": ["TS"]}, Severity.OFF),
    ],
)
def test_a_syntax_error_is_as_loud_as_the_settings_say(table: dict[str, object], severity: Severity) -> None:
    """An error by default, regardless of the selection."""
    assert read_settings(table, "x").severity_of("TS00", Verdict.VIOLATED) is severity


def test_per_file_ignores_hold_where_their_pattern_matches() -> None:
    settings = read_settings({"per-file-ignores": {"a.py": ["TF03"], "b.py": ["TL"]}}, "x")
    assert not settings.for_file(lambda pattern: pattern == "a.py").is_on("TF03")
    assert settings.for_file(lambda pattern: pattern == "b.py").is_on("TF03")
    assert settings.for_file(lambda pattern: False) is settings


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"slect": []}, "x: `slect` is not a setting. Did you mean select?"),
        ({"select": "TF03"}, "x: `select` must be a list of strings, not a string."),
        ({"select": ["TF03", 3]}, "x: `select` must be a list of strings, not a list with a number in it."),
        ({"ignore": ["TF33"]}, "x: `ignore` names 'TF33', which is not a code. Did you mean TF"),
        ({"ignore": [""]}, "x: `ignore` names '', which is not a code."),
        ({"select": ["HV01"]}, "x: `select` names 'HV01', which is not a code."),
        ({"select": ["TS03"]}, "x: `select` names 'TS03', which is not a code. Did you mean TS0"),
        ({"severity": "error"}, "x: `severity` must be a table, not a string."),
        ({"severity": {"TX": "error"}}, "x: `severity` names 'TX', which is not a code."),
        (
            {"severity": {"TF03": "warn"}},
            "x: `severity.TF03` is 'warn', which is not a severity. Did you mean",
        ),
        ({"severity": {"TF03": True}}, "x: `severity.TF03` must be a severity (off, hint, information,"),
        ({"severity": {"TF03": {"broken": "error"}}}, "x: `severity.TF03.broken` is not a verdict."),
        ({"per-file-ignores": {"a": "TF03"}}, 'x: `per-file-ignores."a"` must be a list of strings'),
        ({"docs-url": "docs"}, 'x: `docs-url` must be a web address, such as "https://'),
        ({"docs-url": 3}, "x: `docs-url` must be a web address"),
        ({"exclude": {}}, "x: `exclude` must be a list of strings, not a table."),
        ({"compresion": "fp16"}, "x: `compresion` is not a setting. Did you mean compression?"),
        ({"compression": "fp8"}, 'x: `compression` must be "none" or "fp16", not \'fp8\'.'),
        ({"sync-batch-norm": 1}, "x: `sync-batch-norm` must be true or false, not 1."),
        (
            {"backward-passes-per-step": 0},
            "x: `backward-passes-per-step` must be a whole number of at least 1, not 0.",
        ),
        ({"warmup-epochs": True}, "x: `warmup-epochs` must be a whole number of at least 0, not True."),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_meant(table: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(table, "x")
    assert str(raised.value).startswith(message)


def test_codes_of_the_command_line() -> None:
    assert read_codes("--select", "", ["tf03", " TL"]) == ("TF03", "TL")
    with pytest.raises(SettingsError, match="--select: names 'TF3'"):
        read_codes("--select", "", ["TF3"])


def test_each_choice_is_taken_from_where_it_was_made_last() -> None:
    editor = read_settings({"compression": "fp16", "warmup-epochs": 0, "op": "average"}, "x")
    project = read_settings({"warmup-epochs": 5, "divide-data": False}, "x")
    expected = Choices(compression="fp16", warmup_epochs=5, divide_data=False)
    assert project.over(editor).choices == expected
    assert read_settings({}, "x").choices == Choices()


def test_the_schema_knows_each_setting_and_no_other() -> None:
    schema = settings_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    for key, told in schema["properties"].items():
        default = told.get("default", {})
        read_settings({key: default}, "x")
        jsonschema.validate({key: default}, schema)
    with pytest.raises(SettingsError) as problem:
        read_settings({"nothing-like-it": 1}, "x")
    assert all(key in str(problem.value) for key in schema["properties"])


def test_the_entry_of_schemastores_catalog_names_the_schema() -> None:
    (text,) = re.findall(r"```json\n(\{.*?\n\})\n```", CHECKING.read_text(encoding="utf-8"), re.S)
    entry, schema = json.loads(text), settings_schema()
    assert (entry["name"], entry["description"]) == (schema["title"], schema["description"])
    assert entry["url"] == schema["$id"]
    assert entry["fileMatch"] == ["trainshift.toml"]


@pytest.mark.parametrize(
    "table",
    [
        {"select": ["TF03", "TL", "ts"], "per-file-ignores": {"a/*.py": ["HZ"]}},
        {"severity": {"TF05": {"violated": "warning", "harmless": "off"}, "TL": "error"}},
        {"libraries": {"acme.tracking": {"log_*": {"role": "tracker"}}}, "compression": "fp16"},
    ],
)
def test_the_schema_takes_what_settings_take(table: dict[str, object]) -> None:
    read_settings(table, "x")
    jsonschema.validate(table, settings_schema())


@pytest.mark.parametrize(
    "table",
    [
        {"select": "TF"},
        {"severity": {"TF05": "loud"}},
        {"compression": "fp8"},
        {"warmup-epochs": -1},
        {"libraries": {"acme": {"log": {"role": "logger"}}}},
        {"docs-url": "docs"},
    ],
)
def test_the_schema_refuses_what_settings_refuse(table: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        read_settings(table, "x")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(table, settings_schema())


def test_a_code_that_does_not_exist_is_told_in_one_line() -> None:
    with pytest.raises(
        SettingsError, match=r"^--select: names 'ZZ99', which is not a code\. `trainshift rules` "
    ):
        read_codes("--select", "", ["ZZ99"])
