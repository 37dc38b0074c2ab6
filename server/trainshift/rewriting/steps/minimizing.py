"""Minimizing: rewrite ``optimizer.minimize`` as a tape and `apply_gradients`.

Keras' optimizers compute the gradients of a loss, or of a function that returns it, and apply them.  After
the rewrite, the rules can see the tape, and average its gradients.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Function
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Edit, Side
from trainshift.python.syntax.call_binding import parameter_names
from trainshift.python.syntax.chunk_syntax import Site, Statement, is_alone
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.strategies.leaving import Leaving
from trainshift.training.loops.loop_kinds import Loop, Pattern
from trainshift.training.loops.loops import Loops

_KEYWORDS = ("loss", "var_list", "tape")
_TAPE = "tape"
_LOSS = "loss"
_VARIABLES = "variables"
_PAIRS = "grads_and_vars"
_LAST = 1
"""The rank of what comes behind all lines that follow a statement, which are ranked by their depth."""


class Written(Struct, frozen=True):
    """The rewritten statement of one step."""

    statement: Statement
    title: str
    edits: tuple[Edit, ...]


class Minimizing:
    """The steps of one program that are written as a tape and `apply_gradients`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._layout = program.fact(Layout)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of all these steps, in text order."""
        return tuple(
            sorted((edit for each in self.written for edit in each.edits), key=lambda edit: edit.start)
        )

    @cached_property
    def written(self) -> list[Written]:
        """The rewritten statement of each step, in text order; none if a strategy is removed from the
        text.
        """
        if self._program.fact(Leaving).edits or self._program.origin is not None:
            return []
        loops = (loop for loop in self._program.fact(Loops).all if loop.pattern is Pattern.MINIMIZE)
        return [each for loop in loops if (each := self._written(loop)) is not None]

    def _written(self, loop: Loop) -> Written | None:
        site = loop.sites[0]
        if not loop.certain or site.name != "minimize" or not is_alone(site):
            return None
        assert isinstance(site.node.func, ast.Attribute)
        is_own = any(isinstance(value, Function) for value in self._names.callee(site))
        given = _given(site.node)
        if given is None or is_own or not isinstance(site.node.func.value, ast.Name | ast.Attribute):
            return None
        loss, variables, tape = given
        listed = self._listed(variables, site)
        if listed is None or self._layout.isolate(site.statement):
            return None
        optimizer = self._text(site.node.func.value, site)
        taped: list[str] = []
        if tape is None:
            found = self._taped(site, loss)
            if found is None:
                return None
            tape_name, result, taped = found
        elif isinstance(tape, ast.Name) and not self._is_function(loss, site):
            tape_name, result = tape.id, self._text(loss, site)
        else:
            return None
        name, pairs = (self._script.fresh(each) for each in (_VARIABLES, _PAIRS))
        bound = [
            f"{name} = {listed}",
            f"{pairs} = list(zip({tape_name}.gradient({result}, {name}), {name}))",
        ]
        receiver = self._layout.enclosed(site.node.func.value, site)
        applied = Edit(receiver.end, self._script.span(site.node, site).end, f".apply_gradients({pairs})")
        title = f"Write {optimizer}.minimize as a tape and apply_gradients"
        return Written(site.statement, title, (*self._above(site.statement, taped, bound), applied))

    def _above(self, statement: Statement, taped: list[str], bound: list[str]) -> tuple[Edit, ...]:
        """Insert lines above a statement's own code; `bound` comes below the tape's lines."""
        newline = self._layout.newline_at(statement)
        start = self._script.statement_span(statement).start
        below = newline.join([*bound, ""])
        if not taped:
            return (Edit(start, start, below),)
        return (
            Edit(start, start, newline.join(taped)),
            Edit(start, start, newline + below, Side.AFTER, _LAST),
        )

    def _taped(self, site: Site, loss: ast.expr) -> tuple[str, str, list[str]] | None:
        """The tape's `with` text, the loss and the lines for a loss function; None if it is unknown."""
        if isinstance(loss, ast.Lambda):
            if not _is_written_out(loss):
                return None
            value = self._text(loss.body, site)
        elif isinstance(loss, ast.Name | ast.Attribute):
            value = f"{self._text(loss, site)}()"
        else:
            return None
        if "\n" in value:
            return None
        module = self._program.at(site).fact(Prerequisites).tf
        tape, result = (self._script.fresh(each) for each in (_TAPE, _LOSS))
        unit = self._layout.unit_at(site.statement)
        return tape, result, [f"with {module}.GradientTape() as {tape}:", f"{unit}{result} = {value}"]

    def _listed(self, variables: ast.expr, site: Site) -> str | None:
        """The text of the variables; None if an unknown function returns them."""
        node = variables
        if isinstance(variables, ast.Lambda) and _is_written_out(variables):
            node = variables.body
        if node is variables and self._is_function(variables, site):
            return None
        text = self._text(node, site)
        return None if "\n" in text or isinstance(node, ast.NamedExpr) else text

    def _is_function(self, node: ast.expr, site: Site) -> bool:
        values = self._names.site_values(node, site)
        return isinstance(node, ast.Lambda) or any(isinstance(value, Function) for value in values)

    def _text(self, node: ast.expr, site: Site) -> str:
        """The code of an expression, on one line unless it contains comments."""
        text = self._script.text(node, site)
        return ast.unparse(node) if "\n" in text and not comments_in(text) else text


def _is_written_out(function: ast.Lambda) -> bool:
    """Return whether the body of a lambda does the same outside it: it has no names of its own."""
    parts = (ast.NamedExpr, ast.Yield, ast.YieldFrom)
    return not parameter_names(function.args) and not any(
        isinstance(each, parts) for each in ast.walk(function)
    )


def _given(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """The loss, the variables and the tape of a call; None if it has any other argument."""
    if len(call.args) > 2 or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = dict(zip(_KEYWORDS, call.args, strict=False))
    for word in call.keywords:
        if word.arg not in _KEYWORDS or word.arg in given:
            return None
        given[word.arg] = word.value
    if "loss" not in given or "var_list" not in given:
        return None
    return given["loss"], given["var_list"], given.get("tape")
