"""Detect the style of a file: its quotes, and whether black or ruff has formatted it."""

from __future__ import annotations

import re
from collections import Counter

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines
from trainshift.python.source.comments import quotes_in
from trainshift.python.syntax.chunk_syntax import ChunkSyntax

_UNUSUAL = re.compile(r",[^\s)\]}]|;$|[ \t]$", re.MULTILINE)


class Style:
    """The style of one file, which inserted code follows."""

    def __init__(self, program: Program) -> None:
        self._source = program.script.source
        self._facts = program.script.facts

    @cached_property
    def quote(self) -> str:
        """The quote of most strings in the file; the default quote of inserted code in case of a tie.

        A change may remove a string, so a single string decides nothing.
        """
        return '"' if sum(facts.once(_excess_of_double_quotes) for facts in self._facts) > 0 else "'"

    def quoted(self, text: str) -> str:
        """A string in the style of the file; `text` contains no quotes."""
        return f"{self.quote}{text}{self.quote}"

    @cached_property
    def is_formatted(self) -> bool:
        """Return whether the file's quotes and spaces are those of black and ruff, as far as examined."""
        return self.quote == '"' and all(map(self._is_laid_out, logical_lines(self._source.text)))

    def _is_laid_out(self, line: LogicalLine) -> bool:
        """Return whether a line has the spaces that formatters write.

        Line breaks do not count, because a change may break it differently.
        """
        code, indent = self._source.text[line.start : line.end], self._source.indentation(line.start)
        if not set(indent) <= {" "} or len(indent) % 4:
            return False
        return _UNUSUAL.search(code) is None


def _excess_of_double_quotes(facts: ChunkSyntax) -> int:
    """The number of one-line strings in double quotes, less that of those in single quotes."""
    found = Counter(quotes_in(facts.text))
    return found['"'] - found["'"]
