"""`rules` and `explain`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cli.conftest import Run
from import_graph import ROOT
from trainshift.cli import rules as rules_module
from trainshift.cli.rules import sections
from trainshift.core.rule import FAMILIES, Family
from trainshift.pages import GUIDES, guides, page


@dataclass(frozen=True)
class Rule:
    code: str
    name: str
    title: str
    doc: str

    @property
    def family(self) -> Family:
        return FAMILIES[self.code[:2]]


TRANSFORMS = (
    Rule("HV01", "import-horovod", "Import and start Horovod.", "Import and start Horovod.\n"),
    Rule("HV94", "wrap-tape", "Average the gradients.", "Average the gradients.\n\n- one\n- two\n"),
)
RESTRICTIONS = (Rule("TF93", "member", "No members.", "No members.\n\n    x = `y`\n\nDone.\n"),)


@pytest.fixture
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "RULES", (*TRANSFORMS, *RESTRICTIONS))


@pytest.mark.usefixtures("_rules")
class TestRules:
    def test_are_aligned_text_by_kind_in_a_pipe(self, run: Run) -> None:
        assert run("rules").stdout == (
            "Rewriting rules (convert)\n"
            "HV01  import-horovod  Import and start Horovod.\n"
            "HV94  wrap-tape       Average the gradients.\n"
            "\n"
            "Restrictions (check)\n"
            "TF93  member          No members.\n"
            "\n"
            "Static graphs of Paddle (check)\n"
            "\n"
            "The check itself\n"
            "\n"
            "Differentiation (differentiate, calculus)\n"
            "\n"
            "`trainshift explain CODE` says more.\n"
        )

    def test_as_json(self, run: Run) -> None:
        rules = json.loads(run("rules", "--format", "json").stdout)["rules"]
        assert rules[0] == {
            "code": "HV01",
            "name": "import-horovod",
            "title": "Import and start Horovod.",
            "kind": "rule",
        }
        assert [(rule["code"], rule["kind"]) for rule in rules[1:]] == [
            ("HV94", "rule"),
            ("TF93", "restriction"),
        ]

    @pytest.mark.parametrize("code", ["HV94", "hv94", "wrap-tape", "Wrap-Tape"])
    def test_explain_prints_the_page(self, run: Run, code: str) -> None:
        assert run("explain", code).stdout == "# HV94 wrap-tape\n\nAverage the gradients.\n\n- one\n- two\n"

    def test_explain_renders_on_a_terminal(
        self, run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        text = run("explain", "HV94").stdout
        assert text.startswith("\x1b[1;36mHV94 wrap-tape\x1b[0m\n")
        assert "• one" in text.replace("\x1b[0m", "").replace("\x1b[1;33m", "").replace("\x1b[33m", "")
        assert "\x1b[36m    x = `y`\x1b[0m\n" in run("explain", "TF93").stdout
        assert "\x1b[1;36mTF93\x1b[0m" in run("rules").stdout

    @pytest.mark.parametrize(
        ("code", "hint"), [("HV49", "Did you mean HV94"), ("wraptape", "wrap-tape"), ("?", "rules")]
    )
    def test_explain_of_an_unknown_code_suggests(self, run: Run, code: str, hint: str) -> None:
        result = run("explain", code)
        assert (result.exit_code, result.stdout) == (2, "")
        assert hint in result.stderr


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("learning rate", "HV02"),
        ("lr not scaled", "HZ05"),
        ("gradients averaged twice", "HZ09"),
        ("MirroredStrategy", "HV17"),
        ("GPU pinned", "HZ02"),
        ("random seed", "HV16"),
        ("recursion on a tensor", "PD04"),
        ("Hessian", "Differentiate a function"),
        ("pre-commit", "Checking a script: pre-commit"),
        ("Install Horovod", "The command line: Horovod"),
    ],
)
def test_explain_finds_codes_and_pages_by_words(run: Run, words: str, first: str) -> None:
    found = run("explain", *words.split())
    assert found.exit_code == 0
    guides = found.stdout.partition("\n\n")[2] or found.stdout.lstrip()
    codes = found.stdout.partition("\n\n")[0]
    assert (codes if first[:4].isupper() or first[2:4].isdigit() else guides).startswith(first)


def test_explain_prints_a_code_however_its_name_is_split(run: Run) -> None:
    assert run("explain", "wrap-tape").stdout == run("explain", "HV04").stdout
    assert run("explain", "wrap", "tape").stdout.startswith("HV04 wrap-tape")


def test_search_leads_to_the_site(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(guides()["checking.md"]) in run("explain", "pre-commit").stdout
    (tmp_path / "trainshift.toml").write_text('docs-url = "https://docs.example.org/ts/"\n')
    found = run("explain", "pre-commit").stdout
    assert "Checking a script: pre-commit  https://docs.example.org/ts/checking.html#pre-commit\n" in found


def test_search_reads_every_guide() -> None:
    """All except the lists of codes and the guides for contributors; the wheel contains them."""
    docs = ROOT / "server" / "docs"
    others = {"codes.md", "conformance.md", "spec.md"}
    assert set(GUIDES) == {path.name for path in docs.glob("*.md")} - others
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in GUIDES:
        assert f'"server/docs/{name}" = "trainshift/guides/{name}"' in metadata


def test_explain_tells_where_the_page_is_on_the_site(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output has the address of the page if the project's settings name a site."""
    monkeypatch.chdir(tmp_path)
    plain = run("explain", "TF03").stdout
    assert "In a browser" not in plain
    (tmp_path / "trainshift.toml").write_text('docs-url = "https://docs.example.org/ts/"\n')
    found = run("explain", "TF03").stdout
    assert found == f"{plain}\nIn a browser: <https://docs.example.org/ts/rules/TF03.html>\n"
    (tmp_path / "trainshift.toml").write_text("docs-url = 3\n")
    assert run("explain", "TF03").exit_code == 2


@pytest.mark.parametrize("code", [rule.code for rules in sections().values() for rule in rules])
def test_every_code_is_explained(run: Run, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page(code).startswith(f"# {code} ")
    assert run("explain", code).stdout == page(code)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = run("explain", code).stdout
    assert f"{code} " in shown
    assert "```" not in shown


class TestEntries:
    def test_a_member_has_one_line_and_a_library_one_for_each(self, run: Run) -> None:
        assert run("explain", "wandb.init").stdout == "wandb.init: a tracker: left to rank 0.\n"
        lines = run("explain", "hydra").stdout
        assert lines.startswith("hydra.main: Hydra makes a run folder for each rank, by its own clock")

    def test_of_peoples_own(self, run: Run, here: Path) -> None:
        entry = '[libraries."acme.tracking"]\n"log_*" = { role = "tracker" }\n'
        (here / "trainshift.toml").write_text(entry, "utf-8")
        told = run("explain", "acme.tracking.log_loss").stdout
        assert told == "acme.tracking.log_loss: a tracker: left to rank 0.\n"
