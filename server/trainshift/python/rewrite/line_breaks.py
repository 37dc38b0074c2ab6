"""Break one logical line that is too long, like black.

The spaces between tokens of one row are unchanged; only rows are joined and broken.  A row is broken at its
last bracket.  If what is inside is too long for a row of its own, it is broken at its commas, one element a
row with a trailing comma, else at its operators of lowest precedence.  Values, tests and conditional
expressions get parentheses if these let them break.
"""

from __future__ import annotations

import io
import keyword
import tokenize
import unicodedata
from collections.abc import Collection, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_COMPREHENSION, _COMMA, _TERNARY, _LOGIC, _STRING, _COMPARATOR, _DOT = 20, 18, 16, 14, 12, 10, 1
_ARITHMETIC = {
    "|": 9, "^": 8, "&": 7, "<<": 6, ">>": 6, "+": 5, "-": 5,
    "*": 4, "/": 4, "//": 4, "%": 4, "@": 4, "**": 1,
}  # fmt: skip
_WORDS = {"and": _LOGIC, "or": _LOGIC, "if": _TERNARY, "else": _TERNARY}
_COMPARING = ("==", "!=", "<", ">", "<=", ">=")
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")
_WITH_VALUE = ("return", "assert", "if", "elif", "while", "del")
_VALUE_WORDS = ("None", "True", "False")


class _CannotSplit(Exception):
    """A line to which one way of breaking does not apply."""


class _Leaf(Struct, eq=False):
    """A token with the space before it, the comments after it, and the bracket around it.

    One without text is a parenthesis that is invisible until a line is broken there.
    """

    text: str
    space: str = ""
    kind: str = ""
    comments: list[str] = field(default_factory=list)
    pair: _Leaf | None = None
    is_trailer: bool = False
    before: int = 0
    """The priority of a break in front of it."""
    starts_row: bool = False
    continues: bool = False
    """True if a backslash ends the row before it."""
    extra: int = 0
    """1 among the targets of a `for` or the parameters of a `lambda`, which are never broken."""

    @property
    def opens(self) -> bool:
        return self.kind == "open"

    @property
    def closes(self) -> bool:
        return self.kind == "close"

    @property
    def stands_alone(self) -> bool:
        """Return whether it is a comment on a row of its own."""
        return self.kind == "comment"

    @property
    def length(self) -> int:
        return len(self.space) + width(self.text) + sum(2 + width(each) for each in self.comments)


class _Line(Struct, eq=False):
    """Leaves that are to become one row, indented by `depth` units relative to the statement."""

    leaves: list[_Leaf]
    depth: int = 0
    in_brackets: bool = False
    explodes: bool = False

    def __str__(self) -> str:
        first, *rest = self.leaves
        code = first.text + "".join(each.space + each.text for each in rest)
        if not first.text and rest:  # Nothing comes before the contents of an unseen parenthesis.
            code = code.lstrip(" ")
        return code + "".join(f"  {comment}" for each in self.leaves for comment in each.comments)

    @property
    def has_own_comments(self) -> bool:
        return any(each.stands_alone for each in self.leaves)

    @property
    def has_long_strings(self) -> bool:
        return any("\n" in each.text for each in self.leaves)

    def depths(self) -> Iterator[tuple[_Leaf, int]]:
        """The leaves, each with the number of open brackets of this line around it."""
        depth = 0
        for leaf in self.leaves:
            depth -= leaf.closes
            yield leaf, depth + leaf.extra
            depth += leaf.opens

    @property
    def delimiters(self) -> dict[int, int]:
        """The priorities of breaks after leaves, by the leaves' indices; there are none after brackets."""
        found: dict[int, int] = {}
        for place, (leaf, depth) in enumerate(self.depths()):
            if depth == 0 and leaf.before and place:
                found[place - 1] = max(found.get(place - 1, 0), leaf.before)
            if depth == 0 and leaf.text == "," and not leaf.stands_alone and leaf.kind == "comma":
                found[place] = _COMMA
        return found

    @property
    def has_magic_comma(self) -> bool:
        """Return whether a bracket ends with a comma that keeps its elements on rows of their own."""
        return any(
            leaf.closes and place and self.leaves[place - 1].text == "," and _is_magic(self.leaves, leaf)
            for place, leaf in enumerate(self.leaves)
        )


