"""Detect the style of a file: its quotes, and whether black or ruff has formatted it."""

from __future__ import annotations

import io
import re
import tokenize

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines

_UNUSUAL = re.compile(r",[^\s)\]}]|;$|[ \t]$", re.MULTILINE)
_QUOTE = re.compile(r"[^\"']*(\"|')(?!\1\1)")


class Style:
    """The style of one file, which inserted code follows."""

    def __init__(self, program: Program) -> None:
        self._source = program.script.source

    @cached_property
    def quote(self) -> str:
        """The quote of most strings in the file; the default quote of inserted code in case of a tie.

        A change may remove a string, so a single string decides nothing.
        """
        double = sum(each.startswith('"') for each in self._strings)
        return '"' if double > len(self._strings) - double else "'"

    def quoted(self, text: str) -> str:
        """A string in the style of the file; `text` contains no quotes."""
        return f"{self.quote}{text}{self.quote}"

    @cached_property
    def is_formatted(self) -> bool:
        """Return whether the file's quotes and spaces are those of black and ruff, as far as examined."""
        return self.quote == '"' and all(map(self._is_laid_out, logical_lines(self._source.text)))

    @cached_property
    def _strings(self) -> list[str]:
        """The file's one-line strings, each from its quote on."""
        found = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self._source.text, newline="").readline):
                is_string = token.type == tokenize.STRING or token.type == getattr(
                    tokenize, "FSTRING_START", -1
                )
                if is_string and (quoted := _QUOTE.match(token.string)):
                    found.append(token.string[quoted.start(1) :])
        except (tokenize.TokenError, SyntaxError):
            return []
        return found

    def _is_laid_out(self, line: LogicalLine) -> bool:
        """Return whether a line has the spaces that formatters write.

        Line breaks do not count, because a change may break it differently.
        """
        code, indent = self._source.text[line.start : line.end], self._source.indentation(line.start)
        if not set(indent) <= {" "} or len(indent) % 4:
            return False
        return _UNUSUAL.search(code) is None
