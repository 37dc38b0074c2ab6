"""Answers: what the client asks about a place, and the commands that it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from trainshift.core.source import Span
from trainshift.lsp.desk import Outdated, Program, State
from trainshift.lsp.diagnostics import SOURCE
from trainshift.lsp.protocol import plain_json

if TYPE_CHECKING:
    from trainshift.lsp.server import Server

_CHANGED = "the document has changed meanwhile"


class Answers:
    """What a server answers; what that needs is loaded when it is first asked."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        """The menu of a place."""
        from trainshift.lsp.actions import Wanted, menu

        program = self._server.program_of(params.text_document.uri)
        if program is None:
            return None
        # What a menu says may be of the version before; the edits behind it are not.
        state = await self._or_modified(program, lambda state: state.outline is not None)
        part = state.paper.part_of(params.text_document.uri)
        if part is None or not program.rules.enable:
            return None
        start, end = params.range.start, params.range.end
        first, last = part.offset((start.line, start.character)), part.offset((end.line, end.character))
        only = tuple(params.context.only) if params.context.only is not None else None
        is_hinted = any(
            each.source == SOURCE and str(each.code).startswith("HV") for each in params.context.diagnostics
        )
        wanted = Wanted(part, Span(min(first, last), max(first, last)), only, is_hinted)
        actions = menu(state, wanted, self._server.client)
        if not self._server.client.resolves_edits:
            return [each for each in actions if await self._fill(program, each)]
        return actions

    async def _fill(self, program: Program, action: types.CodeAction) -> bool:
        """Give an action its edit; False where it has none after all."""
        from trainshift.lsp.actions import NotPossible

        if action.data is not None:
            try:
                action.edit = await self._edit(program, dict(action.data))
            except (NotPossible, Outdated):
                return False
            action.data = None
        return True

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """The edit of an action."""
        from trainshift.lsp.actions import NotPossible

        data = plain_json(action.data)
        if action.edit is not None or data is None:
            return action
        if not isinstance(data, dict) or not {"do", "uri", "version", "span", "code"} <= data.keys():
            raise JsonRpcInvalidParams(message="this action is not one of this server's")
        program = self._server.program_of(str(data["uri"]))
        part = program.paper.part_of(str(data["uri"])) if program is not None else None
        if program is None or part is None or program.paper.version != data["version"]:
            raise JsonRpcContentModified(message="the document has changed since; ask for the actions again")
        try:
            action.edit = await self._edit(program, data)
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None
        except NotPossible as reason:
            raise JsonRpcException(f"{action.title}: {reason}", -32803) from None
        except (TypeError, ValueError) as error:
            raise JsonRpcInvalidParams(message=f"this action cannot be read: {error}") from None
        return action

    async def _edit(self, program: Program, data: dict[str, Any]) -> types.WorkspaceEdit:
        """The edit behind what an action says of itself; raises NotPossible, or Outdated."""
        from trainshift.lsp.actions import carried_out

        return await carried_out(program, data, self._server.client, self._server.known, self._server.alone)

    async def _or_modified(self, program: Program, is_enough: Callable[[State], bool]) -> State:
        try:
            return await self._server.known(program, is_enough)
        except Outdated:
            raise JsonRpcContentModified(message=_CHANGED) from None

    async def convert(self, *arguments: Any) -> dict[str, Any]:
        """The command that converts a whole file: one argument, its URI or an object that holds it."""
        from trainshift.lsp.actions import NotPossible, converted
        from trainshift.lsp.edits import workspace_edit

        given = plain_json(arguments[0]) if arguments else None
        uri = given.get("uri") if isinstance(given, dict) else given
        program = self._server.program_of(uri) if isinstance(uri, str) else None
        if program is None:
            raise JsonRpcInvalidParams(message=f"{uri} is no open Python document")
        try:
            state = await self._server.known(program, lambda state: state.has_outline, wants_outline=True)
            conversion = converted(state)
        except (NotPossible, Outdated) as error:
            return self._not_converted(str(error) or _CHANGED)
        if not self._server.client.applies_edits:
            return self._not_converted("the editor applies no edits of a command")
        assert conversion.plan is not None
        edit = workspace_edit(state.paper, conversion.plan, self._server.client)
        answer = await self._server.endpoint.workspace_apply_edit_async(
            types.ApplyWorkspaceEditParams(edit=edit, label="Make distributed")
        )
        reason = "" if answer.applied else answer.failure_reason or "the editor did not apply the edit"
        notes = {
            name: [{"rule": each.rule, "line": each.line, "text": each.text} for each in listed]
            for name, listed in (
                ("changes", conversion.applied),
                ("decisions", conversion.decisions),
                ("doubts", conversion.doubts),
                ("withheld", conversion.withheld),
            )
        }
        if answer.applied and conversion.withheld:
            first = conversion.withheld[0]
            more = f" (and {len(conversion.withheld) - 1} more)" if len(conversion.withheld) > 1 else ""
            self._say(
                types.MessageType.Info,
                f"Made distributed, but for {first.rule} at line {first.line}: {first.text}{more}",
            )
        return {**notes, "applied": answer.applied, "reason": reason}

    def _not_converted(self, reason: str) -> dict[str, Any]:
        """Tell the user why nothing was converted, and the client."""
        self._say(types.MessageType.Warning, f"Not made distributed: {reason}")
        return {"applied": False, "reason": reason}

    async def explain(self, *arguments: Any) -> None:
        """The command that shows the page of a code."""
        from trainshift.lsp.hovers import explanation
        from trainshift.pages import page_url

        code = str(arguments[0]) if arguments else ""
        url = page_url(code)
        if url and self._server.client.shows_documents:
            await self._server.endpoint.window_show_document_async(
                types.ShowDocumentParams(uri=url, external=False, take_focus=True)
            )
            return
        try:
            self._say(types.MessageType.Info, explanation(code))
        except KeyError:
            raise JsonRpcInvalidParams(message=f"{code!r} is no code") from None

    def _say(self, kind: types.MessageType, text: str) -> None:
        self._server.endpoint.window_show_message(types.ShowMessageParams(kind, f"Trainshift: {text}"))

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """The lenses of a document."""
        from trainshift.lsp.lenses import lenses

        program = self._server.program_of(params.text_document.uri)
        if program is None or not program.rules.code_lens or not program.rules.enable:
            return []
        state = await self._or_modified(program, lambda state: state.outline is not None)
        return list(lenses(state, params.text_document.uri))

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """What there is to say of a place."""
        from trainshift.lsp.hovers import hover

        program = self._server.program_of(params.text_document.uri)
        if program is None or not program.rules.enable:
            return None
        place = params.position.line, params.position.character
        found = None
        # What a name of Horovod's is for is known last.
        for is_enough in (lambda state: True, lambda state: state.is_settled):
            state = await self._or_modified(program, is_enough)
            part = state.paper.part_of(params.text_document.uri)
            found = found or (hover(state, part, part.offset(place)) if part is not None else None)
            if found is not None or state.is_settled:
                break
        return found
