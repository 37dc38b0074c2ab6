"""SARIF: the check report in the Static Analysis Results Interchange Format, version 2.1.0."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import quote

from trainshift import __version__
from trainshift.cli.checks.report import FileCheck
from trainshift.cli.documents import Shown
from trainshift.cli.rules import find_rule
from trainshift.engine.cells import Spot
from trainshift.engine.checking import Diagnostic, Region
from trainshift.engine.settings import Severity
from trainshift.pages import page

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}


class SarifReporter:
    """One SARIF log on standard output; results are written as they come, the rules at the end."""

    def __init__(self) -> None:
        self._results = 0
        self._begun = False
        self._codes: set[str] = set()
        self._notifications: list[dict[str, object]] = []

    def file(self, result: FileCheck) -> None:
        """Write the results of a file."""
        self._begin()
        for each in result.diagnostics:
            sys.stdout.write(",\n" if self._results else "\n")
            self._results += 1
            self._codes.add(each.code)
            json.dump(_result(result.path, each, result.shown), sys.stdout)
        if result.error:
            line, column, _ = result.position or Spot(1, 1)
            self._notifications.append(
                {
                    "level": "error",
                    "message": {"text": result.error},
                    "locations": [_location(result.path, Region(line, column, line, column), Shown())],
                }
            )

    def finish(self, *, interrupted: bool = False) -> None:
        """Write the rules and close the log."""
        self._begin()
        invocation = {
            "executionSuccessful": not interrupted and not self._notifications,
            "toolExecutionNotifications": self._notifications,
        }
        driver = {
            "name": "trainshift",
            "version": __version__,
            "rules": [_rule(code) for code in sorted(self._codes)],
        }
        tail = {
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "tool": {"driver": driver},
        }
        sys.stdout.write("\n], " + json.dumps(tail)[1:] + "]}\n")
        sys.stdout.flush()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            sys.stdout.write(
                f'{{"$schema": {json.dumps(SCHEMA)}, "version": "2.1.0", "runs": [{{"results": ['
            )


def _rule(code: str) -> dict[str, object]:
    rule = find_rule(code)
    text = page(code) or rule.doc
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "help": {"text": text, "markdown": text},
    }


def _result(path: str, each: Diagnostic, shown: Shown) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": each.code,
        "level": _LEVELS[each.severity],
        "message": {"text": each.message},
        "locations": [_location(path, each.region, shown)],
        "properties": {"verdict": each.verdict.value},
    }
    if each.related:
        result["relatedLocations"] = [
            {**_location(other.path, other.region, shown), "message": {"text": other.message}}
            for other in each.related
        ]
    if each.fix is not None:
        replacements = [
            {"deletedRegion": _region(region), "insertedContent": {"text": text}}
            for region, text in shown.edits_in_file(each.fix)
        ]
        change = {"artifactLocation": {"uri": _uri(path)}, "replacements": replacements}
        result["fixes"] = [{"description": {"text": each.fix.title}, "artifactChanges": [change]}]
    return result


def _location(path: str, region: Region, shown: Shown) -> dict[str, object]:
    """The place in the file; for a notebook, the place in its JSON, and the name of the cell."""
    where = {"artifactLocation": {"uri": _uri(path)}, "region": _region(shown.in_file(region))}
    location: dict[str, object] = {"physicalLocation": where}
    if region.cell:
        name = f"cell {region.cell}"
        location["logicalLocations"] = [{"name": name, "fullyQualifiedName": f"{name}:{region.line}"}]
    return location


def _region(region: Region) -> dict[str, int]:
    return {
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    }


def _uri(path: str) -> str:
    """A URI relative to the current directory, which code scanning takes for the repository; else
    absolute.
    """
    absolute = os.path.abspath(path)
    below = os.path.join(os.getcwd(), "")
    if not absolute.startswith(below):
        return Path(absolute).as_uri()
    return quote(os.fsencode(absolute[len(below) :].replace(os.sep, "/")))
