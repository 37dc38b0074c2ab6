"""The line table of a text that was edited."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainshift.python.source.source import Source, Span

TEXT = st.text(alphabet="a\n\r\f é", max_size=12)


@given(TEXT, TEXT, st.integers(0, 12), st.integers(0, 12))
def test_the_lines_of_an_edited_text_are_those_of_the_text(text: str, new: str, one: int, other: int) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    edited = Source(text).edited(Span(start, end), new)
    assert edited.text == text[:start] + new + text[end:]
    assert list(edited.line_starts) == list(Source(edited.text).line_starts)
