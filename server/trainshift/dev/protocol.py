"""Write `protocol.ts`, the server's protocol for the VS Code extension, from the server's definitions.

Run by `make docs`; a test reports when it is stale.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from trainshift.engine.own_codes import UNSUPPORTED_VERSION
from trainshift.lsp.answers.lenses import NOT_DISTRIBUTABLE
from trainshift.lsp.transport import capabilities, told
from trainshift.python.flow.traversal import reachable

PROTOCOL = Path(__file__).parents[3] / "vscode-extension" / "src" / "protocol.ts"
_HEAD = """\
/**
 * The answers of the server beyond the protocol; `server/docs/editors.md` of the project describes them.
 *
 * Written by `make docs` from the server's definitions (`trainshift/lsp/transport/told.py`): do not edit.
 */

import { Range, RequestType, WorkspaceEdit } from "vscode-languageclient/node";
"""
_CONSTANTS = (
    ("The kind of the action that converts a statement.", "STATEMENT_KIND", capabilities.CONVERT_STATEMENT),
    ("The command that converts a file.", "MAKE_DISTRIBUTED", capabilities.CONVERT),
    ("The command that differentiates a function.", "DIFFERENTIATE", capabilities.DIFFERENTIATE),
    ("The command that expands static functions.", "EXPAND_STATIC", capabilities.EXPAND_STATIC),
    ("The command that makes a function static.", "MAKE_STATIC", capabilities.MAKE),
    ("The command that shows the page of a code.", "EXPLAIN", capabilities.EXPLAIN),
    ("The command that shows a line, counted from 1, of a URI.", "OPEN_LINE", capabilities.OPEN),
    ("The command that shows the warnings of a document.", "SHOW_WARNINGS", capabilities.WARNINGS),
    (
        "The end of the line above a loop that no rank but one can train.",
        "NOT_DISTRIBUTABLE",
        NOT_DISTRIBUTABLE,
    ),
    (
        "The code of a version that Horovod does not work with.",
        "UNSUPPORTED_VERSION",
        UNSUPPORTED_VERSION.code,
    ),
)
_REQUESTS = (
    ("", "OutlineRequest", "{ textDocument: { uri: string } }", "Outline | null", capabilities.OUTLINE),
    (
        "The URIs of the Python files in the workspace's folders that use TensorFlow.",
        "ScriptsRequest",
        "object",
        "string[]",
        capabilities.SCRIPTS,
    ),
    ("", "RulesRequest", "object", "Rule[]", capabilities.RULES),
)
_PLAIN = {str: "string", int: "number", bool: "boolean"}


def protocol() -> str:
    """Return the text of `protocol.ts`."""
    return "\n".join([_HEAD, *_constants(), "", *_types(), *_requests()]) + "\n"


def _constants() -> Iterator[str]:
    for says, name, value in _CONSTANTS:
        yield f"/** {says} */"
        yield f'export const {name} = "{value}";'


def _requests() -> Iterator[str]:
    for says, name, given, answer, method in _REQUESTS:
        if says:
            yield f"/** {says} */"
        line = f'export const {name} = new RequestType<{given}, {answer}, void>("{method}");'
        if len(line) > 110:
            line = f'export const {name} = new RequestType<{given}, {answer}, void>(\n  "{method}",\n);'
        yield line


def _types() -> Iterator[str]:
    for each in told.ANSWERS:
        yield from _comment(inspect.getdoc(each) or "", "")
        above = next((base for base in _bases(each) if base in told.ANSWERS), None)
        extends = f" extends {above.__name__}" if above is not None else ""
        yield f"export interface {each.__name__}{extends} {{"
        says, required = _fields(each), each.__dict__["__required_keys__"]
        inherited = get_type_hints(above) if above is not None else {}
        for name, hint in get_type_hints(each).items():
            if name in inherited:
                continue
            yield from _comment(says.get(name, ""), "  ")
            yield f"  readonly {name}{'' if name in required else '?'}: {_typed(hint)};"
        yield "}"
        yield ""


def _comment(text: str, indent: str) -> Iterator[str]:
    line = f"{indent}/** {text} */"
    if text and len(line) <= 110:
        yield line
    elif text:
        yield f"{indent}/**"
        yield from textwrap.wrap(text, 108, initial_indent=f"{indent} * ", subsequent_indent=f"{indent} * ")
        yield f"{indent} */"


def _own_bases(kind: type) -> list[type]:
    """The direct bases of a type, which a `TypedDict` does not record."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)
    names = (base.id for base in node.bases if isinstance(base, ast.Name))
    return [getattr(told, name) for name in names if name != "TypedDict"]


def _bases(kind: type) -> Iterator[type]:
    """Yield all direct and indirect bases of a type, nearest first."""
    return reachable(_own_bases(kind), _own_bases)


def _fields(kind: type) -> dict[str, str]:
    """The text below each field of a type, including inherited fields."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)
    found: dict[str, str] = {}
    for base in _own_bases(kind):
        found |= _fields(base)
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


def _typed(hint: Any) -> str:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is list:
        (inside,) = get_args(hint)
        return f"readonly {_typed(inside)}[]"
    if isinstance(hint, UnionType) or get_origin(hint) is not None:
        return " | ".join("null" if each is NoneType else _typed(each) for each in get_args(hint))
    return str(hint.__name__)
