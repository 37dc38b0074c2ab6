"""The bindings that reach the read of a name, by tables of small scripts.

`#` marks the line that reads `x`; the numbers are the lines that may have bound it.
"""

from __future__ import annotations

import pytest

from trainshift.python.names.script import Script, read_script

CASES = {
    "the last one": ("x = 1\nx = 2\nf(x) #", "2"),
    "on one way": ("x = 1\nif c:\n  x = 2\nf(x) #", "1 3"),
    "on both ways": ("x = 1\nif c:\n  x = 2\nelse:\n  x = 3\nf(x) #", "3 5"),
    "a way that leaves": ("def g():\n  x = 1\n  if c:\n    x = 2\n    return\n  f(x) #", "2"),
    "the other way leaves": ("x = 1\nif c:\n  x = 2\nelse:\n  raise E\nf(x) #", "3"),
    "a walrus in a test": ("x = 1\nif c or (x := 2):\n  f(x) #", "1 2"),
    "a walrus that is surely evaluated": ("x = 1\nif (x := 2):\n  f(x) #", "2"),
    "behind a walrus in a test": ("x = 1\nif (x := 2):\n  f()\nf(x) #", "2"),
    "a walrus on one way": ("x = 1\nc and (x := 2)\nf(x) #", "1 2"),
    "a walrus in a comprehension": ("x = 1\n[x := i for i in y]\nf(x) #", "1 2"),
    "round a loop": ("x = 1\nfor i in y:\n  f(x) #\n  x = 2", "1 4"),
    "a test that is evaluated again": ("x = 1\nwhile f(x): #\n  x = 2", "1 3"),
    "what a failing block has bound": ("x = 1\ntry:\n  x = 2\n  x = g()\nexcept E:\n  pass\nf(x) #", "1 3 4"),
    "in a handler": ("x = 1\ntry:\n  x = 2\n  x = g()\nexcept E:\n  f(x) #", "1 3 4"),
    "a handler that leaves": ("x = 1\ntry:\n  x = g()\nexcept E:\n  raise\nf(x) #", "3"),
    "a handler's name": ("x = 1\ntry:\n  g()\nexcept E as x:\n  f(x) #", "2"),
    "in an else": ("x = 1\ntry:\n  x = 2\nexcept E:\n  x = 3\nelse:\n  f(x) #", "3"),
    "in a finally": ("x = 1\ntry:\n  x = 2\n  x = g()\nfinally:\n  f(x) #", "1 3 4"),
    "behind a finally": ("x = 1\ntry:\n  x = 2\n  x = g()\nfinally:\n  h()\nf(x) #", "4"),
    "bound in a finally": ("x = 1\ntry:\n  x = 2\nfinally:\n  x = 3\nf(x) #", "5"),
    "a manager": ("x = 1\nwith g():\n  x = 2\nf(x) #", "3"),
    "a manager that suppresses": ("x = 1\nwith suppress(E):\n  x = 2\nf(x) #", "1 3"),
    "the target of a manager": ("x = 1\nwith g() as x:\n  f(x) #", "2"),
    "a name of a pattern": ("x = 1\nmatch y:\n  case [x]:\n    f(x) #", "2"),
    "a name that a pattern may bind": ("x = 1\nmatch y:\n  case [x]:\n    g()\nf(x) #", "1 2"),
    "a walrus that the statement itself evaluates": ("x = 1\nf((x := 2), x) #", "1 2"),
    "a manager behind another one": ("x = 1\nwith g() as x, f(x): #\n  pass", "1 2"),
    "an assignment reads what was before": ("x = 1\nx = f(x) #", "1"),
    "a break": ("x = 1\nwhile c:\n  x = 2\n  if d:\n    break\n  x = 3\nf(x) #", "1 3 6"),
    "a break that is always taken": ("while True:\n  x = 1\n  if d:\n    break\n  x = 2\nf(x) #", "2"),
    "a continue": ("x = 1\nfor i in y:\n  f(x) #\n  x = 2\n  if d:\n    continue\n  x = 3", "1 4 7"),
    "a return through a finally": (
        "def g():\n  x = 1\n  try:\n    x = 2\n    if c:\n      return\n    x = 3\n  finally:\n    f(x) #",
        "2 4 7",
    ),
    "a function by global": ("x = 1\ndef g():\n  global x\n  x = 2\nx = 3\ng()\nf(x) #", "4 5"),
    "a function by nonlocal": (
        "def h():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2\n  x = 3\n  g()\n  f(x) #",
        "5 6",
    ),
    "deleted": ("x = 1\ndel x\nf(x) #", "2"),
}


@pytest.mark.parametrize("case", CASES)
def test_bindings(case: str) -> None:
    text, expected = CASES[case]
    script = read_script(text)
    assert isinstance(script, Script)
    line = next(index for index, each in enumerate(text.split("\n"), 1) if each.endswith("#"))
    start = script.source.text
    placed = {each: start[: script.statement_span(each).start].count("\n") + 1 for each in script.statements}
    statement = next(each for each, at in placed.items() if at == line)
    _, bindings = script.names.lookup("x", statement.scope, statement)
    found = sorted(placed[each.statement] for each in bindings if each.statement is not None)
    assert " ".join(map(str, found)) == expected
