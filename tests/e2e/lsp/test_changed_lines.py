"""The start of each change of a conversion in the new text."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from e2e.lsp.commands import SCRIPTS, text_of
from trainshift.engine.conversion import convert
from trainshift.lsp.answers.changed_lines import changed_lines
from trainshift.lsp.text.documents import paper_of, plain


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SCRIPTS.glob("*/before.py")))
def test_a_change_begins_at_a_line_that_changed(name: str) -> None:
    text = text_of(SCRIPTS / name / "before.py")
    conversion = convert(text)
    if conversion.plan is None:
        return
    home = paper_of(plain("file:///train.py", 1, text, "utf-16")).home
    lines = [*changed_lines(conversion.plan, home)]
    changed: set[int] = set()
    matcher = SequenceMatcher(None, text.splitlines(), conversion.text.splitlines(), autojunk=False)
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag != "equal":
            # A deletion leads to the line after it.
            changed |= {*range(first + 1, last + 1)} or {first + 1}
    assert len(lines) == len(conversion.applied)
    assert changed.issuperset(lines)