def _is_magic(leaves: list[_Leaf], closing: _Leaf) -> bool:
    opening = closing.pair
    if closing.text != ")" or opening is None or opening.is_trailer or opening not in leaves:
        return closing.text != ""
    inside = _Line(leaves[leaves.index(opening) + 1 : leaves.index(closing)])
    return sum(priority == _COMMA for priority in inside.delimiters.values()) > 1


class _Split(Struct, frozen=True):
    head: _Line
    body: _Line
    tail: _Line
    opening: _Leaf
    closing: _Leaf


class _Breaker(Struct, frozen=True):
    """Breaks the lines of one statement, whose first row is indented by `indent`."""

    indent: int
    unit: int
    limit: int

    def fits(self, line: _Line, room: int = 0) -> bool:
        text = str(line)
        columns = self.indent + line.depth * self.unit + width(text)
        return columns <= self.limit - room and "\n" not in text and not line.has_own_comments

    def broken(self, line: _Line, forced: bool = False) -> list[_Line]:
        """The rows of a line."""
        if not line.explodes and not line.has_magic_comma and self.fits(line):
            return [line]
        ways = [self._at_delimiters, self._at_comments, self._at_brackets]
        for way in ways if line.in_brackets else ways[2:]:
            try:
                return self._rows(line, way(line, forced), forced, way == self._at_brackets)
            except _CannotSplit:
                continue
        return [line]

    def _rows(self, line: _Line, parts: list[_Line], forced: bool, by_brackets: bool) -> list[_Line]:
        whole = str(line)
        if any(part.depth == line.depth and str(part) == whole for part in parts):
            raise _CannotSplit
        rows = [row for part in parts for row in self.broken(part, forced)]
        unseen = any(each.opens and not each.text for each in line.leaves)
        if forced or not by_brackets or not unseen or line.has_long_strings or self.fits(rows[0]):
            return rows
        try:
            other = self._rows(line, self._at_brackets(line, True), True, True)
        except _CannotSplit:
            return rows
        return other if all(map(self.fits, other)) else rows

    # At commas and operators

    def _at_delimiters(self, line: _Line, forced: bool) -> list[_Line]:
        found = line.delimiters
        last = line.leaves[-1]
        counted = [priority for place, priority in found.items() if place < len(line.leaves) - 1]
        if not counted:
            raise _CannotSplit
        highest = max(counted)
        if highest == _DOT and counted.count(_DOT) == 1:
            raise _CannotSplit
        rows: list[list[_Leaf]] = [[]]
        last_code = max(
            (place for place, leaf in enumerate(line.leaves) if not leaf.stands_alone), default=-1
        )
        for place, (leaf, depth) in enumerate(line.depths()):
            if depth == 0 and rows[-1] and (leaf.stands_alone or rows[-1][-1].stands_alone):
                rows.append([])
            rows[-1].append(leaf)
            if place == last_code and last.stands_alone and highest == _COMMA and leaf.text != ",":
                rows[-1].append(_comma(leaf))
            if found.get(place) == highest:
                rows.append([])
        rows = [row for row in rows if row]
        if highest == _COMMA and last.text != "," and not last.stands_alone:
            rows[-1].append(_comma(last))
        return [_Line(row, line.depth, line.in_brackets) for row in rows]

    def _at_comments(self, line: _Line, forced: bool) -> list[_Line]:
        if not line.has_own_comments:
            raise _CannotSplit
        rows: list[list[_Leaf]] = [[]]
        for leaf, depth in line.depths():
            if depth == 0 and rows[-1] and (leaf.stands_alone or rows[-1][-1].stands_alone):
                rows.append([])
            rows[-1].append(leaf)
        return [_Line(row, line.depth, line.in_brackets) for row in rows]

    # At brackets

    def _at_brackets(self, line: _Line, forced: bool) -> list[_Line]:
        for omitted in self._omissions(line):
            try:
                parts = self._halves(self._last_brackets(line, omitted), line, omitted, forced)
            except _CannotSplit:
                if omitted:
                    continue
                raise
            if self.fits(parts[0]):
                return parts
        return self._halves(self._last_brackets(line, frozenset()), line, frozenset(), forced)

    def _omissions(self, line: _Line) -> Iterator[frozenset[int]]:
        """Yield the trailers at the end of a line that may stay on its last row, fewest first."""
        omitted: set[int] = set()
        if not line.has_magic_comma:
            yield frozenset()
        length = self.indent + line.depth * self.unit
        opening: _Leaf | None = None
        closing: _Leaf | None = None
        inner: set[int] = set()
        for place in range(len(line.leaves) - 1, -1, -1):
            leaf = line.leaves[place]
            if "\n" in leaf.text:
                return
            length += leaf.length
            if length > self.limit:
                return
            before = line.leaves[place - 1] if place else None
            if opening is not None:
                if leaf is opening:
                    opening = None
                elif leaf.closes:
                    inner.add(id(leaf))
            elif leaf.closes:
                if before is not None and before.opens:
                    inner.add(id(leaf))
                    continue
                if closing is not None:
                    omitted |= {id(closing), *inner}
                    inner.clear()
                    yield frozenset(omitted)
                if before is not None and before.text == "," and _is_magic(line.leaves, leaf):
                    return
                if leaf.text:
                    opening, closing = leaf.pair, leaf

    def _last_brackets(self, line: _Line, omitted: Collection[int]) -> _Split:
        tail: list[_Leaf] = []
        body: list[_Leaf] = []
        head: list[_Leaf] = []
        current = tail
        opening = closing = None
        for leaf in reversed(line.leaves):
            if current is body and leaf is opening:
                current = head if body else tail
            current.append(leaf)
            if current is tail and leaf.closes and id(leaf) not in omitted:
                opening, closing, current = leaf.pair, leaf, body
        if opening is None or closing is None or not head:
            raise _CannotSplit
        inside = _Line(body[::-1], line.depth + 1, True)
        inside.explodes = self._explodes(inside, opening)
        outer = line.depth
        return _Split(_Line(head[::-1], outer), inside, _Line(tail[::-1], outer), opening, closing)

    @staticmethod
    def _explodes(body: _Line, opening: _Leaf) -> bool:
        """Return whether the text between brackets is always broken at its commas."""
        found = body.delimiters
        trailing = found.pop(len(body.leaves) - 1, 0)
        return bool(found) and max(found.values()) == _COMMA and (bool(trailing) or not opening.is_trailer)

    def _halves(self, split: _Split, line: _Line, omitted: Collection[int], forced: bool) -> list[_Line]:
        if not forced and not split.opening.text and self._can_omit(split):
            more = frozenset({id(split.closing), *omitted})
            try:
                other = self._last_brackets(line, more)
                if self._is_preferred(other, split):
                    return self._halves(other, line, more, forced)
            except _CannotSplit:
                if not (_can_be_split(split.body) or self.fits(split.body)):
                    raise
                if split.head.leaves and len(split.body.leaves) == 1 and not self.fits(split.body):
                    raise
        if split.tail.has_long_strings:
            raise _CannotSplit
        return self._seen(split)

    @staticmethod
    def _seen(split: _Split) -> list[_Line]:
        head, body, tail = split.head, split.body, split.tail
        if not split.opening.text:
            opening = replace(split.opening, text="(")
            closing = replace(split.closing, text=")", pair=opening)
            opening.pair = closing
            head = _Line([*head.leaves[:-1], opening], head.depth, head.in_brackets)
            tail = _Line([closing, *tail.leaves[1:]], tail.depth, tail.in_brackets)
        return [each for each in (head, body, tail) if each.leaves]

    def _can_omit(self, split: _Split) -> bool:
        """Return whether a line needs no parentheses around a value, because it can be broken inside it."""
        line = split.body
        found = line.delimiters
        if not found:
            return True
        highest = max(found.values())
        if highest == _COMMA or list(found.values()).count(highest) > 1:
            return False
        if highest == _DOT:
            return True
        first, last = line.leaves[0], line.leaves[-1]
        if first.opens and (len(line.leaves) < 2 or not line.leaves[1].closes):
            if self._can_omit_at_start(line, first):
                return True
        if line.has_magic_comma or last.closes:
            if line.leaves[-2].opens:
                return False
            return self._can_omit_at_end(line, last)
        return False

    def _can_omit_at_start(self, line: _Line, first: _Leaf) -> bool:
        """Return whether the text after the first bracket fits, so that the line can be broken inside it."""
        length = self.indent + line.depth * self.unit
        place = line.leaves.index(first.pair) if first.pair in line.leaves else -1
        rest = line.leaves[place + 1 :]
        return length + sum(each.length for each in rest) + self.unit <= self.limit

    def _can_omit_at_end(self, line: _Line, last: _Leaf) -> bool:
        length = self.indent + line.depth * self.unit
        others = False
        for leaf in line.leaves:
            length += leaf.length
            if leaf is last.pair:
                return others or length <= self.limit
            others = others or leaf.opens
        return False

    def _is_preferred(self, other: _Split, split: _Split) -> bool:
        """Return whether a break inside a value is preferred to parentheses around it."""
        if not (len(split.head.leaves) >= 2 and split.head.leaves[-2].text == "="):
            return True
        if not any(each.opens or each.closes for each in split.head.leaves[:-1]):
            return True
        if not self.fits(split.head, 1) or split.head.has_magic_comma:
            return True
        for leaf in reversed(other.head.leaves):
            if leaf.text == "=" and leaf.kind != "keyword =":
                break
            if leaf.closes:
                return True
        return any(each.text == "=" for each in other.head.leaves) and self.fits(other.head)


