"""Suppressions: comments that silence findings, and the problems with such comments.

`# trainshift: ignore[TF03, TF05]` silences these codes for the statement on its line, and `# trainshift:
ignore` every code.  `# trainshift: ignore-file[TF03]` and `# trainshift: ignore-file` do so for the whole
file, from any line.  A reason may follow as text.

The line is the one where the finding starts or ends, or the first or the last line of its statement
(of a compound statement, of its header), since a formatter may leave the comment at any of them.
"""

from __future__ import annotations

import ast
import re
import tokenize
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.finding import Finding, Verdict
from trainshift.engine.finishing.compiling import compiles
from trainshift.engine.own_codes import UNKNOWN_SUPPRESSION, UNUSED_SUPPRESSION
from trainshift.engine.settings import OF_PROGRAM
from trainshift.python.names.script import Script
from trainshift.python.source.comments import read_comments
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Source, Span
from trainshift.python.syntax.chunk_syntax import Statement
from trainshift.python.syntax.chunks import Chunk
from trainshift.python.syntax.code import Code

_MARK = "trainshift"
_COMMENT = re.compile(
    r"#\s*trainshift:\s*(?P<word>[\w-]+)"
    r"(?P<list>\s*\[(?P<codes>[^\]#]*)(?P<closed>\])?)?(?P<bare>:?\s*T[FLS]\d\d\b)?",
    re.I,
)
_WORDS = ("ignore", "ignore-file")


class Suppression(Struct, frozen=True):
    """One suppression: `span` is its part of a comment, `codes` are the named codes (None for every code).

    `whole_file` means `ignore-file`; `problem` is the reason why it cannot be read, and then it silences
    nothing.
    """

    span: Span
    codes: tuple[str, ...] | None
    whole_file: bool
    problem: str = ""

    def names(self, code: str) -> bool:
        """Return whether it silences findings of this code."""
        return not self.problem and (self.codes is None or code in self.codes)


class Suppressed(Struct, frozen=True):
    """The remaining findings, the number of silenced ones, and the codes silenced by each comment."""

    kept: tuple[Finding, ...]
    number: int
    used: frozenset[tuple[Suppression, str]]


def may_suppress(text: str) -> bool:
    """Return whether there may be a suppression in a piece of a script."""
    return _MARK in text.lower()


def read_suppressions(source: Source) -> tuple[Suppression, ...]:
    """The suppressions of a script, in order; only comments count, never strings."""
    if not may_suppress(source.text):
        return ()
    return tuple(
        _suppression(match, offset)
        for offset, comment in _comments(source)
        for match in _COMMENT.finditer(comment)
        if get_close_matches(match["word"].lower(), _WORDS, n=1, cutoff=0.7)
    )


def suppress(
    script: Script, findings: Iterable[Finding], suppressions: Collection[Suppression]
) -> Suppressed:
    """Remove the findings that a comment silences; every comment that names one counts as used."""
    places = _Places(script)
    by_line: dict[int, list[Suppression]] = {}
    for each in suppressions:
        if not each.whole_file:
            by_line.setdefault(script.source.line_of(each.span.start), []).append(each)
    everywhere = [each for each in suppressions if each.whole_file]
    kept: list[Finding] = []
    used: set[tuple[Suppression, str]] = set()
    number = 0
    for finding in findings:
        near = [each for line in places.lines(finding) for each in by_line.get(line, ())] if by_line else []
        silencing = [each for each in (*near, *everywhere) if each.names(finding.code)]
        used.update((each, finding.code) for each in silencing)
        if silencing:
            number += 1
        else:
            kept.append(finding)
    return Suppressed(tuple(kept), number, frozenset(used))


