"""Generators: whether a Python generator ends, and whether it yields the same on all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.training.datasets.splits import Splits
from trainshift.training.execution.executions import innermost_loop
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause, Divergent, Verdict, cause_of, joined

_ENDLESS = frozenset({"itertools.count", "itertools.cycle", "itertools.repeat"})


class Generators:
    """The generators of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def run_by(self, at: Occurrence) -> list[Scope]:
        """The generator functions of the script that yield the elements of an expression.

        It may be a call of them, a name for their result, or a function that calls them itself, as for
        `from_generator`.
        """
        return list(dict.fromkeys(self._run_by(at, frozenset())))

    def _run_by(self, at: Occurrence, seen: frozenset[int]) -> Iterator[Scope]:
        if id(at.node) in seen:
            return
        seen |= {id(at.node)}
        if isinstance(at.node, ast.Lambda):
            inner = at.scope.facts.scope_of[at.node]
            yield from self._run_by(Occurrence(at.node.body, inner, at.statement), seen)
            return
        if isinstance(at.node, ast.Call):
            functions = self._names.called_functions(self._script.site_of(at.node))
        else:
            functions = [value.scope for value in self._names.values(*at[:3]) if isinstance(value, Function)]
        functions += [
            method
            for value in self._names.values(*at[:3])
            if isinstance(value, UserInstance)
            for name in ("__call__", "__iter__")
            if (method := self._names.function_named(value.scope, name)) is not None
        ]
        yield from (each for each in functions if each.is_generator)
        step = self._names.steps_back(at)
        for each in step.sources if step is not None else ():
            yield from self._run_by(each, seen)

    def never_ends(self, at: Occurrence) -> bool:
        """Return whether all generators behind an expression yield forever, as far as the script shows."""
        functions = self.run_by(at)
        return bool(functions) and all(map(self._goes_on, functions))

    def _goes_on(self, function: Scope) -> bool:
        body = function.statement.branches.get("body", ()) if function.statement is not None else ()
        return any(self._is_endless(each) and not _is_left(each) for each in body)

    def _is_endless(self, statement: Statement) -> bool:
        node = statement.node
        if isinstance(node, ast.While):
            return isinstance(node.test, ast.Constant) and bool(node.test.value)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            called = self._names.full_names(node.iter.func, statement.scope, statement)
            return bool(called & _ENDLESS) and len(node.iter.args) < 2
        return False

    def draws(self, at: Occurrence) -> list[Site]:
        """The calls that draw the order or the values of the elements, and differ between ranks."""
        draws, trails = self._program.fact(Uniformity).draws, self._program.fact(Trails)
        calls = trails.calls(trails.behind(at, True))
        found = [each for each in calls if draws.shuffles(each) or draws.is_draw(each)]
        return [each for each in found if each not in self._program.fact(Splits).mended]

    def is_by_rank(self, at: Occurrence) -> bool:
        """Return whether the elements depend on the rank."""
        return bool(self._by_rank(at))

    def _by_rank(self, at: Occurrence) -> list[Cause]:
        on_rank = self._program.fact(Uniformity).on_rank
        behind = self._program.fact(Trails).behind(at, True)
        return [
            Cause(CauseKind.RANK, each, None)
            for each in behind
            if isinstance(each.node, ast.Call | ast.Subscript) and on_rank(each)
        ]

    def likeness(self, at: Occurrence) -> Verdict:
        """The verdict on whether a generator yields the same on all ranks, by its draws and
        `seed-by-rank`.
        """
        causes = self._by_rank(at)
        if self._program.choices.seed_by_rank:
            causes += (cause_of(CauseKind.RANK, each) for each in self.draws(at))
        if causes:
            return Divergent(tuple(causes))
        return joined(map(self._program.fact(Uniformity).draws.of, self.draws(at)))


def _is_left(loop: Statement) -> bool:
    """Return whether a loop may be left from inside."""
    return any(
        (isinstance(each.node, ast.Return) and each.scope is loop.scope)
        or (isinstance(each.node, ast.Break) and innermost_loop(each) is loop)
        for each in loop.walk()
    )
