"""Rules of the repository that no linter checks: names, and truthful documents.

Layers are contracts of import-linter, bans are ruff's, and sizes are gates of `gates.py`: `make lint`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from import_graph import PACKAGE, ROOT, nodes
from support.finding_fixtures import RESTRICTION_FILES, STATIC_FILES
from support.fixtures import TRANSFORM_FILES
from trainshift.core.rule import Rule
from trainshift.dev.examples import fixture_of
from trainshift.engine.derivation_rules import DERIVATION_RULES
from trainshift.engine.own_codes import OWN_CODES
from trainshift.engine.registry import RULES
from trainshift.pages import section
from trainshift.restrictions import RESTRICTIONS
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.transforms import TRANSFORMS

DERIVATION_FILES = [
    path for name in ("calculus", "derivatives") for path in sorted((ROOT / "fixtures" / name).glob("ad*.md"))
]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "dev" not in path.parts)
# The packages that read Python with `ast`.
READERS = ("python", "core", "restrictions", "rewriting", "transforms", "derivatives", "static_graphs")


@pytest.mark.slow
def test_nodes_are_looked_up_by_their_kind() -> None:
    asked = {
        str(path.relative_to(PACKAGE)): _asked_for_types(path) for path in MODULES if _reads_python(path)
    }
    found = {name: lines for name, lines in asked.items() if lines}
    assert found == {}, "many nodes are of classes of their own: python.syntax.slotted_ast.kind_of"


def _reads_python(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0] in READERS and path.name not in {"slotted_ast.py", "collect.py"}


def _asked_for_types(path: Path) -> list[int]:
    """The lines of a module that call `type`, except ``type(node).__name__``."""
    named = {id(node.value) for node in nodes(path) if isinstance(node, ast.Attribute)}
    calls = (node for node in nodes(path) if isinstance(node, ast.Call) and id(node) not in named)
    return [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "type"]


@pytest.mark.every_rule
@pytest.mark.parametrize(
    ("rules", "folder", "fixtures"),
    [(TRANSFORMS, "transforms", TRANSFORM_FILES), (RESTRICTIONS, "restrictions", RESTRICTION_FILES)],
    ids=["transforms", "restrictions"],
)
def test_rules_files_and_fixtures_have_one_name(rules, folder, fixtures) -> None:  # type: ignore[no-untyped-def]
    names = [rule.stem for rule in rules]
    # Hazards come last, whatever their letters.
    assert names == sorted(names, key=lambda name: (name.startswith("hz"), name))
    assert {path.stem for path in (PACKAGE / folder).glob("[ht]*[0-9]_*.py")} == set(names)
    assert {fixture_of(path) for path in fixtures} == set(names)


def test_no_fixture_is_longer_than_a_diff_that_people_read() -> None:
    files = [*(ROOT / "fixtures").glob("*/*.md"), *(ROOT / "fixtures" / "derivatives").glob("*.py")]
    long = {path.name: lines for path in files if (lines := path.read_text("utf-8").count("\n")) > 1500}
    assert long == {}, "give a subject a file of its own, as in hv15_divide_data.arrays.md"


@pytest.mark.parametrize(
    "rule", [*RESTRICTIONS, *TRANSFORMS, *STATIC_CODES, *OWN_CODES], ids=lambda rule: rule.code
)
def test_a_rule_says_what_it_does_and_why_in_a_few_words(rule) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"[A-Z][^.]*\.", rule.title)
    needed = ["Why it matters"] if rule in TRANSFORMS else ["Why it matters", "What to do"]
    for heading in needed:
        said = section(rule.doc, heading)
        assert 20 < len(said) <= 200
        assert len(re.findall(r"[.!?](?= |$)", said)) <= 2
    assert "must" in rule.title or rule not in RESTRICTIONS


@pytest.mark.parametrize("rule", DERIVATION_RULES, ids=lambda rule: rule.code)
def test_a_rule_of_differentiation_has_a_title_and_a_fixture(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", rule.title)
    assert rule.stem in {path.stem for path in DERIVATION_FILES}


def test_every_dependency_is_explained() -> None:
    explained = (ROOT / "server" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lists = re.findall(r'^    "([a-z-]+)[>=]', project, re.M) + re.findall(r'"([a-z-]+)==?', project)
    missing = [name for name in lists if f"**{name}**" not in explained.lower()]
    assert not missing


@pytest.mark.every_rule
def test_the_documentation_lists_every_rule() -> None:
    lists = (ROOT / "server" / "docs" / "codes.md").read_text(encoding="utf-8")
    listed = [rule for rule in RULES if rule not in OWN_CODES]
    rows = [f"| [{each.code}](rules/{each.code}.md) | `{each.name}` | {each.title} |" for each in listed]
    assert [row for row in rows if row not in lists] == []


@pytest.mark.every_rule
def test_the_conformance_table_tells_the_truth() -> None:
    text = (ROOT / "server" / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(.*)\|$", text, re.M)
    cells = [cell.strip() for row in rows for cell in row.split("|")]
    known = {rule.code for rule in RULES if rule not in OWN_CODES}
    assert known == {code for cell in cells for code in re.findall(r"\b(?:HV|TF|TL|AD|HZ|PD)\d\d\b", cell)}
    headings = {
        f"{path.stem[:4]}: {heading}"
        for path in (*TRANSFORM_FILES, *RESTRICTION_FILES, *STATIC_FILES, *DERIVATION_FILES)
        for heading in re.findall(r"^## (.*)$", path.read_text(encoding="utf-8"), re.M)
    }
    wanted = {cell for cell in cells if re.fullmatch(r"(?:hv|tf|tl|ad|hz|pd)\d\d(: .*)?", cell)}
    assert {cell for cell in wanted if ": " in cell} <= headings
    assert {cell for cell in wanted if ": " not in cell} <= {heading[:4] for heading in headings}


@pytest.mark.slow
def test_the_glossary_and_the_commands_of_contributing_are_true() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    glossary = re.findall(r"^\|.*\|(.*)\|$", text.partition("| class |")[2], re.M)
    named = {name for cell in glossary for name in re.findall(r"`(\w+)`", cell)}
    classes = {node.name for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef)}
    assert len(named) > 20
    assert named <= classes
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= set(targets)


@pytest.mark.parametrize("name", ["server/ARCHITECTURE.md", "server/docs/conformance.md"])
def test_documents_name_files_that_exist(name: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [f"/{each}" for each in listed.stdout.splitlines()]
    named = re.findall(r"`([\w./-]+\.(?:py|ts|md|json))`", (ROOT / name).read_text(encoding="utf-8"))
    assert named
    assert [each for each in named if not any(file.endswith(f"/{each}") for file in files)] == []


def test_the_command_line_starts_without_heavy_imports() -> None:
    code = "import sys, trainshift.cli.main; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"tensorflow", "horovod", "libcst", "rich", "pygls", "numpy"})


def test_the_first_check_of_the_server_needs_neither_pygls_nor_the_rules() -> None:
    code = (
        "import sys, trainshift.lsp.fast_start\n"
        "from trainshift.engine.incremental import Live\n"
        "from trainshift.engine.settings import Settings\n"
        "from trainshift.host.disk import files_on_disk\n"
        "from trainshift.python.source.source import Source\n"
        "source = Source('import tensorflow as tf\\ntf = 1\\n')\n"
        "print(Live('/absent/main.py', files_on_disk()).in_full(source, Settings()).diagnostics[0].code)\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, loaded = done.stdout.splitlines()
    heavy = {"pygls", "lsprotocol", "attrs", "trainshift.transforms", "trainshift.engine.analysis"}
    assert found == "TF02"
    assert heavy.isdisjoint(loaded.split())


def test_no_path_of_a_machine_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".json", ".yml", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"/(?:home|Users|root|work)/[a-z]", text), name