def _can_be_split(line: _Line) -> bool:
    """False for a line that surely cannot be broken."""
    return len(line.leaves) >= 2


def _comma(behind: _Leaf) -> _Leaf:
    comma = _Leaf(",", kind="comma", comments=behind.comments)
    behind.comments = []
    return comma


def width(text: str) -> int:
    """The number of columns of a text; East Asian characters take two."""
    text = text.expandtabs(8)
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(bool(unicodedata.combining(each)) for each in text)


# Reading


class LogicalLine(Struct, frozen=True):
    """A simple statement, or the header of a compound one: its span, its tokens and their rows from 0."""

    first: int
    last: int
    start: int
    end: int
    tokens: tuple[tuple[str, int], ...]

    def holds_elements(self, row: int) -> bool:
        """Return whether a row holds whole elements of the bracket around it."""
        inside = [text for text, at in self.tokens if at == row]
        before = [text for text, at in self.tokens if at < row]
        after = [text for text, at in self.tokens if at > row]
        if not inside or not before or not after or sum(map(_is_open, inside)) != sum(map(_is_close, inside)):
            return False
        ends = inside[-1] == "," or _is_close(after[0])
        return (before[-1] == "," or _is_open(before[-1])) and ends and not _is_close(inside[0])


def _is_open(text: str) -> bool:
    return text in _OPENING


