"""Other ways to write the same script: each mutation keeps the meaning and changes the text."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable

from trainshift.python.syntax.chunks import ParseFailure, parse


def renamed(text: str) -> str:
    """Rename every variable that the script binds by assignment."""
    tree = ast.parse(text)
    bound = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.For | ast.With)
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
        if target.id.strip("_") and not target.id.startswith("__")
    }
    declared = {alias.asname or alias.name for node in ast.walk(tree) for alias in getattr(node, "names", [])
                if isinstance(alias, ast.alias)}  # fmt: skip
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    keywords = {word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords}
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = bound - declared - attributes - keywords - parameters - {"hvd"}
    return _replace_names(text, {name: f"{name}_x" for name in names})


def respelled(text: str) -> str:
    """Import TensorFlow under another name."""
    return _replace_names(text, {"tf": "tensor_flow"})


def plain_import(text: str) -> str:
    """Replace ``import tensorflow as tf`` by ``import tensorflow``."""
    if not re.search(r"^import tensorflow as tf\b", text, re.M):
        return text
    return _replace_names(re.sub(r"^import tensorflow as tf\b", "import tensorflow", text, flags=re.M),
                          {"tf": "tensorflow"})  # fmt: skip


def commented(text: str) -> str:
    """Add a comment above every line that begins a statement, and one after it."""
    starts, ends = _logical_lines(text)
    lines = text.splitlines(keepends=True)
    out = []
    for number, line in enumerate(lines, 1):
        body = line.rstrip("\r\n")
        indent = body[: len(body) - len(body.lstrip())]
        newline = line[len(body) :] or "\n"
        if number in starts and body.strip():
            out.append(f"{indent}# above {number}{newline}")
        if number in ends and body.strip() and "#" not in body and not body.endswith("\\"):
            line = f"{body}  # behind {number}{line[len(body) :]}"
        out.append(line)
    return "".join(out)


def spread(text: str) -> str:
    """A blank line above every line that begins a statement."""
    starts, _ = _logical_lines(text)
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join((newline if number in starts else "") + line for number, line in enumerate(lines, 1))


def unparsed(text: str) -> str:
    """Use the layout of `ast.unparse`: one line for each statement, no comments."""
    return ast.unparse(ast.parse(text)) + "\n"


def crlf(text: str) -> str:
    """Windows line endings."""
    return re.sub(r"\r?\n", "\r\n", text)


def tabbed(text: str) -> str:
    """Replace four spaces of indentation by a tab, outside strings."""
    starts, _ = _logical_lines(text)
    lines = text.splitlines(keepends=True)
    for number in starts:
        body = lines[number - 1].lstrip(" ")
        blanks = len(lines[number - 1]) - len(body)
        if blanks % 4 == 0:
            lines[number - 1] = "\t" * (blanks // 4) + body
    mutated = "".join(lines)
    return text if isinstance(parse(mutated), ParseFailure) else mutated


def unended(text: str) -> str:
    """No newline at the end of the file."""
    return text.rstrip("\r\n")


def shifted(text: str) -> str:
    """Non-BMP characters in a comment and a form feed in front."""
    if text.startswith(('"""', "#!", "from __future__")):
        return text
    return "# 🚂🚃\n\f\n" + text


MUTATIONS: tuple[Callable[[str], str], ...] = (
    renamed, respelled, plain_import, commented, spread, unparsed, crlf, tabbed, unended, shifted,
)  # fmt: skip


def both(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    """Apply one mutation, then another."""

    def mutated(text: str) -> str:
        return second(first(text))

    mutated.__name__ = f"{first.__name__}, then {second.__name__}"
    return mutated


PAIRS = tuple(
    both(first, second)
    for first, second in (
        (renamed, crlf),
        (respelled, shifted),
        (plain_import, tabbed),
        (spread, unended),
        (unparsed, commented),
    )
)
"""Pairs of mutations, in which each mutation occurs once."""


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))


def _logical_lines(text: str) -> tuple[set[int], set[int]]:
    """1-based numbers of the lines that begin a logical line, and of those that end one."""
    starts, ends = set(), set()
    fresh = True
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in _tokens(text):
        if token.type == tokenize.NEWLINE:
            ends.add(token.start[0])
            fresh = True
        elif token.type not in skipped and fresh:
            starts.add(token.start[0])
            fresh = False
    return starts, ends


def _replace_names(text: str, names: dict[str, str]) -> str:
    """Rename identifiers, but not attributes and keyword arguments; f-strings are included."""
    lines = text.splitlines(keepends=True)
    edits = []
    before = ""
    for token in _tokens(text):
        if token.type == tokenize.NAME and token.string in names and before != ".":
            edits.append((token.start, token.end, names[token.string]))
        elif token.type == tokenize.STRING and "f" in token.string[:2].lower():
            pattern = (
                r"(?<![\w.'\"])(" + "|".join(map(re.escape, names)) + r")\b(?=[^{}]*\})" if names else "(?!)"
            )
            new = re.sub(pattern, lambda found: names[found.group(1)], token.string)
            if new != token.string and token.start[0] == token.end[0]:
                edits.append((token.start, token.end, new))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.string
    for (row, start), (_, end), new in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    return "".join(lines)
