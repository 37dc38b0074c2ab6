"""Answers to the client's requests about places, and its commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from trainshift.lsp.diagnostics import SOURCE, place_of
from trainshift.lsp.scheduler import OpenProgram, Outdated, State
from trainshift.lsp.session import Session
from trainshift.lsp.transport.protocol import plain_json
from trainshift.lsp.transport.uris import path_of
from trainshift.python.source.source import Span
from trainshift.static_graphs.codes import has_signs

if TYPE_CHECKING:
    from trainshift.lsp.answers.derivatives import Derivatives
    from trainshift.lsp.answers.scripts import Scripts
    from trainshift.lsp.answers.statics import Statics
    from trainshift.lsp.transport.told import Outline

_ACTIONS = {"do", "uri", "version", "round", "span", "code"}
_SINCE = "the document or a file of its program has changed; ask for the actions again"
_NO_EDITS = "the editor does not support edits by a command"
_CHANGED = "the document or a file of its program has changed meanwhile"


class Answers:
    """The answers to a client; modules are imported when first needed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._scripts: Scripts | None = None
        self._known_derivatives: Derivatives | None = None
        self._known_statics: Statics | None = None
        self._searching = asyncio.Lock()

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        """The actions at a place."""
        from trainshift.lsp.answers.actions import Wanted, menu

        program = self._session.program_of(params.text_document.uri)
        if program is None:
            return None
        state = await self._in_its_program(program)
        part = state.paper.part_of(params.text_document.uri)
        if part is None or not program.rules.enable:
            return None
        start, end = params.range.start, params.range.end
        first, last = part.offset((start.line, start.character)), part.offset((end.line, end.character))
        only = tuple(params.context.only) if params.context.only is not None else None
        is_hinted = any(
            each.source == SOURCE and str(each.code).startswith("HV") for each in params.context.diagnostics
        )
        span = Span(min(first, last), max(first, last))
        wanted = Wanted(part, span, program.round, only, is_hinted)
        actions = menu(state, wanted, self._session.client)
        actions += await self._derivatives.offered(program, state.paper, wanted, is_alone=not actions)
        if has_signs(state.paper.text):
            actions += await self._statics.offered(program, state.paper, wanted)
        if not self._session.client.resolves_edits:
            return [each for each in actions if await self._fill(program, each)]
        return actions

    @property
    def _derivatives(self) -> Derivatives:
        """The derivatives of functions."""
        from trainshift.lsp.answers.derivatives import Derivatives

        self._known_derivatives = self._known_derivatives or Derivatives(self._session)
        return self._known_derivatives

    @property
    def _statics(self) -> Statics:
        """The static graphs of functions."""
        from trainshift.lsp.answers.statics import Statics

        self._known_statics = self._known_statics or Statics(self._session)
        return self._known_statics

    async def _fill(self, program: OpenProgram, action: types.CodeAction) -> bool:
        """Fill in the edit of an action; return False if it has none after all."""
        from trainshift.lsp.answers.actions import NotPossible

        if action.data is not None:
            try:
                action.edit = await self._edit(program, dict(action.data))
            except (NotPossible, Outdated):
                return False
            action.data = None
        return True

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """The edit of an action."""
        from trainshift.lsp.answers.actions import IN_A_PROGRAM, NotPossible

        data = plain_json(action.data)
        if action.edit is not None or data is None:
            return action
        if not isinstance(data, dict) or not data.keys() >= _ACTIONS:
            raise JsonRpcInvalidParams(message="this action is not one of this server's")
        program = self._session.program_of(str(data["uri"]))
        part = program.paper.part_of(str(data["uri"])) if program is not None else None
        if program is None or part is None or program.paper.version != data["version"]:
            raise JsonRpcContentModified(message=_SINCE)
        if data["do"] in IN_A_PROGRAM and program.round != data["round"]:
            raise JsonRpcContentModified(message=_SINCE)
        try:
            action.edit = await self._edit(program, data)
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None
        except NotPossible as reason:
            raise JsonRpcException(f"{action.title}: {reason}", -32803) from None
        except (TypeError, ValueError) as error:
            raise JsonRpcInvalidParams(message=f"this action cannot be read: {error}") from None
        return action

    async def _edit(self, program: OpenProgram, data: dict[str, Any]) -> types.WorkspaceEdit:
        """The edit of an action, from its data; raises NotPossible, or Outdated."""
        from trainshift.lsp.answers.actions import STATIC, carried_out
        from trainshift.lsp.answers.derivatives import DO

        if data["do"] == DO:
            return await self._derivatives.edit(program, data)
        if data["do"] == STATIC:
            return await self._statics.edit(program, data)
        return await carried_out(self._session, program, data)

    async def _in_its_program(self, program: OpenProgram) -> State:
        """A state with an outline, which may belong to the previous version, from its programs."""
        if program.surveyed < 0:
            # A document's own diagnostics come first, regardless of the number of files around it.
            await self._or_modified(program, lambda state: state.is_full)
            await self._surveyed(program)
        return await self._or_modified(
            program, lambda state: state.outline is not None and state.outline.starts == program.starts
        )

    async def _surveyed(self, program: OpenProgram) -> None:
        try:
            await self._session.surveyed(program)
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None

    async def _or_modified(self, program: OpenProgram, is_enough: Callable[[State], bool]) -> State:
        try:
            return await self._session.known(program, is_enough)
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None

    async def convert(self, *arguments: Any) -> dict[str, Any]:
        """Run the command that converts a whole file: one argument, its URI or an object with it.

        With `apply` false, the answer is only the edit, and the user sees no message; with `ignoreVersions`
        true, the file is converted regardless of the versions that its project requires.  `leaveOut` are
        optional changes, in the form of an earlier answer.
        """
        from trainshift.lsp.answers.summary import account, conversion_of, title_of, unaccounted
        from trainshift.lsp.snapshot import refused

        given = plain_json(arguments[0]) if arguments else None
        given = given if isinstance(given, dict) else {"uri": given}
        uri, applies, ignores = given.get("uri"), given.get("apply", True), given.get("ignoreVersions", False)
        program = self._session.program_of(uri) if isinstance(uri, str) else None
        if program is None:
            raise JsonRpcInvalidParams(message=f"{uri} is not an open Python document")
        for name, value in (("apply", applies), ("ignoreVersions", ignores)):
            if not isinstance(value, bool):
                raise JsonRpcInvalidParams(message=f"`{name}` is {value!r}, neither true nor false")
        left_out = self._left_out(given)
        edit, title, files = None, "", 0
        try:
            await self._session.surveyed(program)
            state = await self._session.known(program, lambda state: state.has_outline, wants_outline=True)
            places, title = self._session.places(state), title_of(state)
            conversion = conversion_of(state, ignores_versions=ignores)
            left = [each for each in conversion.applied if each.optional and places.told(each) in left_out]
            if left:
                conversion = conversion_of(state, without=left, ignores_versions=ignores)
            told = account(places, conversion)
            if conversion.plan is not None:
                edit = self._session.edit(state, conversion.plan)
                files = sum(1 for each in conversion.files if each.edits)
        except Outdated:
            told = unaccounted(refused(program.paper.source, _CHANGED))
        told.update(program=title, files=files)
        if not applies:
            return {**told, "edit": edit}
        if edit is None or not self._session.client.applies_edits:
            reason = told["reason"] or _NO_EDITS
            self._say(types.MessageType.Warning, f"Not made distributed: {reason}")
            return {**told, "reason": reason}
        problem = await self._apply(edit, "Make distributed")
        if problem:
            return {**told, "reason": problem}
        if told["withheld"]:
            first, *others = told["withheld"]
            more = f" (and {len(others)} more)" if others else ""
            where = f"{first['rule']} at line {first['line']}"
            self._say(types.MessageType.Info, f"Made distributed, except {where}: {first['text']}{more}")
        return {**told, "applied": True}

    def _left_out(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        """The changes to leave out of a conversion, as notes on the document before it."""
        from trainshift.lsp.answers.summary import NEW_LINE

        left_out = given.get("leaveOut", [])
        if not isinstance(left_out, list):
            raise JsonRpcInvalidParams(message="`leaveOut` has to be a list of optional changes")
        notes = [each for each in left_out if isinstance(each, dict)]
        return [{key: value for key, value in each.items() if key != NEW_LINE} for each in notes]

    async def differentiate(self, *arguments: Any) -> dict[str, Any]:
        """The command that differentiates a function: an object with its `uri`, and `function` or `position`.

        `mode`, `wrt` and `name` are those of `trainshift differentiate`.  With `apply` false, the answer is
        only the edit, and the user sees no message.
        """
        from trainshift.lsp.answers.derivatives import NOTHING

        given = plain_json(arguments[0]) if arguments else None
        given = given if isinstance(given, dict) else {}
        uri = given.get("uri")
        program = self._session.program_of(uri) if isinstance(uri, str) else None
        part = program.paper.part_of(uri) if program is not None and isinstance(uri, str) else None
        if program is None or part is None:
            raise JsonRpcInvalidParams(message=f"{uri} is not an open Python document")
        try:
            told = await self._derivatives.command(program, part, given)
        except Outdated:
            told = {**NOTHING, "reason": _CHANGED}
        except (TypeError, ValueError, KeyError) as error:
            raise JsonRpcInvalidParams(message=f"this cannot be differentiated: {error}") from None
        return await self._carried_out(told, given, "Differentiate", "differentiated")

    async def expand_static(self, *arguments: Any) -> dict[str, Any]:
        """The command that expands static functions: an object with its `uri`, and `function` or `position`.

        Without both, all functions are expanded.  With `apply` false, the answer is only the edit, and the
        user sees no message.
        """
        return await self._of_static("expand", "Expand", "expanded", *arguments)

    async def make_static(self, *arguments: Any) -> dict[str, Any]:
        """Run the command that makes a function static, with the same arguments as `expand_static`."""
        return await self._of_static("make", "Make static", "made static", *arguments)

    async def _of_static(self, what: str, label: str, done: str, *arguments: Any) -> dict[str, Any]:
        from trainshift.lsp.answers.statics import NOTHING

        given = plain_json(arguments[0]) if arguments else None
        given = given if isinstance(given, dict) else {"uri": given}
        uri = given.get("uri")
        program = self._session.program_of(uri) if isinstance(uri, str) else None
        if program is None or not isinstance(uri, str):
            raise JsonRpcInvalidParams(message=f"{uri} is not an open Python document")
        part = program.paper.part_of(uri) or program.paper.part_at(0)
        try:
            told = await self._statics.command(program, part, what, given)
        except Outdated:
            told = {**NOTHING, "reason": _CHANGED}
        except (TypeError, ValueError, KeyError) as error:
            raise JsonRpcInvalidParams(message=f"this cannot be {done}: {error}") from None
        return await self._carried_out(told, given, label, done)

    async def _carried_out(
        self, told: dict[str, Any], given: dict[str, Any], label: str, done: str
    ) -> dict[str, Any]:
        """The answer to a command after applying its edit, or the edit itself if `apply` is false."""
        if given.get("apply", True) is False:
            return told
        edit = told["edit"]
        if edit is None or not self._session.client.applies_edits:
            reason = told["reason"] or _NO_EDITS
            self._say(types.MessageType.Warning, f"Not {done}: {reason}")
            return {**told, "edit": None, "reason": reason}
        problem = await self._apply(edit, label)
        return {**told, "edit": None, "applied": not problem, "reason": problem}

    async def hints(self, params: types.InlayHintParams) -> list[types.InlayHint] | None:
        """The graph operations of the `if`s and loops in static functions, at the ends of their headers."""
        program = self._session.program_of(params.text_document.uri)
        if program is None or not has_signs(program.paper.text):
            return None
        # While the user types, nothing is read for this.
        state = await self._or_modified(program, lambda state: state.is_full)
        part = state.paper.part_of(params.text_document.uri)
        if part is None or not program.rules.enable or not program.rules.static_hints:
            return None
        first, last = (
            part.offset((each.line, each.character)) for each in (params.range.start, params.range.end)
        )
        try:
            return await self._statics.hints(program, part, Span(first, last))
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None

    async def _apply(self, edit: types.WorkspaceEdit, label: str) -> str:
        """Ask the editor to apply an edit; returns the reason if it did not, or nothing."""
        params = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        answer = await self._session.endpoint.workspace_apply_edit_async(params)
        return "" if answer.applied else answer.failure_reason or "the editor did not apply the edit"

    async def explain(self, *arguments: Any) -> None:
        """Run the command that shows the page of a code, which may be in lower case."""
        from trainshift.engine.registry import BY_CODE
        from trainshift.lsp.answers.hovers import explanation
        from trainshift.pages import page_url

        given = arguments[0] if arguments else None
        code = str(given).upper()
        if code not in BY_CODE:
            raise JsonRpcInvalidParams(message=f"{given!r} is not a code")
        url = page_url(code)
        if url and self._session.client.shows_documents:
            await self._session.endpoint.window_show_document_async(
                types.ShowDocumentParams(uri=url, external=False, take_focus=True)
            )
        else:
            self._say(types.MessageType.Info, explanation(code))

    async def show_warnings(self, *arguments: Any) -> None:
        """Run the command that shows the first warning of a document, by its URI; editors may list
        them all.
        """
        from trainshift.lsp.answers.summary import warnings

        uri = arguments[0] if arguments else None
        program = self._session.program_of(uri) if isinstance(uri, str) else None
        if program is None:
            raise JsonRpcInvalidParams(message=f"{uri} is not an open Python document")
        state = await self._or_modified(program, lambda state: state.is_full)
        places = [place_of(state.paper, each) for each in warnings(state)]
        if places:
            part = state.paper.part_at(places[0].start)
            (line, _), _ = part.places(places[0])
            await self.open(part.uri, line + 1)

    async def open(self, *arguments: Any) -> None:
        """Run the command that shows a line of a file: its URI, and the line's number from 1."""
        match [plain_json(each) for each in arguments]:
            case [str(uri), int(line)] if line > 0:
                place = types.Position(line - 1, 0)
            case _:
                raise JsonRpcInvalidParams(message="a URI and the number of a line are needed")
        if self._session.client.shows_documents:
            where = types.Range(place, place)
            await self._session.endpoint.window_show_document_async(
                types.ShowDocumentParams(uri=uri, external=False, take_focus=True, selection=where)
            )
        else:
            self._say(types.MessageType.Info, f"{path_of(uri)}, line {line}")

    def _say(self, kind: types.MessageType, text: str) -> None:
        self._session.endpoint.window_show_message(types.ShowMessageParams(kind, f"Trainshift: {text}"))

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """The lenses of a document."""
        from trainshift.lsp.answers.lenses import lenses

        program = self._session.program_of(params.text_document.uri)
        if program is None or not program.rules.code_lens or not program.rules.enable:
            return []
        state = await self._in_its_program(program)
        return list(lenses(state, params.text_document.uri))

    async def outline(self, params: Any) -> Outline | None:
        """Answer the request for the summary of a program as a whole."""
        from trainshift.lsp.answers.summary import summary

        await self._session.has_settings()
        match plain_json(params):
            case {"textDocument": {"uri": str(uri)}}:
                program = self._session.program_of(uri)
            case _:
                raise JsonRpcInvalidParams(message="a textDocument with its uri is needed")
        if program is None or not program.rules.enable:
            return None
        await self._surveyed(program)
        state = await self._or_modified(program, lambda state: state.is_settled)
        try:
            return summary(state, uri, self._session.places(state))
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None

    async def scripts(self, params: Any) -> list[str]:
        """Answer the request for the workspace's files that use TensorFlow; parameters are ignored."""
        from trainshift.lsp.answers.scripts import Scripts

        self._scripts = self._scripts or Scripts()
        async with self._searching:
            return await asyncio.to_thread(
                self._scripts.using_tensorflow, list(self._session.project.folders)
            )

    def rules(self, params: Any) -> list[dict[str, str]]:
        """Answer the request for everything with a code; parameters are ignored."""
        from trainshift.lsp.answers.codes import listed

        return listed()

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """The hover at a place."""
        from trainshift.lsp.answers.hovers import hover

        program = self._session.program_of(params.text_document.uri)
        if program is None or not program.rules.enable:
            return None
        place = params.position.line, params.position.character
        made = await self._of_made(program, params.text_document.uri, place)
        if made is not None:
            return made
        told = await self._of_static_word(program, params.text_document.uri, place)
        found = None
        # The purpose of a Horovod name is determined last.
        for is_enough in (lambda state: True, lambda state: state.is_settled):
            state = await self._or_modified(program, is_enough)
            part = state.paper.part_of(params.text_document.uri)
            found = found or (
                hover(
                    state,
                    part,
                    part.offset(place),
                    program.rules.settings.docs_url,
                    with_hints=program.rules.hints,
                )
                if part is not None
                else None
            )
            if found is not None or state.is_settled or told:
                break
        if not told:
            return found
        texts = [told]
        if found is not None and isinstance(found.contents, types.MarkupContent):
            texts.append(found.contents.value)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(texts)))

    async def _of_made(self, program: OpenProgram, uri: str, place: tuple[int, int]) -> types.Hover | None:
        """The hover for the comment of a made function at a place."""
        part = program.paper.part_of(uri)
        if part is None:
            return None
        try:
            text = await self._derivatives.hover(program, program.paper, part.offset(place))
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content) if text else None

    async def _of_static_word(self, program: OpenProgram, uri: str, place: tuple[int, int]) -> str:
        """The hover for a word of a static function at a place."""
        part = program.paper.part_of(uri)
        if part is None or not has_signs(program.paper.text):
            return ""
        try:
            return await self._statics.hover(program, program.paper, part.offset(place))
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None