def _is_close(text: str) -> bool:
    return text in _CLOSING


def logical_lines(text: str) -> list[LogicalLine]:
    """The logical lines of a text, in order, up to the first syntax error."""
    starts = [0]
    for row in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(row))
    lines: list[LogicalLine] = []
    tokens: list[tuple[str, int]] = []
    begin = end = -1
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            name = tokenize.tok_name[token.type]
            if name == "NEWLINE":
                if tokens:
                    first, last = tokens[0][1], token.start[0] - 1
                    lines.append(LogicalLine(first, last, begin, end, tuple(tokens)))
                tokens = []
            elif name == "COMMENT" and tokens:
                end = starts[token.end[0] - 1] + token.end[1]
            elif name not in ("NL", "INDENT", "DEDENT", "ENDMARKER", "COMMENT"):
                if not tokens:
                    begin = starts[token.start[0] - 1] + token.start[1]
                end = starts[token.end[0] - 1] + token.end[1]
                tokens.append((token.string, token.start[0] - 1))
                if token.end[0] != token.start[0]:
                    tokens.append(("", token.end[0] - 1))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return lines


def relaid(
    code: str, indent: str, unit: str, limit: int, newline: str = "\n", *, in_brackets: bool = False
) -> str | None:
    """The rows of one logical line, the first without its indentation; None if it cannot be parsed.

    `code` is a simple statement, the header of a compound one with its colon, or, with `in_brackets`, a row
    of whole elements between brackets; with the comment after it.
    """
    leaves = _leaves(code)
    if not leaves or not (in_brackets or _is_whole(leaves)):
        return None
    if not in_brackets:
        leaves = _with_unseen(leaves)
    _mark(leaves, in_brackets)
    breaker = _Breaker(width(indent), width(unit), limit)
    first, *rest = rows = breaker.broken(_Line(leaves, 0, in_brackets))
    if any(leaf.continues for leaf in leaves) and not all(map(breaker.fits, rows)):
        return None  # A backslash stays where nothing but it breaks a line.
    return newline.join([str(first), *(indent + unit * each.depth + str(each) for each in rest)])


