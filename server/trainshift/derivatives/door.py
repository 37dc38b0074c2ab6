"""The one door: `derive`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.core.text.edit import Edit
from trainshift.derivatives import table
from trainshift.derivatives.build import Build
from trainshift.derivatives.choice import chosen
from trainshift.derivatives.expand import expand
from trainshift.derivatives.forward import Tangents
from trainshift.derivatives.helpers import closed, text_of
from trainshift.derivatives.layout import Layout
from trainshift.derivatives.module import MADE, Module
from trainshift.derivatives.result import Derived, Mode, NotFound, Refusal, Refused

SUFFIX = {"reverse": "grad", "forward": "jvp"}


def derive(
    text: str,
    function: str,
    mode: Mode = "reverse",
    wrt: Sequence[str] | None = None,
    name: str | None = None,
) -> Derived | Refused:
    """The derivative of the top-level `function` of the file `text` (SPEC-AD 3.1).

    `wrt` names the parameters to differentiate by, in the order of the bars; without it, all that can have a
    derivative.  `name` is that of the new function instead of `FUNCTION_grad` or `FUNCTION_jvp`.

    Raises `NotFound` where the text is no Python, or has no such function or parameter.
    """
    module = Module(text)
    node = module.function(function)
    params = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    for each in wrt or ():
        if each not in params:
            raise NotFound(f"{function} has no parameter {each}")
    by, left_out = (list(wrt), ()) if wrt is not None else chosen(node)
    made = name or f"{function}_{SUFFIX[mode]}"
    comment = f"{MADE}{function} --mode {mode} --wrt {','.join(by)}" + (f" --name {name}" if name else "")
    rows = table.rows()
    build: Build | Tangents
    if mode == "reverse":
        build = Build(module, function, by, rows, made)
        expand(build)
        functions = build.gradient()
    else:
        build = Tangents(module, function, by, rows, made)
        expand(build)
        functions = build.functions_made()
    texts: list[str] = []
    for each in functions:
        origin = module.functions.get(each.name.removesuffix("_vjp").removesuffix("_jvp")) if each.name != made else node
        body = Layout(module, origin).function(each)
        texts.append((comment if each.name == made else f"{MADE}{function} --mode {mode}") + "\n" + body)
    helpers = [text_of(each, build.arrays) for each in closed(build.helpers)]
    end = module.source.next_line(module.source.line_starts[(node.end_lineno or 1) - 1])
    new = "\n\n".join(["", *helpers, *texts])
    edit = Edit(end, end, new)
    whole = text[:end] + new + text[end:]
    added = tuple(each.name for each in functions)
    return Derived(function, mode, made, added, tuple(by), tuple(left_out), (edit,), whole)


__all__ = ["Refusal", "derive"]