def problems(
    source: Source,
    suppressions: Iterable[Suppression],
    used: Collection[tuple[Suppression, str]],
    known: Collection[str],
    judged: Collection[str],
) -> Iterator[Finding]:
    """Yield the problems of suppression comments: unused ones (with a fix), and unknown codes.

    `judged` are the codes among the `known` ones that were checked without failing: only these can be unused.
    Requirements of a project count only if they were checked.
    """
    for each in suppressions:
        if each.problem:
            yield _finding(UNKNOWN_SUPPRESSION.code, each, each.problem)
            continue
        for code in each.codes or ():
            if code not in known:
                close = get_close_matches(code, known, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                yield _finding(
                    UNKNOWN_SUPPRESSION.code, each, f"{code} is not a code that can be ignored{hint}"
                )
        if each.codes is None:
            if not any(one is each for one, _ in used) and set(known) <= {*judged, *OF_PROGRAM}:
                yield _unused(source, each, ())
        else:
            unused = tuple(code for code in each.codes if code in judged and (each, code) not in used)
            if unused:
                yield _unused(source, each, unused)


def silence(script: Script, finding: Finding) -> Edit | None:
    """The edit that silences one finding by a comment; None if no comment fits.

    The code is added to an existing comment.
    """
    at = bisect_right(script.chunks, finding.span.start, key=lambda chunk: chunk[0]) - 1
    offset, text = script.chunks[at]
    # A comment is of one statement, so only that one is read.
    alone = Script(Code(Source(text), [Chunk(0, text, script.facts[at])]))
    inside = Span(finding.span.start - offset, min(finding.span.end - offset, len(text)))
    edit = _silencing(alone, replace(finding, span=inside))
    return edit.moved(offset) if edit is not None else None


def _silencing(script: Script, finding: Finding) -> Edit | None:
    source = script.source
    lines = _Places(script).lines(finding)
    for each in read_suppressions(source):
        if each.codes and not each.problem and not each.whole_file:
            if source.line_of(each.span.start) in lines:
                at = source.text.rindex("]", each.span.start, each.span.end)
                return Edit(at, at, f", {finding.code}")
    comment = f"  # {_MARK}: ignore[{finding.code}]"
    for line in sorted(lines, key=lambda line: (line != source.line_of(finding.span.end), line)):
        start = source.line_starts[line]
        at = start + len(source.text[start : source.line_end(start)].rstrip(" \t\f"))
        after = Source(source.text[:at] + comment + source.text[at:])
        if compiles(after.text) and any(each.span.start == at + 2 for each in read_suppressions(after)):
            return Edit(at, at, comment)
    return None


def _comments(source: Source) -> Iterator[tuple[int, str]]:
    """Every comment with its offset, as Python's tokenizer sees them."""
    try:
        for comment in read_comments(source.text):
            offset = source.line_starts[comment.line - 1] + comment.column
            if source.text.startswith(comment.text, offset):
                yield offset, comment.text
    except (tokenize.TokenError, SyntaxError):
        return


def _suppression(match: re.Match[str], offset: int) -> Suppression:
    span = Span(offset + match.start(), offset + match.end())
    word = match["word"].lower()
    codes = None if match["list"] is None else tuple(re.findall(r"[^\s,]+", match["codes"].upper()))
    problem = ""
    if word not in _WORDS:
        problem = (
            f"`{match['word']}` is not understood; did you mean {get_close_matches(word, _WORDS, n=1)[0]}?"
        )
    elif match["list"] is not None and match["closed"] is None:
        problem = "the list of codes has no closing ]"
    elif match["bare"] is not None:
        problem = f"put codes in brackets: {word}[{match['bare'].strip(': ').upper()}]"
    elif codes == ():
        problem = "the list of codes is empty; drop the brackets to ignore every code"
    return Suppression(span, codes, word == "ignore-file", problem)


def _finding(code: str, each: Suppression, problem: str, fix: Change | None = None) -> Finding:
    message = f"this comment suppresses nothing: {problem}" if code == UNKNOWN_SUPPRESSION.code else problem
    message = message[:1].upper() + message[1:].rstrip("?") + ("?" if message.endswith("?") else ".")
    return Finding(code, Verdict.VIOLATED, each.span, message, fix=fix)


def _unused(source: Source, each: Suppression, unused: tuple[str, ...]) -> Finding:
    left = [code for code in each.codes or () if code not in unused]
    what = " and ".join([", ".join(unused[:-1]), unused[-1]] if len(unused) > 1 else unused) or "any code"
    where = "in this file" if each.whole_file else "at this line"
    hint = ""
    if not each.whole_file and _stands_alone(source, each.span):
        hint = "; put the comment on the line of the finding"
    problem = f"no finding of {what} {where}, so this comment suppresses nothing{hint}"
    if left:
        text = source.text[each.span.start : each.span.end]
        edit = Edit(each.span.start, each.span.end, f"{text[: text.index('[')]}[{', '.join(left)}]")
        title = f"Remove {', '.join(unused)} from the comment"
    else:
        edit = _removal(source, each.span)
        title = "Remove the unused comment"
    change = Change(UNUSED_SUPPRESSION.code, title, each.span, (edit,))
    return _finding(UNUSED_SUPPRESSION.code, each, problem, change)


def _stands_alone(source: Source, span: Span) -> bool:
    return not source.text[source.line_start(span.start) : span.start].strip()


def _removal(source: Source, span: Span) -> Edit:
    """Remove the comment, with the reason after it up to another comment, and with its line if nothing else
    is on it.
    """
    line_start, line_end = source.line_start(span.start), source.line_end(span.start)
    other = source.text.find("#", span.end, line_end)
    if other >= 0:
        return Edit(span.start, other, "")
    if _stands_alone(source, span):
        return Edit(line_start, source.next_line(span.start), "")
    start = span.start
    while source.text[start - 1] in " \t\f":
        start -= 1
    return Edit(start, line_end, "")


class _Places:
    """Finds the lines at which a comment may silence a finding."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._spans = [script.statement_span(statement) for statement in script.statements]
        self._starts = [span.start for span in self._spans]

    def lines(self, finding: Finding) -> set[int]:
        """0-based lines."""
        source = self._script.source
        lines = {
            source.line_of(finding.span.start),
            source.line_of(max(finding.span.start, finding.span.end - 1)),
        }
        at = bisect_right(self._starts, finding.span.start) - 1
        while at >= 0 and self._spans[at].end <= finding.span.start:
            at -= 1
        if at >= 0:
            lines |= self._ends(self._script.statements[at])
        return lines

    def _ends(self, statement: Statement) -> set[int]:
        """The first line of a statement, and the last line of it or of its header."""
        source = self._script.source
        span = self._script.span(statement.node, statement)
        first = source.line_of(span.start)
        body: list[ast.AST] = getattr(statement.node, "body", None) or getattr(statement.node, "cases", [])
        if not body:
            return {first, source.line_of(span.end)}
        inner = getattr(body[0], "decorator_list", None) or getattr(body[0], "pattern", None) or body[0]
        inside = self._script.span(inner[0] if isinstance(inner, list) else inner, statement)
        last = source.line_of(inside.start)
        while last > first:
            last -= 1
            start = source.line_starts[last]
            line = source.text[start : source.line_end(start)].strip()
            if line and not line.startswith("#"):
                break
        return {first, last}
