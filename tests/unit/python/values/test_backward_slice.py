"""Backward slices and the call graph, on small scripts."""

from __future__ import annotations

import ast

import pytest

from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script, read_script
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.python.values.backward_slice import backward_slice
from trainshift.python.values.call_chains import called_from, calls_leading_to, functions_leading_to

# A script whose last statement is a call `show(x)`, and all possible values of `x`.
SLICES = {
    "a name": ("a = 1\nb = a\nshow(b)", ["1", "a", "b"]),
    "both branches": ("if c:\n    a = 1\nelse:\n    a = 2\nshow(a)", ["1", "2", "a"]),
    "a cycle": ("a = b = 0\nwhile c:\n    a, b = b, a\nshow(a)", ["0", "a", "b"]),
    "a function": ("def f(x):\n    return x\na = 1\nshow(f(a))", ["1", "a", "f(a)", "x"]),
    "a container": ("a = [1, 2]\nshow(a[1])", ["2", "a[1]"]),
    "an attribute": (
        "class C:\n    def __init__(self, v):\n        self.v = v\nc = C(3)\nshow(c.v)",
        ["3", "c.v", "v"],
    ),
    "a choice": ("a = 1\nshow(a if c else 2)", ["1", "2", "a", "a if c else 2"]),
}


def script_of(text: str) -> Script:
    script = read_script(text)
    assert isinstance(script, Script)
    return script


def call_of(script: Script, name: str) -> Site:
    (site,) = script.sites_named(name)
    return site


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_has_all_that_may_give_a_value(name: str) -> None:
    text, wanted = SLICES[name]
    script = script_of(text)
    site = call_of(script, "show")
    start = Occurrence(site.node.args[0], site.scope, site.statement)
    assert sorted({ast.unparse(at.node) for at in backward_slice(script.names, start)}) == sorted(wanted)


def test_a_slice_stops_where_it_is_told_to() -> None:
    script = script_of("a = 1\nb = a\nc = b\nshow(c)")
    site = call_of(script, "show")
    start = Occurrence(site.node.args[0], site.scope, site.statement)
    found = backward_slice(script.names, start, stop=lambda at: ast.unparse(at.node) == "b")
    assert [ast.unparse(at.node) for at in found] == ["c", "b"]


def test_calls_and_functions_that_lead_to_a_call() -> None:
    script = script_of(
        "def inner():\n    work()\ndef outer():\n    inner()\n    outer()\ndef other():\n    pass\nouter()\n"
    )
    site = call_of(script, "work")
    lines = sorted(
        script.line_at(script.span(each.node, each).start) for each in calls_leading_to(script.names, site)
    )
    assert lines == [2, 4, 5, 8]
    functions = functions_leading_to([site.scope.function()], called_from(script.names))
    assert {function.name for function in functions} == {"inner", "outer"}
