"""Actions: the light bulb's menu for a place, and the edits behind each of its lines.

A menu uses only known results; the edit is computed when a line is chosen, from the complete analysis of the
version for which the menu was made.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lsprotocol import types
from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.finding import Finding
from trainshift.engine.checking import CheckReport, Diagnostic
from trainshift.engine.conversion import MAGIC_IN_THE_WAY, Status, innermost
from trainshift.engine.finishing.finish import laid_out
from trainshift.engine.own_codes import OWN_CODES, UNSUPPORTED_VERSION, UNUSED_SUPPRESSION
from trainshift.engine.settings import HAZARD_CODES, Severity
from trainshift.engine.suppressions import silence
from trainshift.lsp.answers.places import Places
from trainshift.lsp.answers.summary import conversion_of, title_of
from trainshift.lsp.diagnostics import SOURCE, place_of, range_of
from trainshift.lsp.scheduler import OpenProgram, Outdated, State
from trainshift.lsp.session import Session
from trainshift.lsp.text.documents import Paper, Part
from trainshift.lsp.text.edits import differences, plain_edit, workspace_edit
from trainshift.lsp.transport.capabilities import (
    CONVERT,
    CONVERT_FILE,
    CONVERT_NOTEBOOK,
    CONVERT_STATEMENT,
    EXPLAIN,
    FIX_ALL,
    OPEN,
)
from trainshift.lsp.transport.client import Client
from trainshift.lsp.transport.uris import uri_of
from trainshift.python.source.edit import Change, Edit, merge
from trainshift.python.source.source import Span

STATIC = "static"
"""The key in an action's data for what it does with a static function of Paddle."""
_OWN = frozenset(each.code for each in OWN_CODES)
_MOST_NAMED = 3
_QUICK = "quickfix"


class NotPossible(Exception):
    """An action that cannot be carried out, and the reason."""


class Wanted(Struct, frozen=True):
    """A request for a menu: a span of one document, and the kinds wanted (None for all).

    `round` is the number of changes of other files of its programs; with `is_hinted`, the request is for
    existing hints.
    """

    part: Part
    span: Span
    round: int
    only: tuple[str, ...] | None = None
    is_hinted: bool = False

    def wants(self, kind: str) -> bool:
        """Return whether actions of a kind are requested."""
        return self.only is None or any(
            not each or kind == each or kind.startswith(f"{each}.") for each in self.only
        )

    def names(self, kind: str) -> bool:
        """Return whether a kind was requested by its own name, not by a parent's."""
        return self.only is not None and self.wants(kind) and "" not in self.only

    def data(self, do: str, paper: Paper, span: Span | None = None, code: str = "") -> dict[str, Any]:
        """The data of an action, from which its edit is computed; for the requested span, if `span`
        is None.
        """
        span = span or self.span
        return {
            "do": do,
            "uri": self.part.uri,
            "version": paper.version,
            "round": self.round,
            "span": [span.start, span.end],
            "code": code,
        }


def menu(state: State, wanted: Wanted, client: Client) -> list[types.CodeAction]:
    """The actions for a place: fixes of hazards first, distribution, then other fixes, suppressions last."""
    near = [each for each in state.report.diagnostics if _meets(place_of(state.paper, each), wanted.span)]
    hazards = [each for each in near if each.code in HAZARD_CODES]
    statements = list(_of_statements(state, wanted, client))
    found = [*_of_fixes(state, wanted, client, hazards), *statements]
    whole: list[types.CodeAction] = []
    if any(each.code not in _OWN for each in near) and not any(each.kind == _QUICK for each in statements):
        whole = list(_of_file(state, wanted, client, _QUICK, near))
    found += whole
    first = next((each for each in found if each.kind == _QUICK), None)
    if first is not None and client.has_preferred:
        first.is_preferred = True
    others = [each for each in near if each not in hazards]
    found += [*_of_versions(state, wanted, near), *_of_fixes(state, wanted, client, others)]
    # A client that lists all kinds does not show the same action twice.
    if not whole or wanted.only is not None:
        kind = CONVERT_NOTEBOOK if state.paper.is_notebook else CONVERT_FILE
        found += _of_file(state, wanted, client, kind)
    found += [*_all_fixes(state, wanted), *_of_pages(state, near), *_of_comments(state, wanted, near)]
    return [each for each in found if each.kind is not None and wanted.wants(each.kind)]


