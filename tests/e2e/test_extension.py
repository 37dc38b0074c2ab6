"""The manifest of the VS Code extension agrees with the server: settings, defaults, codes, versions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import trainshift
from trainshift.core.choices import CHOICES
from trainshift.core.finding import Verdict
from trainshift.dev.protocol import PROTOCOL, protocol
from trainshift.engine.settings import CODES, SEVERITIES
from trainshift.lsp.answers.codes import listed
from trainshift.lsp.options import Options, read_options

MANIFEST: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vscode-extension" / "package.json").read_text(encoding="utf-8")
)
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
# Fields that a server does not use.
OF_THE_EDITOR = {"interpreter", "python", "args", "trace"}
RUN = {"trainshift.interpreter", "trainshift.python", "trainshift.args"}
"""The settings that say what is run."""


def defaults() -> dict[str, Any]:
    """The section `trainshift` as VS Code sends it with default settings."""
    section: dict[str, Any] = {}
    for name, declared in PROPERTIES.items():
        *parents, key = name.removeprefix("trainshift.").split(".")
        home = section
        for parent in parents:
            home = home.setdefault(parent, {})
        home[key] = declared["default"]
    return section


def test_the_server_takes_the_defaults_for_its_own() -> None:
    """One by one, so that a different default is named."""
    options, problems = read_options(defaults())
    assert problems == []
    usual = Options()
    for name in ("enable", "hints", "code_lens", "static_hints", "ignore_versions", "syntax_errors"):
        assert getattr(options, name) == getattr(usual, name), name
    for name in ("ignore", "severity", "per_file_ignores", "exclude", "docs_url"):
        assert getattr(options.settings, name) == getattr(usual.settings, name), name
    assert options.settings.choices == usual.settings.choices
    for code in CODES:
        for verdict in Verdict:
            assert options.settings.severity_of(code, verdict) is usual.settings.severity_of(code, verdict)


def test_every_setting_of_the_server_is_declared() -> None:
    """A setting that the documentation lists can be set in the editor's own settings."""
    known = {"enable", "hints", "codeLens", "staticHints", "ignoreVersions", "syntaxErrors"}
    known |= {
        "select",
        "ignore",
        "severity",
        "perFileIgnores",
        "exclude",
        "restrictions",
        "docsUrl",
        "libraries",
    }
    known |= {re.sub(r"-(.)", lambda match: match[1].upper(), key) for key in CHOICES}
    declared = {name.removeprefix("trainshift.").split(".")[0] for name in PROPERTIES}
    assert declared == known | OF_THE_EDITOR


@pytest.mark.parametrize("name", [name for name in PROPERTIES if "enum" in PROPERTIES[name]])
def test_a_default_is_one_of_what_can_be_chosen(name: str) -> None:
    """The default is among the choices, and each choice has a description."""
    declared = PROPERTIES[name]
    assert declared["default"] in declared["enum"]
    assert len(declared["enumDescriptions"]) == len(declared["enum"])


def test_every_setting_says_what_it_is() -> None:
    """The description of every setting is a sentence."""
    for name, declared in PROPERTIES.items():
        text = declared.get("markdownDescription") or declared["description"]
        assert len(text) > 30, name
        assert text.endswith((".", ")")), name


@pytest.mark.every_rule
def test_severities_are_those_of_the_checker() -> None:
    """Every code, with its name and title, and every level."""
    offered = PROPERTIES["trainshift.severity"]["properties"]
    titles = {each["code"]: f"{each['name']}: {each['title']}" for each in listed()}
    assert {code for code in offered if len(code) > 2} == set(CODES)
    assert {code: offered[code]["description"] for code in CODES} == {code: titles[code] for code in CODES}
    for code, declared in offered.items():
        assert set(declared["enum"]) == set(SEVERITIES), code
        options, problems = read_options({"severity": {code: declared["enum"][0]}})
        assert problems == []
        assert options.settings.severity


def test_the_pages_of_all_codes_open_as_pages() -> None:
    """The commands show rendered pages, not Markdown text."""
    (pattern,) = MANIFEST["contributes"]["configurationDefaults"]["workbench.editorAssociations"]
    (families,) = re.findall(r"\{([A-Z,]+)\}", pattern)
    assert set(families.split(",")) == {rule["code"][:2] for rule in listed()}


def test_the_protocol_is_the_servers() -> None:
    assert PROTOCOL.read_text(encoding="utf-8") == protocol(), "stale; run: make docs"


def test_the_versions_are_one() -> None:
    """The extension contains the wheel of its own version."""
    assert MANIFEST["version"] == trainshift.__version__


def test_workspaces_that_are_not_trusted_choose_no_program() -> None:
    """Each setting that names a program to run is restricted."""
    limited = MANIFEST["capabilities"]["untrustedWorkspaces"]
    assert limited["supported"] == "limited"
    assert set(limited["restrictedConfigurations"]) == RUN
    # Scripts of several folders may run on several Pythons, and one server handles them all.
    scopes = {name: PROPERTIES[name]["scope"] for name in RUN}
    assert scopes == {name: "resource" if name == "trainshift.python" else "window" for name in RUN}
    assert MANIFEST["capabilities"]["virtualWorkspaces"]["supported"] is False
