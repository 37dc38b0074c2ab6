"""Edits: convert a plan of the core to a workspace edit of versioned documents, each rule under its
own name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

from lsprotocol import types

from trainshift.lsp.text.documents import Part
from trainshift.lsp.transport.client import Client
from trainshift.python.source.edit import Change, Edit, Plan
from trainshift.python.source.source import Source, Span
from trainshift.transforms import TRANSFORMS

_TextEdit = types.TextEdit | types.AnnotatedTextEdit

_SET_UP = "HV01"
_TITLES: Mapping[str, str] = {rule.code: rule.title for rule in TRANSFORMS}


Home = Callable[[Edit], tuple[Part, Edit]]
"""Gives the document that an edit is of, and the edit as that document is to be given it."""


def workspace_edit(
    plan: Plan, home: Home, client: Client, names: Mapping[str, str] = MappingProxyType({})
) -> types.WorkspaceEdit:
    """The edits of a plan, in text order; each rule is labelled in each document that has a name."""
    rules = {edit: change.rule for change in plan.changes for edit in change.edits}
    named = {rules[edit] for edit in plan.edits if edit in rules}
    parts: dict[str, Part] = {}
    by_part: dict[str, list[Any]] = {}
    used: dict[str, tuple[str, str]] = {}
    for edit in plan.edits:
        part, inside = home(edit)
        rule, name = rules.get(edit) or _rule_of(edit, rules, named), names.get(part.uri, "")
        named.add(rule)
        identity = f"{rule} {name}" if name else rule
        used[identity] = rule, part.uri if name else ""
        parts[part.uri] = part
        by_part.setdefault(part.uri, []).append(_text_edit(part, inside, identity, client))
    if not client.has_versioned_edits:
        return types.WorkspaceEdit(changes=by_part)
    changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=parts[uri].version), edits
        )
        for uri, edits in by_part.items()
    ]
    notes = None
    if client.has_annotations:
        made = [(each, home(next(iter(each.edits)))[0].uri if each.edits else "") for each in plan.changes]
        notes = {
            identity: _annotation(
                rule,
                names.get(uri, ""),
                [each for each, where in made if each.rule == rule and uri in ("", where)],
            )
            for identity, (rule, uri) in sorted(used.items())
        }
    return types.WorkspaceEdit(document_changes=changes, change_annotations=notes)


def _rule_of(edit: Edit, rules: Mapping[Edit, str], named: Collection[str]) -> str:
    """Return the rule of an edit that combines the edits of several: the first that is not `named` yet."""
    inside = [rule for each, rule in rules.items() if edit.start <= each.start and each.end <= edit.end]
    return next((rule for rule in inside if rule not in named), inside[0] if inside else _SET_UP)


def plain_edit(edits: Iterable[tuple[Part, Edit]], client: Client) -> types.WorkspaceEdit:
    """The edits of a program without rules, each with its document."""
    by_part: dict[str, tuple[Part, list[types.TextEdit]]] = {}
    for part, edit in edits:
        first, last = part.places(Span(edit.start, edit.end))
        where = types.Range(types.Position(*first), types.Position(*last))
        by_part.setdefault(part.uri, (part, []))[1].append(types.TextEdit(where, edit.text))
    if not client.has_versioned_edits:
        return types.WorkspaceEdit(changes={uri: found for uri, (_, found) in by_part.items()})
    changes = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(part.uri, part.version), [*found]
        )
        for part, found in by_part.values()
    ]
    return types.WorkspaceEdit(document_changes=changes)


def differences(part: Part, after: str) -> Iterator[tuple[Part, Edit]]:
    """The lines of a document in which a text differs, as edits of the program."""
    before = part.text[part.hidden :]
    old, new = _lines(before), _lines(after)
    starts = [0, *accumulate(map(len, old))]
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            text = "".join(new[start:end])
            yield part, Edit(part.start + starts[first], part.start + starts[last], text)


def _lines(text: str) -> list[str]:
    starts = [*Source(text).line_starts, len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def _text_edit(part: Part, edit: Edit, annotation: str, client: Client) -> _TextEdit:
    first, last = part.places(Span(edit.start, edit.end))
    where = types.Range(types.Position(*first), types.Position(*last))
    if client.has_versioned_edits and client.has_annotations:
        return types.AnnotatedTextEdit(annotation_id=annotation, range=where, new_text=edit.text)
    return types.TextEdit(where, edit.text)


def _annotation(rule: str, name: str, changes: Sequence[Change]) -> types.ChangeAnnotation:
    notes = dict.fromkeys(note for change in changes for note in (*change.doubts, *change.decisions))
    titles = (each.title for each in changes)
    title = _TITLES.get(rule, "").rstrip(".") or next(titles, rule)
    where = f" ({name})" if name else ""
    return types.ChangeAnnotation(
        label=f"{rule}: {title}{where}", needs_confirmation=False, description="; ".join(notes) or None
    )
