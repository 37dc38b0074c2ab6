"""The check report for programs: JSON, SARIF and GitHub annotations hold every finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from e2e.cli.conftest import Run
from trainshift.engine import checking
from trainshift.engine.checking import CheckReport

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0-rtm.5.json").read_text())
SCRIPT = "import tensorflow as tf\nx = 1\nmend('😀', x)\nfine()  # trainshift: ignore\nmaybe()\n"


@pytest.fixture
def project(here: Path) -> Path:
    """A file with findings, a clean one, and two that cannot be checked."""
    (here / "a.py").write_text(SCRIPT.replace("'😀', ", ""))
    (here / "b é.py").write_text(SCRIPT)
    (here / "clean.py").write_text("x = 1\n")
    (here / "latin.py").write_bytes(b"# \xe9\n")
    (here / "syntax.py").write_text("x = (\n")
    return here


def sarif(run: Run, *args: str) -> Any:
    log = json.loads(run("check", "--format", "sarif", *args).stdout)
    jsonschema.validate(log, SCHEMA)
    (result,) = log["runs"]
    return result


@pytest.mark.usefixtures("project")
class TestJson:
    def test_links_to_the_site(self, run: Run) -> None:
        Path("trainshift.toml").write_text('docs-url = "https://docs.example.org"\n')
        found = json.loads(run("check", "--format", "json", "a.py").stdout)
        urls = {each["url"] for file in found["files"] for each in file["diagnostics"]}
        assert "https://docs.example.org/rules/TF03.html" in urls
        assert all(url.startswith("https://docs.example.org/rules/") for url in urls)

    def test_describes_a_finding(self, run: Run) -> None:
        result = run("check", "--format", "json", "a.py")
        assert (result.exit_code, result.stderr) == (1, "")
        found = json.loads(result.stdout)
        first, second = found["files"][0].pop("diagnostics")
        assert first.pop("url").endswith("/TF03.md")
        assert first == {
            "code": "TF03",
            "name": "tensorflow-member-alias",
            "severity": "warning",
            "verdict": "violated",
            "line": 3,
            "column": 1,
            "end_line": 3,
            "end_column": 8,
            "message": "mend is called, and that matters.",
            "related": [
                {
                    "path": "a.py",
                    "line": 3,
                    "column": 6,
                    "end_line": 3,
                    "end_column": 7,
                    "message": "this is it",
                }
            ],
            "fix": {
                "title": "Call mended(",
                "edits": [{"line": 3, "column": 1, "end_line": 3, "end_column": 6, "text": "mended("}],
            },
        }
        assert (second["severity"], second["verdict"], second["fix"]) == ("information", "unknown", None)
        assert found == {
            "version": 1,
            "files": [{"path": "a.py", "error": None, "position": None, "suppressed": 1, "fixed": 0}],
            "summary": {
                "files": 1,
                "files_with_findings": 1,
                "files_with_errors": 0,
                "error": 0,
                "warning": 1,
                "information": 1,
                "hint": 0,
                "suppressed": 1,
                "fixable": 1,
                "fixed": 0,
                "codes": {"TF03": {"violated": 1, "harmless": 0, "unknown": 1}},
            },
        }

    def test_lists_every_file(self, run: Run) -> None:
        result = run("check", "--format", "json", ".")
        assert (result.exit_code, result.stderr) == (2, "")
        files = {each["path"]: each for each in json.loads(result.stdout)["files"]}
        assert list(files) == ["a.py", "b é.py", "clean.py", "latin.py", "syntax.py"]
        assert files["clean.py"]["diagnostics"] == []
        assert files["latin.py"]["error"].startswith("byte 0xe9 is not UTF-8")
        assert files["latin.py"]["position"] == {"line": 1, "column": 3}
        (syntax,) = files["syntax.py"]["diagnostics"]
        assert (syntax["code"], syntax["severity"], syntax["line"], syntax["column"]) == (
            "TS00",
            "error",
            1,
            5,
        )

    def test_says_what_was_fixed(self, run: Run) -> None:
        found = json.loads(run("check", "--fix", "--format", "json", "a.py").stdout)
        assert found["files"][0]["fixed"] == found["summary"]["fixed"] == 1

    def test_of_nothing_is_a_document(self, run: Run, here: Path) -> None:
        (here / "empty").mkdir()
        found = json.loads(run("check", "--format", "json", "empty").stdout)
        assert (found["files"], found["summary"]["files"]) == ([], 0)

    def test_is_valid_for_any_name(self, run: Run, here: Path) -> None:
        (here / "a\nb.py").write_text(SCRIPT)
        (here / "\udcff.py").write_text(SCRIPT)
        files = json.loads(run("check", "--format", "json", ".").stdout)["files"]
        assert {"a\nb.py", "\udcff.py"} <= {each["path"] for each in files}


@pytest.mark.usefixtures("project")
class TestSarif:
    def test_is_valid_and_holds_every_finding(self, run: Run) -> None:
        log = sarif(run, ".")
        assert [(each["ruleId"], each["level"]) for each in log["results"]] == [
            ("TF03", "warning"),
            ("TF03", "note"),
            ("TF03", "warning"),
            ("TF03", "note"),
            ("TS00", "error"),
        ]
        assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["TF03", "TS00"]
        (problem,) = log["invocations"][0]["toolExecutionNotifications"]
        assert problem["message"]["text"].startswith("byte 0xe9 is not UTF-8")
        assert log["invocations"][0]["executionSuccessful"] is False

    def test_counts_code_points_and_quotes_names(self, run: Run) -> None:
        log = sarif(run, "b é.py")
        assert log["columnKind"] == "unicodeCodePoints"
        first = log["results"][0]
        assert first["locations"][0]["physicalLocation"] == {
            "artifactLocation": {"uri": "b%20%C3%A9.py"},
            "region": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 13},
        }
        (change,) = first["fixes"][0]["artifactChanges"]
        assert change["replacements"] == [
            {
                "deletedRegion": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 6},
                "insertedContent": {"text": "mended("},
            }
        ]
        assert log["invocations"][0]["executionSuccessful"] is True

    def test_of_nothing_is_valid(self, run: Run, here: Path) -> None:
        (here / "empty").mkdir()
        assert sarif(run, "empty")["results"] == []

    def test_names_files_elsewhere_absolutely(
        self, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (project / "empty").mkdir()
        monkeypatch.chdir(project / "empty")
        place = sarif(run, "../a.py")["results"][0]["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == (project / "a.py").as_uri()

    @pytest.mark.parametrize("name", ["a\nb.py", "\udcff.py", "%41.py"])
    def test_is_valid_for_any_name(self, run: Run, here: Path, name: str) -> None:
        (here / name).write_text(SCRIPT)
        uris = {
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for each in sarif(run, ".")["results"]
        }
        assert uris & {"a%0Ab.py", "%FF.py", "%2541.py"}


@pytest.mark.usefixtures("project")
class TestGithub:
    def test_is_one_command_per_finding(self, run: Run) -> None:
        result = run("check", "--format", "github", ".")
        assert result.exit_code == 2
        assert result.stdout.splitlines()[:2] == [
            "::warning file=a.py,line=3,col=1,endLine=3,endColumn=8,title=TF03 tensorflow-member-alias"
            "::mend is called, and that matters.",
            "::notice file=a.py,line=5,col=1,endLine=5,endColumn=8,title=TF03 tensorflow-member-alias"
            "::maybe is called, and that matters.",
        ]
        assert (
            "::error file=latin.py,line=1,col=3,endLine=1,endColumn=3,title=trainshift error::byte 0xe9 is"
            in result.stdout
        )

    def test_escapes_what_would_end_a_command(self, run: Run, here: Path) -> None:
        (here / "100%,a:b\n.py").write_text("import tensorflow\nbad()\n")
        shown = run("check", "--format", "github", "100%,a:b\n.py").stdout
        assert shown.startswith("::warning file=100%25%2Ca%3Ab%0A.py,line=2,")
        assert shown.count("\n") == 1


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_an_interrupted_document_is_whole(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    inner = checking.check

    def interrupted(text: str, *rest: Any) -> CheckReport:
        if "😀" in text:
            raise KeyboardInterrupt
        return inner(text, *rest)

    monkeypatch.setattr(checking, "check", interrupted)
    result = run("check", "--format", format_, ".")
    found = json.loads(result.stdout)
    assert result.exit_code == 130
    if format_ == "json":
        assert found["interrupted"] is True
        assert [each["path"] for each in found["files"]] == ["a.py"]
    else:
        jsonschema.validate(found, SCHEMA)
        assert found["runs"][0]["invocations"][0]["executionSuccessful"] is False
