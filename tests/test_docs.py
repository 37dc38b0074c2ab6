"""The committed pages and lists of codes are what `make docs` would write."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trainshift.dev.docgen import MANIFEST, PAGES, README, SPEC, manifest, pages, readme
from trainshift.engine.settings import CODES
from trainshift.pages import page
from trainshift.transforms import TRANSFORMS

WANTED = pages()


@pytest.mark.every_rule
def test_every_code_has_a_page_and_no_other() -> None:
    assert {path.stem for path in PAGES.glob("*")} == set(WANTED)
    assert {*CODES, *(rule.code for rule in TRANSFORMS), "TS00", "TS03"} == set(WANTED)


@pytest.mark.parametrize("code", WANTED)
def test_the_page_is_fresh(code: str) -> None:
    committed = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert committed == WANTED[code], "stale; run: make docs"


@pytest.mark.parametrize("code", [code for code in WANTED if not code.startswith("TS")])
def test_a_page_links_the_seeds_and_corrections_that_it_names(code: str) -> None:
    """And they are there; a page that is read elsewhere has no such link."""
    prose = re.sub(r"^```(?:.*\n)*?```$|`[^`]*`|^ {4}.*$|^#.*$", "", WANTED[code], flags=re.M)
    assert "## Where it comes from\n\nSeeds: " in WANTED[code]
    linked = re.findall(r"\[(\w+)\]\(\.\./spec\.md#(\w+)\)", prose)
    headings = re.findall(r"^### (\w+)$", SPEC.read_text(encoding="utf-8"), re.M)
    assert {name for name, _ in linked} <= set(headings)
    assert all(anchor == name.lower() for name, anchor in linked)
    assert len(linked) == len(re.findall(r"\b(?:S[123]|C\d+)\b", prose))
    assert "](../" not in page(code)


@pytest.mark.every_rule
def test_the_corrections_of_the_conformance_table_are_told() -> None:
    table = (PAGES.parent / "conformance.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (\w+)$", SPEC.read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"\b(?:S[123]|C\d+)\b", table)) == set(headings)


@pytest.mark.every_rule
@pytest.mark.parametrize(
    ("path", "written"), [(README, readme), (MANIFEST, manifest)], ids=["README", "package.json"]
)
def test_the_lists_of_codes_are_fresh(path: Path, written: Callable[[str], str]) -> None:
    committed = path.read_text(encoding="utf-8")
    assert committed == written(committed), "stale; run: make docs"


@pytest.mark.every_rule
@pytest.mark.parametrize(
    ("path", "written"), [(README, readme), (MANIFEST, manifest)], ids=["README", "package.json"]
)
def test_a_list_of_codes_gets_what_it_lacks(path: Path, written: Callable[[str], str]) -> None:
    committed = path.read_text(encoding="utf-8")
    assert written(re.sub(r"^\| TF03 .*\n| *\"TF03\",\n", "", committed, flags=re.M)) == committed


@pytest.mark.parametrize("code", [code for code in WANTED if code.startswith(("TF", "TL"))])
def test_the_page_of_a_restriction_shows_wrong_and_right_code(code: str) -> None:
    text = WANTED[code]
    for heading in ("## Reported as violated", "## Not reported", "## Suppress it", "## Where it comes from"):
        assert heading in text
    assert re.search(rf"^\d+:\d+ {code} violated ", text, re.M)
