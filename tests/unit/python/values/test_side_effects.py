"""Side effects of functions, on small scripts, for a client with three known library calls."""

from __future__ import annotations

import pytest

from trainshift.libraries.containers import MUTATING
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.python.values.effects import Effect, EffectAnalysis, OwnEffect, SideEffect

KNOWN = {"act": Effect.ACTS, "write": Effect.FILES, "look": Effect.UNKNOWN}
# The body of `f(x)`, with the effects of running it.
BODIES = {
    "return x * 2": None,
    "y = [x]\ny.append(1)\nreturn y": None,
    "x.append(1)": Effect.ACTS,
    "y = x\ny.append(1)": Effect.ACTS,
    "y = {}\ny['a'] = x\nreturn y": None,
    "x['a'] = 1": Effect.ACTS,
    "x.a = 1": Effect.ACTS,
    "global n\nn = x": Effect.ACTS,
    "for y in [[1], [2]]:\n    y.append(x)": None,
    "for y in x:\n    y.append(1)": Effect.ACTS,
    "act()": Effect.ACTS,
    "write()": Effect.FILES,
    "look()": Effect.UNKNOWN,
    "write()\nact()\nlook()": Effect.ACTS,
    "g(x)": Effect.FILES,
    "h(x)": Effect.ACTS,
    "return pure(x)": None,
}
OTHERS = """
def g(x):
    write()

def h(x):
    if x:
        h(x - 1)
    else:
        loop(x)

def loop(x):
    h(x)
    act()

def pure(x):
    return pure(x - 1) if x else 0
"""


def analysis_of(script: Script) -> EffectAnalysis:
    def of_site(site: Site) -> OwnEffect:
        functions = tuple(value.scope for value in script.names.callee(site) if isinstance(value, Function))
        if site.name in KNOWN:
            return SideEffect(KNOWN[site.name], site.name, site.node, site.scope), functions
        if site.name in MUTATING:
            changed = getattr(site.node.func, "value", None)
            return SideEffect(Effect.ACTS, "changes", site.node, site.scope, changed), functions
        return None, functions

    return EffectAnalysis(script, of_site)


@pytest.mark.parametrize("body", BODIES)
def test_a_function_does_what_its_body_and_its_callees_do(body: str) -> None:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    script = read_script(f"{OTHERS}\ndef f(x):\n{indented}")
    assert isinstance(script, Script)
    (function,) = (scope for scope in script.scopes if scope.name == "f")
    found = analysis_of(script).of_function(function)
    assert (found.effect if found is not None else None) == BODIES[body]


def test_a_call_tells_what_the_function_does_that_it_runs() -> None:
    script = read_script(f"{OTHERS}\nvalue = g(1) + g(2)\n")
    assert isinstance(script, Script)
    site = next(iter(site for site in script.sites_named("g") if site.scope.kind == "module"))
    found = analysis_of(script).of_call(site)
    assert found is not None
    assert found.node is site.node
    assert found.origin is not None
    assert found.origin.what == "write"
