"""Gradients by transposed tangents: the adjoint pass if names share mutated objects (AD37).

Tangents share objects like their values, so the jvp of such a function is correct where no adjoint can
follow.  It runs once, with tangents that record on a tape of which others they are sums.  Reversing the tape
transposes that linear map, and yields the cotangents of the arguments.
"""

from __future__ import annotations

import ast

from trainshift.derivatives.forward.build import Tangents
from trainshift.derivatives.tables.helpers import OF_TAPES
from trainshift.derivatives.writing.layout import gradient_of
from trainshift.python.rewrite import terms
from trainshift.python.syntax.fresh_names import fresh_name

# Functions for floats only, which cannot take a tangent that records its sources.
_OF_FLOATS = frozenset(("math.fsum", "math.radians", "math.degrees"))


def transposed(
    tangents: Tangents, functions: list[ast.FunctionDef], made: str
) -> list[ast.FunctionDef] | None:
    """The gradient `made` of the last function of a jvp, after the gradients of its callees.

    Return None for tangents that are not numbers, or if other functions also call the jvp.
    """
    *others, jvp = functions
    attributes = (each for one in functions for each in terms.walk(one) if isinstance(each, ast.Attribute))
    if any(ast.unparse(each) in _OF_FLOATS for each in attributes):
        return None
    if tangents.arrays or tangents.tensors or any(jvp.name in terms.names_read(each) for each in others):
        return None
    start = tangents.start
    free = {*start.params, "value_bar", jvp.name, *terms.names_read(jvp)}
    free -= {each.arg for each in jvp.args.kwonlyargs} - {*start.params}
    value, dot, tape = (fresh_name(each, free) for each in ("value", "value_dot", "tape"))
    keyword_only = {each.arg for each in start.node.args.kwonlyargs}
    given: list[ast.expr] = [terms.name(each) for each in start.params if each not in keyword_only]
    named = [ast.keyword(each, terms.name(each)) for each in start.params if each in keyword_only]
    body: list[ast.stmt] = [jvp, terms.assign(tape, ast.List([], ast.Load()))]
    bars: list[ast.expr] = []
    for name, each in zip(tangents.wrt, jvp.args.kwonlyargs[len(keyword_only) :], strict=False):
        held = fresh_name(each.arg, free)
        body.append(terms.assign(held, terms.call("_noted", terms.name(name), terms.name(tape))))
        seed: ast.expr = terms.name(held)
        if not start.kind(name).numeric:
            # Its contents may be mutated together with the argument.
            tangents.helpers.add("_copied")
            seed = terms.call("_copied", seed)
        named.append(ast.keyword(each.arg, seed))
        bars.append(terms.call("_bars", terms.name(held)))
    pair = terms.display([terms.name(value), terms.name(dot)])
    body.append(terms.assign(pair, ast.Call(terms.name(jvp.name), given, named)))
    back = terms.call("_transpose", terms.name(dot), terms.name("value_bar"), terms.name(tape))
    result = terms.display([terms.name(value), terms.display(bars)])
    body += [ast.Expr(back), ast.Return(result)]
    tangents.helpers |= OF_TAPES
    return [*others, gradient_of(made, start.node, tangents.wrt, ", for numbers", body)]
