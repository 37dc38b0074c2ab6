"""The committed pages and lists of codes equal the output of `make docs`."""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from trainshift.dev.docgen import CHOSEN, LISTS, MANIFEST, PAGES, choices, lists, manifest, pages
from trainshift.dev.messages import COMMANDS, DIFFERENTIATE, STATIC, messages
from trainshift.engine.checking import check
from trainshift.engine.conversion import Status, convert
from trainshift.engine.registry import BY_CODE
from trainshift.engine.settings import CODES
from trainshift.host.pythons.recipe import HOROVOD
from trainshift.pages import page
from trainshift.transforms import TRANSFORMS

WANTED = pages()


@pytest.mark.every_rule
def test_every_code_has_a_page_and_no_other() -> None:
    assert {path.stem for path in PAGES.glob("*")} == set(WANTED)
    assert set(BY_CODE) == set(WANTED)


@pytest.mark.parametrize("code", WANTED)
def test_the_page_is_fresh(code: str) -> None:
    committed = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert committed == WANTED[code], "stale; run: make docs"


# Names and words that a reader of a page does not have, or would not use.
_STRANGE = re.compile(
    r"\bC\d+\b|\bS[1234]\b|\bSPEC\b|\b[Tt]he seeds?\b|Seeds:|σ"
    r"|[Nn]obody (?:can )?sees?\b|all the same|cannot be seen|what it is of"
)


def _prose(text: str) -> str:
    """Markdown without its code."""
    return re.sub(r"^```(?:.*\n)*?```$|^ {4}.*$|`[^`\n]*`", "", text, flags=re.M)


@pytest.mark.parametrize("code", WANTED)
def test_a_page_names_nothing_that_its_reader_does_not_have(code: str) -> None:
    assert _STRANGE.findall(_prose(WANTED[code])) == []
    assert "](../" not in page(code)


@pytest.mark.every_rule
def test_each_detail_of_the_specification_is_told_in_the_conformance_table() -> None:
    spec = (PAGES.parent / "spec.md").read_text(encoding="utf-8")
    details = re.findall(r"^### (5\.\d+ .*)$", spec, re.M)
    wanted = {(name.split()[0], re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")) for name in details}
    table = (PAGES.parent / "conformance.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[([\d.]+)\]\(spec\.md#([\w-]+)\)", table)) == wanted
    assert _STRANGE.findall(_prose(spec)) == []


@pytest.mark.every_rule
@pytest.mark.parametrize(
    ("path", "written"),
    [(LISTS, lists), (CHOSEN, choices), (MANIFEST, manifest)],
    ids=["codes.md", "command-line.md", "package.json"],
)
def test_the_lists_of_codes_are_fresh(path: Path, written: Callable[[str], str]) -> None:
    committed = path.read_text(encoding="utf-8")
    assert committed == written(committed), "stale; run: make docs"


@pytest.mark.every_rule
@pytest.mark.parametrize(
    ("path", "written"), [(LISTS, lists), (MANIFEST, manifest)], ids=["codes.md", "package.json"]
)
def test_a_list_of_codes_gets_what_it_lacks(path: Path, written: Callable[[str], str]) -> None:
    committed = path.read_text(encoding="utf-8")
    assert written(re.sub(r"^\| \[TF03\].*\n| *\"TF03\",\n", "", committed, flags=re.M)) == committed


@pytest.mark.parametrize("code", [code for code in WANTED if code.startswith(("TF", "TL"))])
def test_the_page_of_a_restriction_shows_wrong_and_right_code(code: str) -> None:
    text = WANTED[code]
    for heading in ("Why it matters", "What to do", "Wrong", "Right", "How to silence it", "More"):
        assert f"\n## {heading}\n" in text
    assert re.search(rf"^\d+:\d+ {code} violated ", text, re.M)


def test_the_site_lists_the_messages_of_every_code_that_has_some() -> None:
    listed = messages()
    assert {code for code in CODES if not code.startswith("TS")} <= set(listed)
    assert {rule.code for rule in TRANSFORMS} <= set(listed)
    assert "no derivative of sp.gamma is known" in listed[DIFFERENTIATE]
    # Those that no fixture has are read from the code.
    assert "a starred item **… has unknown keys: write them out" in listed[DIFFERENTIATE]
    assert "a generator or `async` function is not expanded" in listed[STATIC]
    assert "--report needs the name of a file." in listed[COMMANDS]


ROOT = PAGES.parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / "vscode-extension" / name for name in ("README.md", "CHANGELOG.md")),
    ROOT / "server" / "ARCHITECTURE.md",
    *sorted((ROOT / ".github").rglob("*.md")),
    *sorted(PAGES.parent.glob("*.md")),
]
# External addresses that pages may link to.  Check a new one by hand before you list it.
ELSEWHERE = {"https://horovod.ai", "https://pre-commit.com", "https://github.com/kubeflow/mpi-operator"}


def test_the_script_of_the_readme_becomes_what_it_shows() -> None:
    (shown,) = re.findall(r"^```diff\n(.*?)^```$", README, re.M | re.S)
    script = (ROOT / "fixtures" / "readme" / "train.py").read_text(encoding="utf-8")
    result = convert(script)
    assert (result.status, result.doubts, result.withheld) == (Status.CONVERTED, (), ())
    lines = [*difflib.unified_diff(script.splitlines(), result.text.splitlines(), lineterm="")]
    # It shows some of the lines, in order.
    rest = iter(lines[3:])
    assert [line for line in shown.splitlines() if line != "..." and line not in rest] == []
    assert check(script).diagnostics == ()


def test_the_figures_of_the_readme_are_true() -> None:
    fixtures = ROOT / "fixtures"
    scripts, programs = (len([*(fixtures / name).iterdir()]) for name in ("scripts", "programs"))
    keras3, libraries = (len([*(fixtures / name).glob("*.py")]) for name in ("keras3", "libraries"))
    assert (
        f"{scripts} scripts, {programs} programs of several files and {keras3} scripts for Keras 3" in README
    )
    # KerasTuner's search is refused.
    assert f"so are {libraries - 1} that run the real" in README


def test_the_recipes_for_clusters_can_be_read_by_those_that_run_them() -> None:
    text = (PAGES.parent / "clusters.md").read_text(encoding="utf-8")
    recipes = dict[str, list[str]]()
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        recipes.setdefault(language, []).append(code)
    for code in recipes.pop("bash"):
        done = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    for code in recipes.pop("python"):
        ast.parse(code)
    (job,) = (yaml.safe_load(code) for code in recipes.pop("yaml"))
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    workers = job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    assert launcher["command"][launcher["command"].index("-np") + 1] == str(workers)
    (image,) = recipes.pop("dockerfile")
    assert f"horovod=={HOROVOD}" in image
    assert "tensorflow-cpu==2.15.1" in image
    assert recipes == {}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_to_other_sites_are_listed(guide: Path) -> None:
    links = set(re.findall(r"\]\((https?:[^)\s]+)\)", guide.read_text(encoding="utf-8")))
    assert links <= ELSEWHERE


@pytest.mark.parametrize("code", WANTED)
def test_links_of_the_pages_of_codes_lead_to_pages(code: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)[^)\s]*\)", _prose(WANTED[code])):
        assert (PAGES / link).exists(), link


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_lead_somewhere(guide: Path) -> None:
    text = re.sub(r"^```(?:.*\n)*?```$|`[^`\n]*`", "", guide.read_text(encoding="utf-8"), flags=re.M)
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = guide.parent / name if name else guide
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}, (
                link
            )