# The menu


def _of_versions(state: State, wanted: Wanted, near: Sequence[Diagnostic]) -> Iterator[types.CodeAction]:
    """Yield the actions about a required version: choose another one, or convert anyway."""
    for diagnostic in near:
        if diagnostic.code == UNSUPPORTED_VERSION.code:
            (place,) = diagnostic.related
            obstacle = state.outline.whole.obstacle if state.outline is not None else None
            is_refused = obstacle is not None and obstacle.code == UNSUPPORTED_VERSION.code
            anyway: Any = {"uri": wanted.part.uri, "ignoreVersions": True}
            ways: list[tuple[str, str, list[Any]]] = [
                (f"Open {posixpath.basename(place.path)}", OPEN, [uri_of(place.path), place.region.line]),
                ("Convert Anyway", CONVERT, [anyway]),
            ]
            for title, command, arguments in ways if is_refused else ways[:1]:
                found = types.Command(title, command, arguments=arguments)
                shown = [_shown(state, diagnostic)]
                yield types.CodeAction(_titled(title), kind=_QUICK, command=found, diagnostics=shown)


def _of_fixes(
    state: State, wanted: Wanted, client: Client, near: Sequence[Diagnostic]
) -> Iterator[types.CodeAction]:
    """Yield the actions that fix the findings at a place, and all others of their codes."""
    for diagnostic in near:
        if diagnostic.fix is not None:
            action = _action("fix", diagnostic.fix.title, _QUICK, state, wanted, diagnostic)
            # Of all fixes, only one in a comment cannot change what the script does.
            if diagnostic.code == UNUSED_SUPPRESSION.code and client.has_preferred:
                action.is_preferred = True
            yield action
    numbers = Counter(each.code for each in state.report.diagnostics if each.fix is not None)
    for diagnostic in {each.code: each for each in near if numbers[each.code] > 1}.values():
        yield _action("fixAll", f"Fix all {diagnostic.code}", _QUICK, state, wanted, diagnostic)


def _all_fixes(state: State, wanted: Wanted) -> Iterator[types.CodeAction]:
    """Yield the action that does `trainshift check --fix`; a client may request it on each save."""
    if any(each.is_mended(Severity.WARNING) for each in state.report.diagnostics):
        yield _action("fixAll", "Fix all", FIX_ALL, state, wanted)


def _of_pages(state: State, near: Sequence[Diagnostic]) -> Iterator[types.CodeAction]:
    """The pages of the codes found at a place."""
    for diagnostic in {each.code: each for each in near if each.url}.values():
        title = f"Show what {diagnostic.code} means"
        command = types.Command(title, EXPLAIN, arguments=[diagnostic.code])
        # Editors show actions about a finding first.
        found = [_shown(state, diagnostic)]
        yield types.CodeAction(_titled(title), kind=_QUICK, command=command, diagnostics=found)


def _of_comments(state: State, wanted: Wanted, near: Sequence[Diagnostic]) -> Iterator[types.CodeAction]:
    """The comments that silence the findings at a place."""
    for diagnostic in near:
        if diagnostic.code not in _OWN or diagnostic.code == UNSUPPORTED_VERSION.code:
            title = f"Ignore {diagnostic.code} on this line"
            yield _action("ignore", title, _QUICK, state, wanted, diagnostic)


