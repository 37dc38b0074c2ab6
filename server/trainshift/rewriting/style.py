"""How a file is written: which quotes it has, and whether black or ruff has formatted it."""

from __future__ import annotations

import io
import re
import tokenize

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite.line_breaks import LogicalLine, logical_lines, relaid
from trainshift.python.source.source import Source

_USUAL = 88
_QUOTE = re.compile(r"[^\"']*(\"|')(?!\1\1)")


class Style:
    """The style of one file, which what is inserted into it follows."""

    def __init__(self, program: Program) -> None:
        self._source = program.script.source
        self._longest = program.choices.line_length or _USUAL

    @cached_property
    def quote(self) -> str:
        """The quote that all strings of the file have; that of the seeds where they differ."""
        return '"' if self._strings and not self._has_single_quotes else "'"

    @property
    def _has_single_quotes(self) -> bool:
        return any(each.startswith("'") and '"' not in each for each in self._strings)

    def quoted(self, text: str) -> str:
        """A string as the file writes it; `text` has no quotes in it."""
        return f"{self.quote}{text}{self.quote}"

    @cached_property
    def is_formatted(self) -> bool:
        """Whether the file has strings, and looks as black and ruff leave it, as far as is looked at."""
        if not self._strings or self._has_single_quotes:
            return False
        return all(map(self._is_laid_out, logical_lines(self._source.text)))

    @cached_property
    def _strings(self) -> list[str]:
        """The file's strings of one line, each from its quote on."""
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
        code, source = self._source.text[line.start : line.end], self._source
        indent = source.indentation(line.start)
        if not set(indent) <= {" "} or len(indent) % 4:
            return False
        # One that a change is to break tells nothing; one that is distributed, and long, was left so.
        long = _width_of(source, line) > self._longest and re.search(r"(rank|size)\(\)", code)
        if line.first == line.last and not long and not re.search(r",\s*[)\]}]|,\S|\s$", code):
            return not code.endswith(";")
        if "#" in code:  # Where its comments would go is black's affair.
            return True
        new = relaid(code, indent, "    ", self._longest, source.newline)
        return new is None or new == code


def _width_of(source: Source, line: LogicalLine) -> int:
    return source.line_end(line.start) - source.line_start(line.start)
