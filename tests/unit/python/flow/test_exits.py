"""The exits of blocks, by tables of small programs."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from trainshift.python.flow.exits import completions, leaves


def ends(call: ast.Call) -> bool:
    return ast.unparse(call.func) == "sys.exit"


COMPLETIONS = {
    "nothing": ("pass", "FALL"),
    "return": ("return x", "RETURN"),
    "what follows is dead": ("return\nbreak", "RETURN"),
    "a call that ends": ("sys.exit(1)", "END"),
    "a call that ends in a value": ("x = f(sys.exit())", "END"),
    "a call that may end": ("ready or sys.exit()", "FALL"),
    "a call that may end, by a condition": ("x = 1 if ready else sys.exit()", "FALL"),
    "a call that a function makes": ("f = lambda: sys.exit()", "FALL"),
    "a call that a message makes": ("assert x, sys.exit()", "FALL"),
    "a test that ends": ("if sys.exit():\n    pass", "END"),
    "assert": ("assert x", "FALL"),
    "raise": ("raise ValueError", "RAISE"),
    "raise SystemExit": ("raise SystemExit(1)", "END"),
    "one branch": ("if x:\n    return", "FALL RETURN"),
    "both branches": ("if x:\n    return\nelse:\n    break", "BREAK RETURN"),
    "a test that holds": ("if True:\n    return", "RETURN"),
    "a test that fails": ("if False:\n    return", "FALL"),
    "while": ("while x:\n    return", "FALL RETURN"),
    "while True": ("while True:\n    f()", ""),
    "while 1 with a return": ("while 1:\n    if x:\n        return", "RETURN"),
    "while True with a break": ("while True:\n    if x:\n        break", "FALL"),
    "while not False": ("while not False:\n    f()", ""),
    "a break of an inner loop": ("while True:\n    for x in y:\n        break", ""),
    "a continue stays inside": ("while True:\n    continue", ""),
    "else of a loop": ("for x in y:\n    f()\nelse:\n    return", "RETURN"),
    "else of a loop that is left": (
        "for x in y:\n    if x:\n        break\nelse:\n    return",
        "FALL RETURN",
    ),
    "else of a while": ("while x:\n    f()\nelse:\n    continue", "CONTINUE"),
    "a break in an else": ("for x in y:\n    pass\nelse:\n    break", "BREAK"),
    "with": ("with a:\n    return f()", "FALL RETURN"),
    "with that cannot fail": ("with a:\n    return", "RETURN"),
    "with two managers": ("with a, b:\n    return", "FALL RETURN"),
    "try": ("try:\n    return f()\nexcept E:\n    pass", "FALL RETURN"),
    "try that handles by a return": ("try:\n    return f()\nexcept E:\n    return 2", "RETURN"),
    "try that cannot fail": ("try:\n    return\nexcept E:\n    pass", "RETURN"),
    "try with an else that leaves": (
        "try:\n    f()\nexcept E:\n    raise\nelse:\n    return",
        "RAISE RETURN",
    ),
    "raise that is handled": ("try:\n    raise E\nexcept:\n    pass", "FALL"),
    "raise that may be handled": ("try:\n    raise E\nexcept E:\n    pass", "FALL RAISE"),
    "finally that leaves": ("try:\n    f()\nfinally:\n    return", "RETURN"),
    "finally that falls": ("try:\n    return f()\nfinally:\n    g()", "RETURN"),
    "finally that may leave": (
        "try:\n    return f()\nfinally:\n    if x:\n        break",
        "BREAK RETURN",
    ),
    "a call that ends, caught": ("try:\n    sys.exit()\nexcept SystemExit:\n    pass", "END FALL"),
    "match": ("match x:\n    case 1:\n        return", "FALL RETURN"),
    "match with all cases": (
        "match x:\n    case 1:\n        return\n    case _:\n        raise E",
        "RAISE RETURN",
    ),
    "match of a name": ("match x:\n    case y:\n        return", "RETURN"),
    "match with a guard": ("match x:\n    case y if y:\n        return", "FALL RETURN"),
    "match of alternatives": ("match x:\n    case 1 | _:\n        return", "RETURN"),
    "a function inside": ("def f():\n    return", "FALL"),
    "a class inside": ("class A:\n    x = 1", "FALL"),
    "yield": ("while True:\n    yield 1", ""),
    "async with": ("async with a:\n    return await f()", "FALL RETURN"),
    "async for": ("async for x in y:\n    return", "FALL RETURN"),
}


@pytest.mark.parametrize("name", COMPLETIONS)
def test_completions(name: str) -> None:
    text, expected = COMPLETIONS[name]
    found = completions(ast.parse(text).body, ends)
    assert " ".join(sorted(each.name for each in found)) == expected
    assert leaves(ast.parse(text).body, ends) == ("FALL" not in expected)


def test_managers_that_suppress_nothing_are_left_as_their_block_is() -> None:
    block = ast.parse("with a, b:\n    return f()").body
    assert leaves(block, swallows=lambda _: False)
    assert not leaves(block)


def test_no_call_ends_unless_it_is_said_to() -> None:
    assert not leaves(ast.parse("sys.exit()").body)


def test_except_star_is_read_as_except_is() -> None:
    if not hasattr(ast, "TryStar"):  # Python 3.10
        return
    node = ast.parse("try:\n    f()\nexcept* E:\n    g()\nfinally:\n    raise E").body
    assert leaves(node)


def test_nodes_without_positions_are_read() -> None:
    body: list[ast.stmt] = [ast.If(ast.Name("x", ast.Load()), [ast.Return(None)], [ast.Break()])]
    assert leaves(body)
    assert leaves(body[0])
    assert not leaves(ast.parse(dedent("x = 1")).body)