_HEADERS = (
    "if",
    "elif",
    "while",
    "for",
    "with",
    "async",
    "match",
    "case",
    "else",
    "try",
    "except",
    "finally",
)


def _is_header(leaves: list[_Leaf]) -> bool:
    last = next(leaf for leaf in reversed(leaves) if not leaf.stands_alone)
    return leaves[0].text in _HEADERS and last.text == ":"


def _is_whole(leaves: list[_Leaf]) -> bool:
    """Return whether leaves are one complete statement of a breakable kind, or the header of one, without its
    block.
    """
    first = leaves[0]
    return _is_header(leaves) or not (
        first.text in ("def", "class", "@", "async", "global", "nonlocal")
        or (first.text in _HEADERS and first.kind == "word")
    )


def _leaves(code: str) -> list[_Leaf]:
    """The tokens of a logical line; none if it cannot be parsed."""
    starts = [0]
    for row in io.StringIO(code, newline=""):
        starts.append(starts[-1] + len(row))
    leaves: list[_Leaf] = []
    opened: list[_Leaf] = []
    end = 0
    depth = 0
    begun = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
            at, after = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                begun = begun if depth else at
                depth += 1
                continue
            if name in ("FSTRING_END", "TSTRING_END"):
                depth -= 1
                at = begun
            if depth or name in ("NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"):
                continue
            between = code[end:at]
            text = code[at:after]
            if name == "COMMENT":
                if "\n" in between or "\r" in between or not leaves:
                    leaves.append(_Leaf(text, kind="comment"))
                else:
                    leaves[-1].comments.append(text)
                end = after
                continue
            if text == ";":
                return []
            leaf = _Leaf(text, between, _kind(name, text))
            if leaves and (
                "\n" in between or "\r" in between or leaves[-1].comments or leaves[-1].stands_alone
            ):
                leaf.space = _space(leaves, leaf)
                leaf.starts_row = True
                leaf.continues = "\\" in between
            if leaf.opens:
                leaf.is_trailer = bool(leaves) and _ends_value(leaves[-1])
                opened.append(leaf)
            elif leaf.closes:
                leaf.pair = opened.pop()
                leaf.pair.pair = leaf
            leaves.append(leaf)
            end = after
    except (tokenize.TokenError, IndexError, IndentationError, SyntaxError):
        return []
    return [] if opened else leaves


def _kind(name: str, text: str) -> str:
    if name == "OP":
        if text in _OPENING:
            return "open"
        if text in _CLOSING:
            return "close"
        return "comma" if text == "," else "operator"
    if name == "NAME":
        return "word" if keyword.iskeyword(text) and text not in _VALUE_WORDS else "name"
    return "string" if name in ("STRING", "FSTRING_END", "TSTRING_END") else "number"


def _ends_value(leaf: _Leaf) -> bool:
    return leaf.closes or leaf.kind in ("name", "string", "number")


