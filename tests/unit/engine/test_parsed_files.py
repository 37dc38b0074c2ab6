"""Parsed files: which ones are kept, and how the others are freed."""

from __future__ import annotations

import gc
import weakref

import pytest

from trainshift.engine import workspace
from trainshift.engine.workspace import ParsedFiles, files_in_memory
from trainshift.python.syntax.chunk_syntax import ChunkSyntax

TEXTS = {
    f"/p/{name}.py": f"def {name}(x):\n    y = x + 1\n    return y\n" for name in ("one", "two", "three")
}


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> ParsedFiles:
    """Files of which two are kept."""
    monkeypatch.setattr(workspace, "_MOST_KEPT", 2)
    return files_in_memory(dict(TEXTS))


def syntax_of(files: ParsedFiles, path: str) -> weakref.ref[ChunkSyntax]:
    """The syntax of the only chunk of a file."""
    code = files.read(path)
    assert code is not None
    return weakref.ref(code.facts[0])


def test_a_dropped_file_is_freed_without_the_collector(files: ParsedFiles) -> None:
    gc.collect()
    gc.disable()
    try:
        files.stay()
        first, *others = [syntax_of(files, path) for path in TEXTS]
        assert first() is not None
        files.release()
        assert first() is None
        assert all(each() is not None for each in others)
    finally:
        gc.enable()


def test_a_file_freed_is_read_again(files: ParsedFiles) -> None:
    files.stay()
    first, *_ = [files.read(path) for path in TEXTS]
    files.release()
    again = files.read("/p/one.py")
    assert again is not None
    assert again is not first
    assert [each.name for each in again.facts[0].scopes] == ["one"]


def test_chunks_that_an_edit_takes_over_stay(files: ParsedFiles) -> None:
    files.stay()
    before = files.read("/p/one.py")
    files.forget("/p/one.py", is_edit=True)
    after = files.read("/p/one.py")
    assert before is not None
    assert after is not None
    assert after.facts == before.facts
    for path in ("/p/two.py", "/p/three.py"):
        files.read(path)
    files.release()
    assert after.facts[0].top
