"""Capabilities: the server's capabilities, as plain JSON.

They are answered before anything heavy is imported, so nothing heavy is imported here.
"""

from __future__ import annotations

from typing import Any

from trainshift import __version__
from trainshift.lsp.transport.client import Client

CONVERT_STATEMENT = "refactor.rewrite.distribute"
CONVERT_FILE = "source.makeDistributed.trainshift"
CONVERT_NOTEBOOK = "notebook.source.makeDistributed.trainshift"
FIX_ALL = "source.fixAll.trainshift"
FORWARD = "refactor.rewrite.differentiate.forward.trainshift"
REVERSE = "refactor.rewrite.differentiate.reverse.trainshift"
EXPAND = "refactor.rewrite.expandStatic.trainshift"
EXPAND_FILE = "source.expandStatic.trainshift"
MAKE_STATIC = "refactor.rewrite.makeStatic.trainshift"
"""The kinds of code actions."""

CONVERT = "trainshift.makeDistributed"
DIFFERENTIATE = "trainshift.differentiate"
EXPAND_STATIC = "trainshift.expandStatic"
EXPLAIN = "trainshift.explain"
MAKE = "trainshift.makeStatic"
OPEN = "trainshift.openLine"
WARNINGS = "trainshift.showWarnings"
"""The commands."""

LANGUAGES = ("python",)
"""The languages of documents and cells that are judged."""

OUTLINE = "trainshift/outline"
RULES = "trainshift/rules"
SCRIPTS = "trainshift/scripts"
"""The requests that are no other server's."""


def initialize_result(client: Client) -> dict[str, Any]:
    """The answer to `initialize`."""
    capabilities: dict[str, Any] = {
        "positionEncoding": client.encoding,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "notebookDocumentSync": {
            "notebookSelector": [{"cells": [{"language": each} for each in LANGUAGES]}],
            "save": False,
        },
        "codeActionProvider": {
            "codeActionKinds": [
                "quickfix",
                CONVERT_STATEMENT,
                CONVERT_FILE,
                CONVERT_NOTEBOOK,
                FIX_ALL,
                FORWARD,
                REVERSE,
                EXPAND,
                EXPAND_FILE,
                MAKE_STATIC,
            ],
            "resolveProvider": True,
        }
        if client.has_literals
        else False,
        "codeLensProvider": {"resolveProvider": False},
        "hoverProvider": True,
        "inlayHintProvider": True,
        "executeCommandProvider": {
            "commands": [CONVERT, DIFFERENTIATE, EXPAND_STATIC, EXPLAIN, MAKE, OPEN, WARNINGS]
        },
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if client.pulls:
        capabilities["diagnosticProvider"] = {
            "identifier": "trainshift",
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
        }
    return {"capabilities": capabilities, "serverInfo": {"name": "trainshift", "version": __version__}}