def _space(leaves: list[_Leaf], leaf: _Leaf) -> str:
    """The space between two tokens on different rows."""
    before = next((each for each in reversed(leaves) if not each.stands_alone), None)
    if before is None or before.opens or leaf.closes or leaf.text in (",", ".", ":"):
        return ""
    if before.text == "." or (leaf.opens and _ends_value(before)):
        return ""
    return " "


def _with_unseen(leaves: list[_Leaf]) -> list[_Leaf]:
    """The leaves with invisible parentheses around the value or the test of a statement."""
    first = leaves[0]
    start = end = 0
    depth = 0
    last = len(leaves)
    is_header = _is_header(leaves)
    while last and leaves[last - 1].stands_alone:
        last -= 1
    if is_header and last and leaves[last - 1].text == ":":
        last -= 1
    if first.text in _WITH_VALUE:
        start, end = 1, last
    elif first.text == "from":
        start = next((place for place, leaf in enumerate(leaves) if leaf.text == "import"), last) + 1
        end = last
    else:
        for place, leaf in enumerate(leaves[:last]):
            depth -= leaf.closes
            if depth == 0 and (
                (first.text in ("for", "async") and leaf.text == "in" and not start)
                or (not is_header and leaf.text in _ASSIGNING and leaf.kind == "operator")
            ):
                start, end = place + 1, last
            depth += leaf.opens
    if not start or start >= end:
        return leaves
    if first.text == "assert":
        commas = [
            place
            for place, (leaf, depth) in enumerate(_Line(leaves).depths())
            if not depth and leaf.kind == "comma"
        ]
        if commas:
            leaves = _enclosed(leaves, commas[0] + 1, end)
            end = commas[0]
    return _enclosed(leaves, start, end)


def _enclosed(leaves: list[_Leaf], start: int, end: int) -> list[_Leaf]:
    """The leaves with invisible parentheses around some of them; existing ones become invisible too."""
    inside = leaves[start:end]
    if not inside or inside[0].text in ("yield",):
        return leaves
    first, last = inside[0], inside[-1]
    if first.text == "(" and first.pair is last and len(inside) > 2:
        between = inside[1:-1]
        held = {leaf.text for leaf, depth in _Line(between).depths() if depth == 0}
        if not held & {",", "for", "yield", ":=", "async"} and not any(
            each.comments or each.stands_alone for each in (*between, first)
        ):
            first.text = last.text = ""
        return leaves
    return [*leaves[:start], *_around(inside), *leaves[end:]]


def _mark(leaves: list[_Leaf], in_brackets: bool) -> None:
    """Compute the priority of a break before each leaf, and enclose conditional expressions."""
    _forget_needless(leaves)
    _enclose_conditionals(leaves, in_brackets)
    before: _Leaf | None = None
    # For each open bracket: whether a `for` was read, and the token that ends the current targets or
    # parameters.
    open_brackets: list[tuple[bool, str]] = [(False, "")]
    for place, leaf in enumerate(leaves):
        if leaf.stands_alone:
            continue
        if leaf.closes and len(open_brackets) > 1:
            open_brackets.pop()
        comprehends, until = open_brackets[-1]
        if until and leaf.text == until:
            until = ""
        leaf.extra = int(bool(until))
        if before is not None and not leaf.closes:
            leaf.before = _priority(leaves, place, leaf, before, comprehends)
        if leaf.kind == "word" and leaf.text in ("for", "lambda"):
            comprehends = comprehends or (leaf.text == "for" and before is not None)
            until = "in" if leaf.text == "for" else ":"
        open_brackets[-1] = comprehends, until
        if leaf.opens:
            open_brackets.append((False, ""))
        before = leaf


