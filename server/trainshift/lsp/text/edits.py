"""Edits: a plan of the core as a workspace edit of versioned documents, each rule under its own name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lsprotocol import types

from trainshift.core.text.edit import Change, Edit, Plan
from trainshift.core.text.source import Span
from trainshift.lsp.text.documents import Paper, Part
from trainshift.lsp.wire.client import Client
from trainshift.transforms import TRANSFORMS

_TextEdit = types.TextEdit | types.AnnotatedTextEdit

_SET_UP = "HV01"
_TITLES: Mapping[str, str] = {rule.code: rule.title for rule in TRANSFORMS}


def workspace_edit(paper: Paper, plan: Plan, client: Client) -> types.WorkspaceEdit:
    """The edits of a plan, in text order."""
    rules = _rules(plan.changes)
    by_part: dict[str, list[Any]] = {}
    for edit in plan.edits:
        part, inside = paper.home(edit)
        by_part.setdefault(part.uri, []).append(_text_edit(part, inside, rules.get(edit, _SET_UP), client))
    if not client.has_versioned_edits:
        return types.WorkspaceEdit(changes=by_part)
    changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri=part.uri, version=part.version), edits
        )
        for part in paper.parts
        if (edits := by_part.get(part.uri))
    ]
    used = sorted({rules.get(edit, _SET_UP) for edit in plan.edits})
    notes = {rule: _annotation(rule, plan.changes) for rule in used} if client.has_annotations else None
    return types.WorkspaceEdit(document_changes=changes, change_annotations=notes)


def single_edit(paper: Paper, edit: Edit, client: Client) -> types.WorkspaceEdit:
    """One edit that no rule makes."""
    part, edit = paper.home(edit)
    first, last = part.places(Span(edit.start, edit.end))
    text_edit = types.TextEdit(types.Range(types.Position(*first), types.Position(*last)), edit.text)
    if not client.has_versioned_edits:
        return types.WorkspaceEdit(changes={part.uri: [text_edit]})
    document = types.OptionalVersionedTextDocumentIdentifier(uri=part.uri, version=part.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [text_edit])])


def _rules(changes: Iterable[Change]) -> dict[Edit, str]:
    return {edit: change.rule for change in changes for edit in change.edits}


def _text_edit(part: Part, edit: Edit, rule: str, client: Client) -> _TextEdit:
    first, last = part.places(Span(edit.start, edit.end))
    where = types.Range(types.Position(*first), types.Position(*last))
    if client.has_versioned_edits and client.has_annotations:
        return types.AnnotatedTextEdit(annotation_id=rule, range=where, new_text=edit.text)
    return types.TextEdit(where, edit.text)


def _annotation(rule: str, changes: Iterable[Change]) -> types.ChangeAnnotation:
    notes = dict.fromkeys(
        note for change in changes if change.rule == rule for note in (*change.doubts, *change.decisions)
    )
    titles = (each.title for each in changes if each.rule == rule)
    title = _TITLES.get(rule, "").rstrip(".") or next(titles, rule)
    return types.ChangeAnnotation(
        label=f"{rule}: {title}", needs_confirmation=False, description="; ".join(notes) or None
    )
