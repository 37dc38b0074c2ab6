"""When Python's collector searches, whatever threads keep it from that and let it again."""

from __future__ import annotations

import gc
from contextlib import ExitStack

import pytest

from trainshift.python.garbage import uncollected


def test_it_searches_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="odd"), uncollected():
        int("odd")
    assert gc.isenabled()


def test_it_searches_again_where_one_thread_ends_as_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = ExitStack()
    stack.enter_context(uncollected())

    def asked() -> bool:
        stack.close()
        return False

    monkeypatch.setattr(gc, "isenabled", asked)
    with uncollected():
        monkeypatch.undo()
    assert gc.isenabled()