def _priority(leaves: list[_Leaf], place: int, leaf: _Leaf, before: _Leaf, comprehends: bool) -> int:
    """The priority of a break before a leaf, or 0; with `comprehends`, its brackets contain a `for`."""
    text = leaf.text
    if leaf.kind == "string":
        return _STRING if before.kind == "string" else 0
    if leaf.kind == "operator":
        if text == ".":
            return _DOT if before.closes and before.text else 0
        if text in _ARITHMETIC:
            return _ARITHMETIC[text] if _ends_value(before) else 0
        return _COMPARATOR if text in _COMPARING else 0
    if leaf.kind != "word":
        return 0
    after = leaves[place + 1].text if place + 1 < len(leaves) else ""
    if text == "is" or (text == "not" and after == "in" and _ends_value(before)):
        return _COMPARATOR
    if text == "in" and before.text != "not":
        return 0 if _is_of_for(leaves, place) else _COMPARATOR
    if text == "for" or (text == "async" and after == "for"):
        return 0 if before.text == "async" else _COMPREHENSION
    if text == "if" and comprehends:
        return _COMPREHENSION
    return _WORDS.get(text, 0)


def _is_of_for(leaves: list[_Leaf], place: int) -> bool:
    """Return whether an `in` belongs to a `for`."""
    depth = 0
    for leaf in reversed(leaves[:place]):
        depth += leaf.closes
        if (
            depth == 0
            and leaf.kind == "word"
            and leaf.text in ("for", "in", "if", "and", "or", "not", "else")
        ):
            return leaf.text == "for"
        depth -= leaf.opens
        if depth < 0:
            return False
    return False


def _forget_needless(leaves: list[_Leaf]) -> None:
    """Remove parentheses that an earlier break has put on rows of their own, and that a new one may
    not need.
    """
    for place, leaf in enumerate(leaves[:-1]):
        closing, inner = leaf.pair, leaves[place + 1]
        if leaf.text != "(" or leaf.is_trailer or closing is None or not place:
            continue
        if not (inner.starts_row and closing.starts_row) or leaves[place - 1].text not in (
            "=",
            ",",
            "(",
            "[",
            "{",
        ):
            continue
        between = leaves[place + 1 : leaves.index(closing)]
        words = [each.text for each, depth in _Line(between).depths() if depth == 0]
        alone = inner.opens and inner.pair is between[-1] and inner.text != "("
        said = leaf.comments or any(each.comments or each.stands_alone for each in between)
        if not said and "," not in words and "for" not in words and (alone or {"if", "else"} <= {*words}):
            leaf.text = closing.text = ""


def _enclose_conditionals(leaves: list[_Leaf], in_brackets: bool) -> None:
    """Put invisible parentheses around each bracketed conditional expression that has none."""
    place = 0
    while place < len(leaves):
        if leaves[place].text == "else" and leaves[place].kind == "word":
            start, end = _bounds(leaves, place)
            before = leaves[start - 1] if start else None
            after = leaves[end] if end < len(leaves) else None
            enclosed = before is not None and before.opens and before.pair is after
            inside = in_brackets if before is None else before.opens or before.text in (",", "=", ":")
            if not enclosed and inside and start < place and (after is not None or in_brackets):
                leaves[start:end] = _around(leaves[start:end])
                place += 1
        place += 1


def _around(inside: list[_Leaf]) -> list[_Leaf]:
    """Leaves between invisible parentheses."""
    opening = _Leaf("", inside[0].space, "open")
    closing = _Leaf("", "", "close", pair=opening)
    opening.pair = closing
    inside[0].space = ""
    return [opening, *inside, closing]


def _bounds(leaves: list[_Leaf], place: int) -> tuple[int, int]:
    """The bounds of the argument, element or value that contains a leaf."""
    depth, start = 0, place
    while start:
        leaf = leaves[start - 1]
        if depth == 0 and (
            leaf.opens
            or leaf.kind == "comma"
            or leaf.stands_alone
            or (leaf.kind == "operator" and leaf.text in ("=", ":", ":="))
            or (leaf.kind == "word" and leaf.text in ("return", "in", "for", "lambda", "yield"))
        ):
            break
        depth += leaf.closes - leaf.opens
        start -= 1
    depth, end = 0, place
    while end < len(leaves):
        leaf = leaves[end]
        if depth == 0 and (
            leaf.closes
            or leaf.kind == "comma"
            or leaf.stands_alone
            or (leaf.kind == "word" and leaf.text in ("for", "async"))
            or (leaf.kind == "operator" and leaf.text == ":")
        ):
            break
        depth += leaf.opens - leaf.closes
        end += 1
    return start, end