def _of_statements(state: State, wanted: Wanted, client: Client) -> Iterator[types.CodeAction]:
    """The conversion of the statement at the cursor, or of the selected statements."""
    chosen = _chosen(state, wanted.span)
    if chosen:
        statements = len({target for target, _ in chosen})
        title = _title([each for _, each in chosen]) if statements == 1 else f"{statements} statements"
        # A client that lists all kinds does not show the same action twice, even if it asks for hints.
        lines = state.paper.source
        is_on_hint = lines.line_of(chosen[0][0].start) == lines.line_of(wanted.span.start)
        kinds = [_QUICK] if wanted.is_hinted or is_on_hint or wanted.names(_QUICK) else []
        if not wanted.is_hinted or wanted.names(CONVERT_STATEMENT):
            kinds.append(CONVERT_STATEMENT)
        for kind in kinds:
            action = _action("statement", f"Make distributed: {title}", kind, state, wanted)
            if kind == _QUICK:
                action.diagnostics = [_hint(state, *each) for each in chosen]
            yield action
    elif client.has_disabled and state.outline is not None:
        for target, rule, reason in state.outline.withheld:
            span = state.moved(target)
            if span is not None and _meets(span, _lines(state, wanted.span)):
                title = _titled(f"Make distributed: {rule}")
                action = types.CodeAction(title, kind=CONVERT_STATEMENT)
                action.disabled = types.CodeActionDisabled(reason)
                yield action


def _of_file(
    state: State, wanted: Wanted, client: Client, kind: str, near: Sequence[Diagnostic] = ()
) -> Iterator[types.CodeAction]:
    """The conversion of the whole program: of the file, of several files, or of the whole notebook.

    As a quick fix, it refers to the findings that are `near`.
    """
    if state.outline is None or not wanted.wants(kind):
        return
    what = title_of(state) or ("whole notebook" if state.paper.is_notebook else "whole file")
    title = f"Make distributed ({what})"
    obstacle = state.outline.whole.obstacle
    if obstacle is None:
        action = _action("file", title, kind, state, wanted)
        action.diagnostics = [_shown(state, each) for each in near] or None
        yield action
    elif near or not client.has_disabled:
        return
    elif obstacle.status is not Status.NOTHING_FOUND or wanted.names(kind):
        reason = Places(state, {}).reason(obstacle)
        disabled = types.CodeActionDisabled(reason)
        yield types.CodeAction(_titled(title), kind=kind, disabled=disabled)


def _action(
    do: str, title: str, kind: str, state: State, wanted: Wanted, diagnostic: Diagnostic | None = None
) -> types.CodeAction:
    """An action whose edit is computed later, from its `data`."""
    span = wanted.span if diagnostic is None else place_of(state.paper, diagnostic)
    data = wanted.data(do, state.paper, span, diagnostic.code if diagnostic else "")
    action = types.CodeAction(_titled(title), kind=kind, data=data)
    if diagnostic is not None:
        action.diagnostics = [_shown(state, diagnostic)]
    return action


def _titled(title: str) -> str:
    """A title in the style of other servers."""
    return f"Trainshift: {title}"


def _shown(state: State, diagnostic: Diagnostic) -> types.Diagnostic:
    return _protocols(state, place_of(state.paper, diagnostic), diagnostic.code, diagnostic.message)


def _protocols(state: State, span: Span, code: str, message: str) -> types.Diagnostic:
    place = range_of(state.paper.part_at(span.start), span)
    where = types.Range(types.Position(**place["start"]), types.Position(**place["end"]))
    return types.Diagnostic(where, message, code=code, source=SOURCE)


def _hint(state: State, span: Span, change: Change) -> types.Diagnostic:
    line = Span(span.start, min(span.end, state.paper.source.line_end(span.start)))
    return _protocols(state, line, change.rule, change.title)


