"""Client: the capabilities of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

UTF_8, UTF_16, UTF_32 = "utf-8", "utf-16", "utf-32"
PREFERRED = (UTF_32, UTF_8, UTF_16)
"""The encodings of positions, cheapest for us first."""


class Client(NamedTuple):
    """The relevant capabilities of a client."""

    encoding: str = UTF_16
    resolves_edits: bool = False
    has_literals: bool = False
    has_disabled: bool = False
    has_preferred: bool = False
    has_annotations: bool = False
    has_versioned_edits: bool = False
    pulls: bool = False
    refreshes_diagnostics: bool = False
    refreshes_lenses: bool = False
    configures: bool = False
    watches: bool = False
    registers_configuration: bool = False
    has_progress: bool = False
    shows_documents: bool = False
    applies_edits: bool = False


def read_client(capabilities: object) -> Client:
    """Read the `capabilities` of an `initialize` request from plain JSON; malformed ones count as missing."""

    def said(path: str) -> object:
        value: object = capabilities
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def has(path: str) -> bool:
        return said(path) is True

    action = "textDocument.codeAction"
    offered = said("general.positionEncodings")
    listed = list(offered) if isinstance(offered, Sequence) and not isinstance(offered, str) else []
    resolvable = said(f"{action}.resolveSupport.properties")
    return Client(
        encoding=next((each for each in PREFERRED if each in listed), UTF_16),
        resolves_edits=isinstance(resolvable, Sequence)
        and "edit" in resolvable
        and has(f"{action}.dataSupport"),
        has_literals=said(f"{action}.codeActionLiteralSupport") is not None,
        has_disabled=has(f"{action}.disabledSupport"),
        has_preferred=has(f"{action}.isPreferredSupport"),
        has_annotations=said("workspace.workspaceEdit.changeAnnotationSupport") is not None,
        has_versioned_edits=has("workspace.workspaceEdit.documentChanges"),
        pulls=said("textDocument.diagnostic") is not None,
        refreshes_diagnostics=has("workspace.diagnostics.refreshSupport"),
        refreshes_lenses=has("workspace.codeLens.refreshSupport"),
        configures=has("workspace.configuration"),
        watches=has("workspace.didChangeWatchedFiles.dynamicRegistration"),
        registers_configuration=has("workspace.didChangeConfiguration.dynamicRegistration"),
        has_progress=has("window.workDoneProgress"),
        shows_documents=has("window.showDocument.support"),
        applies_edits=has("workspace.applyEdit"),
    )
