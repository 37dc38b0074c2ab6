"""Protocol: pygls' handling of messages, made robust against any input from a client.

pygls keeps documents of its own, whose lines differ from the protocol's if a text contains a form feed or
U+2028; ours are used instead.  A malformed request gets an answer, and so does a repeated one; no message
from a client ends the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

log = logging.getLogger(__name__)

_TAKEN_DOWN = ("/didOpen", "/didChange", "/didClose", "/didChangeWorkspaceFolders")


class ServerCancelled(JsonRpcException):
    """The error that a newer version has overtaken the answer; the client may ask again."""

    CODE = -32802
    MESSAGE = "Server Cancelled"


class Protocol(LanguageServerProtocol):
    """The protocol without documents; the server's own handlers keep them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._converter.register_structure_hook(str, _text)
        self._converter.register_structure_hook(int, _number)
        self.initialize: Callable[[dict[str, Any]], dict[str, Any]] = lambda params: {}
        """Answers `initialize`, from and in plain JSON."""

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: Any) -> Any:
        """Answer `initialize`."""
        if self.is_initialized:
            raise JsonRpcException("the server is initialized already", -32600)
        self.is_initialized = True
        return self.initialize(params)

    is_initialized = False

    def _own(self, method: str, params: Any) -> None:
        handler = self.fm.features.get(method)
        if handler is not None:
            handler(params)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *params: Any) -> Any:
        """Abort the current work, and start nothing more."""
        self._own(types.SHUTDOWN, None)
        self._shutdown = True
        for future in list(self._request_futures.values()):
            future.cancel()

    # Messages

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Convert a message to an object; return None for a malformed one, which is answered here."""
        if "jsonrpc" not in data:
            return data
        if "method" in data:  # For pygls, only its own messages may lack parameters.
            data = {"params": None, **data}
        if data.get("method") == types.INITIALIZE and "id" in data:
            # Its capabilities are read as plain JSON: no client is refused because of an unknown one.
            return _Initialize(data["id"], data.get("params") or {})
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" not in data:
                self._forget_request(data)
            elif "id" in data:
                invalid = JsonRpcInvalidParams(message=f"{data['method']}: the parameters cannot be read")
                self._send_response(data["id"], None, invalid.to_response_error())
            log.warning("a message that cannot be read was ignored: %s (%s)", data.get("method"), error)
            return None

    def _forget_request(self, data: dict[str, Any]) -> None:
        """Fail a request of ours that got a malformed answer."""
        identity = data.get("id")
        future = self._request_futures.pop(identity, None) if isinstance(identity, (str, int)) else None
        if future is not None and not future.done():
            future.set_exception(JsonRpcInternalError(message="the answer cannot be read"))

    def handle_message(self, message: Any) -> None:
        """Handle one message; ignores malformed ones, and those before `initialize`."""
        if message is None or not hasattr(message, "jsonrpc"):
            return
        method = getattr(message, "method", None)
        if method is not None and not self.is_initialized and method not in (types.INITIALIZE, types.EXIT):
            identity = getattr(message, "id", None)
            if identity is not None:
                error = JsonRpcException("the server is not initialized", -32002)
                self._send_response(identity, None, error.to_response_error())
            return
        if self._shutdown and method is not None and getattr(message, "id", None) is not None:
            error = JsonRpcException("the server was shut down", -32600)
            self._send_response(message.id, None, error.to_response_error())
            return
        if isinstance(message, _Initialize):
            try:
                self._send_response(message.id, self.lsp_initialize(message.params))
            except JsonRpcException as refusal:
                self._send_response(message.id, None, refusal.to_response_error())
            return
        super().handle_message(message)

    def _handle_notification(self, method_name: str, params: Any) -> None:
        """Pass a notification to the server, without pygls' own documents and folders."""
        if method_name.endswith(_TAKEN_DOWN):
            self._own(method_name, params)
        else:
            super()._handle_notification(method_name, params)

    def receive(self, data: Any) -> None:
        """Handle one plain JSON message; nothing is raised but SystemExit."""
        if not isinstance(data, dict) or not isinstance(data.get("id", 0), (int, str)):
            return  # A request without an answer gets none.
        try:
            edit = _edit(data) if self.is_initialized and not self._shutdown else None
            if edit is not None:
                self._own(types.TEXT_DOCUMENT_DID_CHANGE, edit)
            else:
                self.handle_message(self.structure_message(data))
        except Exception:
            log.exception("a message could not be handled")

    def write(self, message: bytes) -> None:
        """Send an encoded message."""
        if self.writer is not None:
            self.writer.write(message)

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        """Answer a request; an intended refusal is not logged as an error."""
        if not future.cancelled():
            error = future.exception()
            if isinstance(error, JsonRpcException):
                self._request_futures.pop(msg_id, None)
                self._send_response(msg_id, error=error.to_response_error())
                return
        super()._send_handler_result(future, msg_id=msg_id)


def _edit(data: dict[str, Any]) -> types.DidChangeTextDocumentParams | None:
    """The parameters of a message that edits spans of a document; None for any other message.

    One arrives with every keystroke, and the general decoding takes nine times as long.
    """
    if data.get("method") != types.TEXT_DOCUMENT_DID_CHANGE or data.get("jsonrpc") != "2.0" or "id" in data:
        return None
    try:
        document, changes = data["params"]["textDocument"], data["params"]["contentChanges"]
        named = types.VersionedTextDocumentIdentifier(document["version"], document["uri"])
        return types.DidChangeTextDocumentParams(named, [_stretch(change) for change in changes])
    except (KeyError, TypeError, ValueError):
        return None


def _stretch(change: dict[str, Any]) -> types.TextDocumentContentChangePartial:
    """Read an edited span; raises KeyError, TypeError or ValueError if it is malformed."""
    where, text = change["range"], change["text"]
    start, end = (types.Position(where[at]["line"], where[at]["character"]) for at in ("start", "end"))
    return types.TextDocumentContentChangePartial(types.Range(start, end), text)


def _text(value: Any, kind: type[str]) -> str:
    """Return a text unchanged; anything else is an error, so that no document becomes `None`."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return kind(value)


def _number(value: Any, kind: type[int]) -> int:
    """A whole number, or a Boolean, unchanged."""
    is_number = isinstance(value, (int, float)) and value == int(value)
    if not is_number or isinstance(value, bool) != (kind is bool):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return kind(value)


class _Initialize:
    """The request `initialize`, with its raw parameters."""

    jsonrpc = "2.0"
    method = types.INITIALIZE

    def __init__(self, identity: Any, params: Any) -> None:
        self.id = identity
        self.params = params if isinstance(params, dict) else {}


class Endpoint(LanguageServer):
    """pygls' server, but with errors in the log instead of pop-up messages."""

    protocol: Protocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error; an error of the client only as a note."""
        if isinstance(error, JsonRpcException) and error.code != JsonRpcInternalError.CODE:
            log.info("%s", error)
        else:
            log.error("%s", error, exc_info=error if not isinstance(error, JsonRpcException) else None)


def plain_json(value: Any) -> Any:
    """Convert an object created by pygls back to plain JSON."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: plain_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(each) for each in value]
    return value