def _title(changes: Sequence[Change]) -> str:
    """The title of an action for one statement."""
    titles = list(dict.fromkeys(f"{each.title[:1].lower()}{each.title[1:]}" for each in changes))
    more = len(titles) - _MOST_NAMED
    return ", ".join(titles[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _chosen(state: State, span: Span) -> list[tuple[Span, Change]]:
    """The changes of the innermost statement at a cursor, or of all statements in a selection."""
    outline = state.outline
    if outline is None:
        return []
    found = [
        (target, change) for span, change in outline.changes if (target := state.moved(span)) is not None
    ]
    source = state.paper.source
    line = source.line_of(span.start)
    if line != source.line_of(span.end):
        return [each for each in found if span.start <= each[0].start and each[0].end <= span.end]
    wanted = innermost(source, (target for target, _ in found), line + 1)
    return [each for each in found if each[0] == wanted]


def _lines(state: State, span: Span) -> Span:
    """The whole lines that a span touches, without the end of the last one."""
    source = state.paper.source
    return Span(source.line_start(span.start), source.line_end(span.end))


def _meets(one: Span, other: Span) -> bool:
    return one.start <= other.end and other.start <= one.end


# The contents behind a line of it


IN_A_PROGRAM = ("statement", "file")
"""The kinds of actions that depend on the other files of a document's program."""


async def carried_out(session: Session, program: OpenProgram, data: dict[str, Any]) -> types.WorkspaceEdit:
    """The edit of an action; raises NotPossible, or Outdated."""
    span = Span(*data["span"])
    if data["do"] in IN_A_PROGRAM:
        return await _converted(session, program, span if data["do"] == "statement" else None, data["round"])
    if data["do"] == "ignore":
        state = await session.known(program, lambda state: True)
        ignoring = _ignoring(program, state, _same(state.paper, state.report, data))
        return plain_edit([state.paper.home(ignoring)], session.client)
    if data["do"] == "fixAll":
        return await _all_fixed(session, program, data["code"])
    if data["do"] != "fix":
        raise ValueError(f"unknown action {data['do']!r}")
    # Immediate findings cover only the changed statements, and their fixes may be anywhere.
    by_itself = data["code"] not in _OWN
    state = await session.known(program, lambda state: state.is_full or by_itself)
    report = state.report if state.is_full else await session.alone(program, data["code"])
    diagnostic = _same(state.paper, report, data)
    if diagnostic.fix is None:
        raise NotPossible("there is no longer a fix for this")
    plan = merge([diagnostic.fix])
    if state.paper.cells is not None and state.paper.cells.spoilt(plan.edits):
        raise NotPossible(MAGIC_IN_THE_WAY)
    script = program.live.by_itself(state.paper.source)
    if script is not None:
        length = program.rules.settings.choices.line_length
        starts = state.paper.cells.starts if state.paper.cells is not None else ()
        plan = replace(plan, edits=laid_out(script, plan.edits, length, starts))
    return workspace_edit(plan, state.paper.home, session.client)


async def _all_fixed(session: Session, program: OpenProgram, code: str) -> types.WorkspaceEdit:
    """The edit of `trainshift check --fix`, or of the fixes for all findings of one `code`."""
    paper, settings = program.paper, program.rules.settings
    if code:
        settings, least = settings.overridden([code], ()), Severity.HINT
    else:
        least = Severity.WARNING
    after = await session.fixed(program, settings, least)
    edits = [each for part, text in zip(paper.parts, after, strict=True) for each in differences(part, text)]
    if not edits:
        raise NotPossible("there is nothing left to fix")
    return plain_edit(edits, session.client)


async def _converted(
    session: Session, program: OpenProgram, span: Span | None, number: object
) -> types.WorkspaceEdit:
    """The conversion of a program, or of one of its statements; Outdated after another `number` of
    changes.
    """
    await session.surveyed(program)
    state = await session.known(program, lambda state: state.has_outline, wants_outline=True)
    if program.round != number:
        raise Outdated
    conversion = conversion_of(state, [each for _, each in _chosen(state, span)] if span else None)
    if conversion.plan is None:
        raise NotPossible(session.places(state).reason(conversion))
    return session.edit(state, conversion.plan)


def _same(paper: Paper, report: CheckReport, data: dict[str, Any]) -> Diagnostic:
    """The finding that an action was for; if it has moved, the nearest of its code on the line."""
    start = int(data["span"][0])
    line = paper.source.line_of(start) + 1
    near = [each for each in report.diagnostics if each.code == data["code"] and each.region.line == line]
    if not near:
        raise NotPossible(f"there is no {data['code']} on this line any more")
    return min(near, key=lambda each: abs(place_of(paper, each).start - start))


def _ignoring(program: OpenProgram, state: State, diagnostic: Diagnostic) -> Edit:
    script = program.live.by_itself(state.paper.source)
    finding = Finding(diagnostic.code, diagnostic.verdict, place_of(state.paper, diagnostic), "")
    edit = silence(script, finding) if script is not None else None
    if edit is None:
        raise NotPossible("this line can't take a comment; use `# trainshift: ignore-file[...]`")
    return edit
