"""The names that a statement reads, and the scopes in which it reads them."""

from __future__ import annotations

import pytest

from trainshift.python.names.script import Script, read_script
from trainshift.python.names.uses import readings_in
from trainshift.python.syntax.chunk_syntax import Statement

READ = [
    ("x = a + b\n", {"a": "module", "b": "module"}),
    ("f(a, *b, c=d)\n", {"f": "module", "a": "module", "b": "module", "d": "module"}),
    ("x = lambda v=a: v + b\n", {"a": "module", "v": "function", "b": "function"}),
    ("x = [v + b for v in a]\n", {"a": "module", "v": "comprehension", "b": "comprehension"}),
]


def _statements(text: str) -> list[Statement]:
    script = read_script(text)
    assert isinstance(script, Script)
    return list(script.statements)


@pytest.mark.parametrize(("text", "expected"), READ)
def test_every_part_comes_with_the_scope_that_reads_it(text: str, expected: dict[str, str]) -> None:
    (statement,) = _statements(text)
    found = {use.node.id: use.scope.kind for use in readings_in(statement)}
    assert found == expected


def test_a_part_of_an_f_string_comes_with_it() -> None:
    (statement,) = _statements('print(f"{a}", b)\n')
    inside = {use.node.id: use.string is not None for use in readings_in(statement)}
    assert inside == {"print": False, "a": True, "b": False}
